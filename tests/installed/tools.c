/* A program of a user: what libparacord-tools promises beside libparacord. There is one record of errors; what it
 * prints of one names the place in this file. */
#include <paracord-tools.h>
#include <paracord.h>

static bool one_record(void)
{
    pc_cloud *cloud = pc_cloud_open("/nowhere/cloud.txt");
    bool failed = !cloud && pc_error_last()->status == PC_ERR_FILE;
    pc_report(stdout);
    pc_error_clear();
    return failed && !pc_failed();
}

static bool machines(void)
{
    pc_cloud *cloud = pc_cloud_open_builtin();
    bool found = cloud && pc_cloud_find(cloud, "g5.xlarge");
    pc_cloud_free(cloud);
    return found;
}

static bool pictures(void)
{
    pc_image face;
    bool drawn = pc_draw_face(PC_DRAW_CAT, 1, 1, 32, 32, &face) == PC_OK && face.width == 32;
    pc_image_free(&face);
    return drawn;
}

int main(void)
{
    if (!one_record() || !machines() || !pictures()) {
        pc_report(stderr);
        return 1;
    }
    printf("libparacord-tools beside paracord %s\n", pc_version());
    return 0;
}

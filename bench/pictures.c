/* pictures: decode and resize JPEG files to 64x64, and augment pictures of that size. Prints "name seconds" of CPU time
 * per picture, the median of the rounds. Usage: pictures [rounds] [JPEG files]; without files it draws some. */
#include <paracord/augment.h>
#include <paracord/image.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 64, ROUNDS_MAX = 100, OWN = 64, AUGMENTED = 2000 };

typedef struct job {
    char **files; /* or, without files, our own */
    int count;
    uint8_t *own[OWN];
    size_t own_size[OWN];
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(pc_status status)
{
    if (status != PC_OK)
        exit(pc_report(stderr));
}

/* Sizes and detail about as in photographs of cats. */
static void draw_own(job *j)
{
    for (int i = 0; i < OWN; i++) {
        pc_image image;
        must(pc_image_new(340 + i * 2, 300 + i * 2, 3, &image));
        uint32_t noise = 1;
        for (int k = 0, n = image.width * image.height * 3; k < n; k++) {
            noise = noise * 1664525u + 1013904223u;
            image.pixels[k] =
                (uint8_t)(128 + 80 * sin(k / 3 % image.width / 17.0) * cos(k / 3 / image.width / 13.0) + (noise >> 27));
        }
        must(pc_image_encode_jpeg(&image, 85, &j->own[i], &j->own_size[i]));
        pc_image_free(&image);
    }
    j->count = OWN;
}

static void decode_all(const job *j, int side, pc_resize resize)
{
    const pc_image_options options = {.channels = 3, .width = side, .height = side, .resize = resize};
    for (int i = 0; i < j->count; i++) {
        pc_image image;
        must(j->files ? pc_image_read(j->files[i], options, &image)
                      : pc_image_decode(j->own[i], j->own_size[i], "own", options, &image));
        pc_image_free(&image);
    }
}

static void nearest(const job *j)
{
    decode_all(j, SIDE, PC_RESIZE_NEAREST);
}

static void area(const job *j)
{
    decode_all(j, SIDE, PC_RESIZE_AREA);
}

static void whole(const job *j)
{
    decode_all(j, 0, PC_RESIZE_NEAREST);
}

static void augment(const job *j)
{
    static uint8_t pixels[SIDE * SIDE * 3];
    static float out[SIDE * SIDE * 3];
    const pc_augment plan = {
        .shear = 0.2, .zoom_low = 0.8, .zoom_high = 1.2, .flip_horizontal = true, .rescale = 1 / 255.0};
    (void)j;
    for (uint64_t i = 0; i < AUGMENTED; i++) {
        const pc_augment_values values = pc_augment_draw(&plan, 1, 0, i, SIDE, SIDE);
        must(pc_augment_apply(&plan, &values, pixels, SIDE, SIDE, 3, out));
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, int rounds, void (*body)(const job *), const job *j, int pictures)
{
    double times[ROUNDS_MAX];
    for (int i = 0; i < rounds; i++) {
        const double start = now();
        body(j);
        times[i] = (now() - start) / pictures;
    }
    qsort(times, (size_t)rounds, sizeof *times, by_size);
    printf("%s %.9f\n", name, times[rounds / 2]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    job j = {.files = argc > 2 ? argv + 2 : NULL, .count = argc - 2};
    const int asked = argc > 1 ? atoi(argv[1]) : 7;
    const int rounds = asked < 1 ? 1 : asked > ROUNDS_MAX ? ROUNDS_MAX : asked;
    if (!j.files)
        draw_own(&j);
    measure("pictures.nearest", rounds, nearest, &j, j.count);
    measure("pictures.area", rounds, area, &j, j.count);
    measure("pictures.whole", rounds, whole, &j, j.count);
    measure("pictures.augment", rounds, augment, &j, AUGMENTED);
    for (int i = 0; i < OWN; i++)
        pc_image_bytes_free(j.own[i]);
    return 0;
}

/* replay.c: a fuzz target without a fuzzer: run it on files, and on all files in folders. */
#include "fuzz/fuzz.h"

#include "io/file.h"

#include <dirent.h>
#include <sys/stat.h>

static int replay(const char *path)
{
    uint8_t *bytes;
    size_t n;
    if (pc__file_read(path, &bytes, &n) != PC_OK)
        return pc_report(stderr);
    LLVMFuzzerTestOneInput(bytes, n);
    pc__free(bytes);
    return 0;
}

static int replay_folder(const char *folder)
{
    char path[4096];
    DIR *dir = opendir(folder);
    int failed = !dir;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            failed |= replay(path);
        }
    if (dir)
        closedir(dir);
    return failed;
}

int main(int argc, char **argv)
{
    struct stat info;
    int failed = argc < 2;
    for (int i = 1; i < argc; i++)
        failed |= stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode) ? replay_folder(argv[i]) : replay(argv[i]);
    return failed;
}

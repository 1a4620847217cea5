/* folder.c: a folder for what a job shares in memory. It goes with the job; what a launcher that was killed has left is taken
 * away by the next one. Who holds the lock of a folder lives, in whatever container. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "paracord-job-"

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    (void)!remove(path);
    return 0;
}

static void remove_all(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The lock of a folder: -1 when somebody has it, or it is not there, or was swept before it was locked. */
static int lock_of(const char *folder, int flags)
{
    char path[128];
    struct stat about;
    snprintf(path, sizeof path, "%.100s/lock", folder);
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &about) == 0 && about.st_nlink > 0)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

static void sweep(const char *parent)
{
    DIR *list = opendir(parent);
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        char path[128];
        struct stat about;
        if (strncmp(entry->d_name, NAME, sizeof NAME - 1) != 0)
            continue;
        snprintf(path, sizeof path, "%.60s/%.40s", parent, entry->d_name);
        if (lstat(path, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid())
            continue;
        const int lock = lock_of(path, 0);
        if (lock >= 0) {
            remove_all(path);
            close(lock);
        }
    }
    if (list)
        closedir(list);
}

/* In shared memory, where there is some; else where temporary files go. */
static bool make(char folder[PC__FOLDER_MAX])
{
    const char *const parents[] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};
    for (int i = 0; i < PC__COUNT(parents); i++) {
        if (!parents[i] || strlen(parents[i]) > 40)
            continue;
        sweep(parents[i]);
        snprintf(folder, PC__FOLDER_MAX, "%s/" NAME "XXXXXX", parents[i]);
        if (mkdtemp(folder))
            return true;
    }
    return false;
}

bool pc__folder_begin(pc__folder *folder)
{
    folder->lock = -1;
    /* Another launcher may sweep between the making of the folder and of its lock: then once more. */
    for (int attempt = 0; attempt < 8 && make(folder->path); attempt++) {
        folder->lock = lock_of(folder->path, O_CREAT);
        if (folder->lock >= 0)
            return true;
        remove_all(folder->path);
    }
    return false;
}

void pc__folder_fresh(const pc__folder *folder, const char *name, char path[PC__FOLDER_MAX])
{
    snprintf(path, PC__FOLDER_MAX, "%.60s/%.16s", folder->path, name);
    remove_all(path);
    mkdir(path, 0700);
}

void pc__folder_end(pc__folder *folder)
{
    remove_all(folder->path);
    close(folder->lock);
}
#endif

/* open_files.c: the files that were taken last stay open. */
#include "data/open_files.h"

#include "io/file.h"

#include <unistd.h>

void pc__open_files_drop(pc__open_files *f)
{
    for (int i = 0; i < PC__OPEN_FILES; i++)
        if (f->open[i].used)
            close(f->open[i].fd);
    for (int i = 0; i < f->count; i++)
        pc__free(f->files[i].path);
    pc__free(f->files);
    *f = (pc__open_files){0};
}

/* The place where the file is open, taken; -1: it is not. Under the lock. */
static int find(pc__open_files *f, int number)
{
    for (int i = 0; i < PC__OPEN_FILES; i++)
        if (f->open[i].used && f->open[i].file == number) {
            f->open[i].readers++;
            f->open[i].used = ++f->now;
            return i;
        }
    return -1;
}

/* An empty place, or that of the file which nobody has taken for the longest time; -1: all are being read. Under the lock. */
static int place_for_one(const pc__open_files *f)
{
    int found = -1;
    for (int i = 0; i < PC__OPEN_FILES; i++) {
        const pc__open_file *o = &f->open[i];
        if (o->readers == 0 && (found < 0 || o->used < f->open[found].used))
            found = i;
    }
    return found;
}

/* Of what was just opened: to its place, or another reader was faster. */
static pc__taken_file keep(pc__open_files *f, int number, int fd)
{
    int to_close = -1;
    pthread_mutex_lock(&f->lock);
    pc__taken_file taken = {fd, find(f, number)};
    if (taken.place >= 0) {
        to_close = fd;
        taken.fd = f->open[taken.place].fd;
    } else if ((taken.place = place_for_one(f)) >= 0) {
        to_close = f->open[taken.place].used ? f->open[taken.place].fd : -1;
        f->open[taken.place] = (pc__open_file){.file = number, .fd = fd, .readers = 1, .used = ++f->now};
    }
    pthread_mutex_unlock(&f->lock);
    if (to_close >= 0)
        close(to_close);
    return taken;
}

/* Not by inode and device: some file systems over a network have other numbers of the same file later. */
static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static pc_status open_again(const pc__seen_file *file, int *fd)
{
    int64_t size;
    struct stat info;
    PC__TRY(pc__file_open(file->path, fd, &size));
    if (fstat(*fd, &info) == 0 && is_same(&info, &file->info))
        return PC_OK;
    close(*fd);
    return pc__fail(PC_ERR_FILE, "%s was changed since it was looked through; open the loader again", file->path);
}

pc_status pc__open_files_take(pc__open_files *f, int number, pc__taken_file *taken)
{
    pthread_mutex_lock(&f->lock);
    taken->place = find(f, number);
    taken->fd = taken->place >= 0 ? f->open[taken->place].fd : -1;
    pthread_mutex_unlock(&f->lock);
    if (taken->place >= 0)
        return PC_OK;
    int fd; /* opened without the lock: others need not wait for a slow disk */
    PC__TRY(open_again(&f->files[number], &fd));
    *taken = keep(f, number, fd);
    return PC_OK;
}

void pc__open_files_give(pc__open_files *f, pc__taken_file taken)
{
    if (taken.place < 0) {
        close(taken.fd);
        return;
    }
    pthread_mutex_lock(&f->lock);
    f->open[taken.place].readers--;
    pthread_mutex_unlock(&f->lock);
}

pc_status pc__open_files_add(pc__open_files *f, const char *path)
{
    int64_t size;
    int fd;
    PC__TRY(pc__grow((void **)&f->files, &f->room, f->count, sizeof *f->files));
    pc__seen_file file = {.path = pc__strdup(path)};
    if (!file.path)
        return PC_ERR_MEMORY;
    const pc_status status = pc__file_open(path, &fd, &size);
    if (status != PC_OK) {
        pc__free(file.path);
        return status;
    }
    if (fstat(fd, &file.info) != 0)
        file.info = (struct stat){0}; /* then it is like none */
    f->files[f->count] = file;
    pc__open_files_give(f, keep(f, f->count++, fd));
    return PC_OK;
}

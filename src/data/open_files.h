/* open_files.h: many files to read parts of, of which a few at a time are open: a process may have no more than some hundreds.
 * Threads may take the same file and others at once. */
#ifndef PC__OPEN_FILES_H
#define PC__OPEN_FILES_H

#include "base/base.h"

#include <pthread.h>
#include <sys/stat.h>

enum { PC__OPEN_FILES = 64 };

/* A file that was looked at once: opened again, it must be the same. */
typedef struct pc__seen_file {
    char *path;
    struct stat info;
} pc__seen_file;

typedef struct pc__open_file {
    int file, fd, readers;
    uint64_t used; /* when it was taken last; 0: nothing is here */
} pc__open_file;

typedef struct pc__open_files {
    pc__seen_file *files;
    int count, room;
    pthread_mutex_t lock; /* over what is below */
    pc__open_file open[PC__OPEN_FILES];
    uint64_t now;
} pc__open_files;

/* One that is open, for its reader. */
typedef struct pc__taken_file {
    int fd, place; /* -1: it is this reader's alone */
} pc__taken_file;

/* Files of zeros have none. */
void pc__open_files_drop(pc__open_files *files);

/* Open one more, whose number is the count before. */
pc_status pc__open_files_add(pc__open_files *files, const char *path);

/* File `number`, to read by `pread`; each that is taken is given back. PC_ERR_FILE: it cannot be opened, or is not what it was
 * when it was added. */
pc_status pc__open_files_take(pc__open_files *files, int number, pc__taken_file *taken);
void pc__open_files_give(pc__open_files *files, pc__taken_file taken);

#endif

/* root.h: where the probe reads: this machine, a folder that holds a copy of one, or a recording (one text file).
 *
 * Paths have no leading slash. Every read is bounded: files of /sys and /proc may be odd, and a recorded machine may be
 * anything. What programs and libraries answer lies under answers/ of a folder or recording.
 */
#ifndef PC__PROBE_ROOT_H
#define PC__PROBE_ROOT_H

#include "base/base.h"

#include <sys/types.h>

typedef struct pc__root pc__root;

enum { PC__NO_DEVICE = -1 };

/* One thing in a recording: a file with its content, a link with its target, or a file of which only the status is
 * known. */
typedef struct pc__root_entry {
    char *path;
    char *content; /* NULL: none is known */
    size_t length;
    bool link;
    bool has_status;
    unsigned mode, uid, gid;
    int major;           /* of a device file; PC__NO_DEVICE: a file in /dev that is none; 0: unknown */
    int64_t total, free; /* of the file system there; -1: unknown */
} pc__root_entry;

/* What is known of a file beside its content. */
typedef struct pc__root_status {
    unsigned mode, uid, gid;
    int major;
} pc__root_status;

typedef void (*pc__root_each)(void *context, const char *name);

/* path NULL: this machine. NULL with an error. */
pc__root *pc__root_open(const char *path, bool recording);
void pc__root_close(pc__root *root);
bool pc__root_live(const pc__root *root);
bool pc__root_is_folder(const pc__root *root); /* that holds a machine: not this one, and no recording */
bool pc__root_starved(const pc__root *root);   /* memory ran out while something was read */

/* The first n - 1 bytes of a file, ended by 0; the length, or -1 when it cannot be read (errno says why). */
ssize_t pc__root_read(pc__root *root, const char *path, char *text, size_t n);

/* The first line without blanks at its ends; false when it cannot be read or is empty. */
bool pc__root_line(pc__root *root, const char *path, char *line, size_t n);

/* A whole file of at most `limit` bytes (its beginning when it is longer; its end with `tail`), from pc__alloc; NULL
 * when it cannot be read. No error is recorded. */
char *pc__root_text(pc__root *root, const char *path, size_t limit, bool tail);

/* The same, kept out of recordings. */
char *pc__root_whole(pc__root *root, const char *path, size_t limit, bool tail);

/* The lines of a file that begin with `prefix`, from pc__alloc; NULL when it cannot be read. Recordings hold only
 * those. */
char *pc__root_lines(pc__root *root, const char *path, const char *prefix);

/* What stands behind the next `separator` (the next line behind '\n'), NULL where there is none. */
static inline char *pc__behind(const char *text, char separator)
{
    char *end = strchr(text, separator);
    return end ? end + 1 : NULL;
}

/* Call back for each name in a folder that begins with `prefix`, in the order of strverscmp; how many, -1 when there is
 * no such folder. */
int pc__root_list(pc__root *root, const char *path, const char *prefix, pc__root_each each, void *context);

/* The target of a symbolic link as it is written. */
bool pc__root_link(pc__root *root, const char *path, char *target, size_t n);

bool pc__root_exists(pc__root *root, const char *path);
bool pc__root_stat(pc__root *root, const char *path, pc__root_status *status);

/* Size of the file system that holds `path`, and how much of it is free. */
bool pc__root_space(pc__root *root, const char *path, int64_t *total, int64_t *free_bytes);

/* A variable of the environment; NULL when it is not set. Recorded machines have answers/environment. */
const char *pc__root_env(pc__root *root, const char *name);

/* Note for a recording what was learned otherwise (answers/nvml). */
void pc__root_note(pc__root *root, const char *path, const char *content);

/* Keep nothing of what is read from now on, or do so again. */
void pc__root_keep_quiet(pc__root *root, bool quiet);

/* What was read as a recording. */
pc_status pc__root_write(pc__root *root, const char *path);

/* root_recording.c: read a recording; the entries are sorted by path. */
pc_status pc__recording_read(const char *path, pc__root_entry **entries, int *count);
void pc__recording_free(pc__root_entry *entries, int count);
const pc__root_entry *pc__recording_find(const pc__root_entry *entries, int count, const char *path);

/* One entry in the words of a recording, at the end of `text`. */
void pc__recording_add(pc__text *text, const pc__root_entry *entry);

#endif

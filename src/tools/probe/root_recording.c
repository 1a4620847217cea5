/* root_recording.c: recordings, machines in one text file.
 *
 *     paracord machine 1
 *     like healthy.txt                        take over another recording that lies beside this one
 *     without proc/driver                     ... but for what is there or below
 *     sys/class/x/vendor = 0x10de             a file of one line
 *     proc/meminfo =                          a file whose lines follow, each behind a bar
 *     |MemTotal: 1 kB
 *     sys/class/x/driver -> ../../drivers/y   a symbolic link
 *     dev/nvidia0 : mode=666 uid=0 gid=0      what is known of a file beside its content; major=195 of a device,
 *                                             major=none of a file in /dev that is none
 *     dev/shm : total=67108864 free=67108864  the file system there
 *
 * A later line about a path replaces an earlier one. \\ and \xNN stand for bytes that are no text.
 */
#include "probe/root.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#define FILE_MAX (8 << 20)
#define DEPTH_MAX 4 /* of `like` */

typedef struct recording {
    pc__root_entry *entries;
    int count, capacity;
    const char *file; /* for messages */
    int depth;
} recording;

static void free_entry(pc__root_entry *entry)
{
    pc__free(entry->path);
    pc__free(entry->content);
}

void pc__recording_free(pc__root_entry *entries, int count)
{
    for (int i = 0; i < count; i++)
        free_entry(&entries[i]);
    pc__free(entries);
}

static pc__root_entry *entry_of(recording *r, const char *path)
{
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->entries[i].path, path))
            return &r->entries[i];
    if (pc__grow((void **)&r->entries, &r->capacity, r->count, sizeof *r->entries) != PC_OK)
        return NULL;
    pc__root_entry *entry = &r->entries[r->count];
    *entry = (pc__root_entry){.path = pc__strdup(path), .total = -1, .free = -1};
    r->count += entry->path != NULL;
    return entry->path ? entry : NULL;
}

static void remove_below(recording *r, const char *path)
{
    size_t n = strlen(path);
    int kept = 0;
    for (int i = 0; i < r->count; i++) {
        const char *p = r->entries[i].path;
        if (!strncmp(p, path, n) && (!p[n] || p[n] == '/'))
            free_entry(&r->entries[i]);
        else
            r->entries[kept++] = r->entries[i];
    }
    r->count = kept;
}

/* Take \\ and \xNN out of a line in place; the length. */
static size_t unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        unsigned byte;
        if (from[0] == '\\' && from[1] == '\\') {
            *to++ = '\\';
            from += 2;
        } else if (from[0] == '\\' && from[1] == 'x' && isxdigit((unsigned char)from[2]) &&
                   isxdigit((unsigned char)from[3]) && sscanf(from + 2, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = 0;
    return (size_t)(to - text);
}

static pc_status append(pc__root_entry *entry, const char *bytes, size_t n, bool newline)
{
    char *content = pc__realloc(entry->content, entry->length + n + 2);
    if (!content)
        return PC_ERR_MEMORY;
    entry->content = content;
    memcpy(content + entry->length, bytes, n);
    entry->length += n;
    if (newline)
        content[entry->length++] = '\n';
    content[entry->length] = 0;
    return PC_OK;
}

static void read_status(pc__root_entry *entry, char *words)
{
    char *rest;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        unsigned number;
        long long bytes;
        entry->has_status |= !strncmp(word, "mode=", 5);
        if (sscanf(word, "mode=%o", &number) == 1)
            entry->mode = number;
        else if (sscanf(word, "uid=%u", &number) == 1)
            entry->uid = number;
        else if (sscanf(word, "gid=%u", &number) == 1)
            entry->gid = number;
        else if (sscanf(word, "major=%u", &number) == 1)
            entry->major = (int)number;
        else if (!strcmp(word, "major=none"))
            entry->major = PC__NO_DEVICE;
        else if (sscanf(word, "total=%lld", &bytes) == 1)
            entry->total = bytes;
        else if (sscanf(word, "free=%lld", &bytes) == 1)
            entry->free = bytes;
    }
}

static pc_status read_file(recording *r, const char *path);

static pc_status take_over(recording *r, const char *name)
{
    char path[4096];
    const char *slash = strrchr(r->file, '/'), *file = r->file;
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - file + 1) : 0, file, name);
    if (r->depth >= DEPTH_MAX)
        return pc__fail(PC_ERR_FORMAT, "%s: more than %d recordings take over one another", file, DEPTH_MAX);
    r->depth++;
    PC__TRY(read_file(r, path));
    r->file = file;
    r->depth--;
    return PC_OK;
}

/* "PATH = VALUE" and its like; *open is the entry that lines behind bars belong to. */
static pc_status read_entry(recording *r, char *line, int number, int *open)
{
    char *blank = strchr(line, ' ');
    if (!blank || blank == line)
        return pc__fail(PC_ERR_FORMAT, "%s:%d: neither \"PATH = VALUE\" nor another line of a recording", r->file,
                        number);
    *blank = 0;
    char *value = blank + 1;
    pc__root_entry *entry = entry_of(r, line);
    if (!entry)
        return PC_ERR_MEMORY;
    bool link = !strncmp(value, "->", 2), status = value[0] == ':';
    if (!link && !status && value[0] != '=')
        return pc__fail(PC_ERR_FORMAT, "%s:%d: =, -> or : must follow the path", r->file, number);
    value += link ? 2 : 1;
    value += *value == ' ';
    if (status) {
        read_status(entry, value);
        return PC_OK;
    }
    *open = link ? -1 : (int)(entry - r->entries);
    entry->link = link;
    entry->length = 0;
    size_t n = unescape(value);
    return append(entry, value, n, n && !link);
}

static pc_status read_line(recording *r, char *line, int number, int *open)
{
    if (line[0] == '|' && *open >= 0) {
        size_t n = unescape(line + 1);
        return append(&r->entries[*open], line + 1, n, true);
    }
    if (!line[0] || line[0] == '#')
        return PC_OK;
    *open = -1;
    if (!strncmp(line, "like ", 5))
        return take_over(r, line + 5);
    if (!strncmp(line, "without ", 8)) {
        remove_below(r, line + 8);
        return PC_OK;
    }
    return read_entry(r, line, number, open);
}

static char *load(const char *path)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &status)) {
        pc__fail_file(errno, "cannot read the recording %s", path);
        if (file >= 0)
            close(file);
        return NULL;
    }
    char *text = NULL;
    size_t size = (size_t)status.st_size, n = 0;
    if (!S_ISREG(status.st_mode) || status.st_size > FILE_MAX)
        pc__fail(PC_ERR_FORMAT, "%s is no recording of a machine: it must be a folder or a text file below %d MiB",
                 path, FILE_MAX >> 20);
    else
        text = pc__alloc(size + 1);
    for (ssize_t got = 1; text && got > 0 && n<size; n += got> 0 ? (size_t)got : 0)
        got = read(file, text + n, size - n);
    close(file);
    if (text)
        text[n] = 0;
    return text;
}

static pc_status read_file(recording *r, const char *path)
{
    static const char first[] = "paracord machine 1";
    char *text = load(path);
    if (!text)
        return pc_error_last()->status;
    r->file = path;
    pc_status status = PC_OK;
    int number = 0, open = -1;
    for (char *line = text, *end; status == PC_OK && line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        if (++number > 1)
            status = read_line(r, line, number, &open);
        else if (strcmp(line, first))
            status =
                pc__fail(PC_ERR_FORMAT, "%s is no recording of a machine: its first line is not \"%s\"", path, first);
    }
    pc__free(text);
    return status;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const pc__root_entry *)a)->path, ((const pc__root_entry *)b)->path);
}

pc_status pc__recording_read(const char *path, pc__root_entry **entries, int *count)
{
    recording r = {0};
    pc_status status = read_file(&r, path);
    if (status != PC_OK) {
        pc__recording_free(r.entries, r.count);
        return status;
    }
    if (r.count)
        qsort(r.entries, (size_t)r.count, sizeof *r.entries, by_path);
    *entries = r.entries;
    *count = r.count;
    return PC_OK;
}

const pc__root_entry *pc__recording_find(const pc__root_entry *entries, int count, const char *path)
{
    pc__root_entry key = {.path = (char *)path};
    return count ? bsearch(&key, entries, (size_t)count, sizeof *entries, by_path) : NULL;
}

static void add_escaped(pc__text *text, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\\')
            pc__text_append(text, "\\\\", 2);
        else if ((c < ' ' && c != '\t') || c == 127)
            pc__text_add(text, "\\x%02x", c);
        else
            pc__text_append(text, bytes + i, 1);
    }
}

void pc__recording_add(pc__text *text, const pc__root_entry *entry)
{
    if (entry->has_status)
        pc__text_add(text, "%s : mode=%o uid=%u gid=%u", entry->path, entry->mode, entry->uid, entry->gid);
    if (entry->has_status && entry->major > 0)
        pc__text_add(text, " major=%d", entry->major);
    else if (entry->has_status && entry->major == PC__NO_DEVICE)
        pc__text_add(text, " major=none");
    if (entry->has_status)
        pc__text_append(text, "\n", 1);
    if (entry->total >= 0)
        pc__text_add(text, "%s : total=%lld free=%lld\n", entry->path, (long long)entry->total, (long long)entry->free);
    if (!entry->content)
        return;
    const char *end = memchr(entry->content, '\n', entry->length);
    bool one_line = entry->link || !end || end == entry->content + entry->length - 1;
    pc__text_add(text, "%s %s%s", entry->path, entry->link ? "->" : "=", one_line && entry->length ? " " : "");
    if (one_line) {
        add_escaped(text, entry->content, end ? (size_t)(end - entry->content) : entry->length);
        pc__text_append(text, "\n", 1);
        return;
    }
    for (const char *line = entry->content, *stop = line + entry->length; line < stop; line = end + 1) {
        end = memchr(line, '\n', (size_t)(stop - line));
        end = end ? end : stop;
        pc__text_append(text, line == entry->content ? "\n|" : "|", line == entry->content ? 2 : 1);
        add_escaped(text, line, (size_t)(end - line));
        pc__text_append(text, "\n", 1);
    }
}

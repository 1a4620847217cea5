/* shards.c: what tar shards have, and their members' bytes. */
#include "data/shards.h"

#include "data/braces.h"
#include "io/tar.h"

#include <errno.h>
#include <glob.h>
#include <paracord/memory.h>
#include <strings.h>
#include <unistd.h>

static void drop(pc__shard_sample *sample)
{
    for (int k = 0; k < 2; k++) {
        pc__free(sample->field[k].bytes);
        pc__free(sample->field[k].name);
    }
    *sample = (pc__shard_sample){0};
}

void pc__shards_close(pc__shards *s)
{
    drop(&s->open);
    for (int i = 0; i < s->sample_count; i++)
        drop(&s->samples[i]);
    pc__open_files_drop(&s->files);
    pc__free(s->samples);
    pc__free(s->key);
    *s = (pc__shards){0};
}

/* --- members --- */

/* Which of "jpg;png" `ending` is, from 0; -1: none. */
static int rank_of(const char *list, const char *ending)
{
    const size_t n = strlen(ending);
    int rank = 0;
    for (const char *at = list; *at; at += *at == ';', rank++) {
        const size_t length = strcspn(at, ";");
        if (n && length == n && strncasecmp(at, ending, n) == 0)
            return rank;
        at += length;
    }
    return -1;
}

static pc__member_kind kind_of(const char *ending)
{
    const char *last = strrchr(ending, '.'); /* "left.npy" */
    ending = last ? last + 1 : ending;
    return strcasecmp(ending, "npy") == 0   ? PC__MEMBER_ARRAY
           : strcasecmp(ending, "cls") == 0 ? PC__MEMBER_LABEL
                                            : PC__MEMBER_PICTURE;
}

/* The sample is whole when the next one begins, or the file ends. */
static pc_status end_sample(pc__shards *s)
{
    if (!s->open.field[0].name || (s->has_y && !s->open.field[1].name)) {
        s->skipped += s->open.field[0].name || s->open.field[1].name || s->lacks;
        s->lacks = false;
        drop(&s->open);
        return PC_OK;
    }
    if (s->sample_count == INT32_MAX / 2)
        return pc__fail(PC_ERR_UNSUPPORTED, "more than %d samples in tar shards", s->sample_count);
    PC__TRY(pc__grow((void **)&s->samples, &s->sample_room, s->sample_count, sizeof *s->samples));
    s->samples[s->sample_count++] = s->open;
    s->open = (pc__shard_sample){0};
    s->lacks = false;
    return PC_OK;
}

static pc_status keep_bytes(pc__shards *s, pc__tar *tar, pc__shard_member *m)
{
    size_t n;
    PC__TRY(pc__tar_take(tar, s->most - s->kept, &m->bytes, &n));
    m->size = (int64_t)n;
    s->kept += m->size;
    return PC_OK;
}

static const pc__shard_member *field_named(const pc__shard_sample *sample, const char *name)
{
    for (int k = 0; k < 2; k++)
        if (sample->field[k].name && strcmp(sample->field[k].name, name) == 0)
            return &sample->field[k];
    return NULL;
}

/* The member of this name in the file that is read. Links mostly come in the order of what they lead to. */
static const pc__shard_member *find_target(pc__shards *s, const char *name)
{
    const pc__shard_member *found = field_named(&s->open, name);
    const int n = s->sample_count - s->first;
    for (int k = 0; !found && k < n; k++) {
        const int at = (int)(((int64_t)s->linked + k) % n);
        found = field_named(&s->samples[s->first + at], name);
        if (found)
            s->linked = at;
    }
    return found;
}

static pc_status copy_bytes(pc__shards *s, const pc__shard_member *from, pc__shard_member *m)
{
    if (from->size > s->most - s->kept)
        return pc__fail(PC_ERR_MEMORY, "no room for %s, which is linked to %s: %lld bytes", m->name, from->name,
                        (long long)from->size);
    m->bytes = pc__alloc((size_t)from->size + 1);
    if (!m->bytes)
        return PC_ERR_MEMORY;
    memcpy(m->bytes, from->bytes, (size_t)from->size + 1);
    s->kept += m->size;
    return PC_OK;
}

/* Its bytes are another member's, which a sample has, or they are not at hand: it has no name then. */
static pc_status take_link(pc__shards *s, const char *link, pc__shard_member *m)
{
    const pc__shard_member *target = find_target(s, link);
    if (target && (target->bytes || m->kind != PC__MEMBER_LABEL)) {
        m->size = target->size;
        m->offset = target->offset;
        return target->bytes ? copy_bytes(s, target, m) : PC_OK;
    }
    s->lacks = true;
    pc__free(m->name);
    m->name = NULL;
    return PC_OK;
}

static pc_status take_own(pc__shards *s, pc__tar *tar, const pc__tar_member *member, pc__shard_member *m)
{
    m->size = member->size;
    m->offset = m->kind == PC__MEMBER_LABEL ? -1 : member->offset;
    return m->offset < 0 ? keep_bytes(s, tar, m) : PC_OK;
}

/* What was there goes last: it may be what a link leads to, or all that the sample has. */
static pc_status put_member(pc__shards *s, pc__tar *tar, const pc__tar_member *member, pc__shard_member now,
                            pc__shard_member *m)
{
    now.name = pc__strdup(member->name);
    if (!now.name)
        return PC_ERR_MEMORY;
    const pc_status status = member->link ? take_link(s, member->link, &now) : take_own(s, tar, member, &now);
    if (status != PC_OK || !now.name) {
        pc__free(now.name);
        return status;
    }
    s->kept -= m->bytes ? m->size : 0;
    pc__free(m->bytes);
    pc__free(m->name);
    *m = now;
    return PC_OK;
}

/* Of several endings that would do, the one that is named first counts. */
static pc_status take_member(pc__shards *s, pc__tar *tar, const pc__tar_member *member, const char *ending, int field)
{
    pc__shard_member *m = &s->open.field[field];
    const int rank = rank_of(s->endings[field], ending);
    if (m->name && rank == m->rank)
        return pc__fail(PC_ERR_FORMAT,
                        "%s: a sample has %.200s twice, one behind the other: names of samples must differ",
                        s->files.files[s->files.count - 1].path, member->name);
    if (m->name && rank > m->rank)
        return PC_OK;
    return put_member(s, tar, member,
                      (pc__shard_member){.rank = rank, .shard = s->files.count - 1, .kind = kind_of(ending)}, m);
}

static pc_status begin_sample(pc__shards *s, const char *name, size_t key)
{
    if (s->key && strlen(s->key) == key && memcmp(s->key, name, key) == 0)
        return PC_OK;
    PC__TRY(end_sample(s));
    pc__free(s->key);
    s->key = pc__alloc(key + 1);
    if (!s->key)
        return PC_ERR_MEMORY;
    memcpy(s->key, name, key);
    s->key[key] = 0;
    return PC_OK;
}

static pc_status each(void *context, pc__tar *tar, const pc__tar_member *member)
{
    pc__shards *s = context;
    const char *base = strrchr(member->name, '/');
    const char *dot = strchr(base ? base : member->name, '.');
    if (!dot || dot == (base ? base + 1 : member->name)) /* no ending, or a hidden file */
        return PC_OK;
    PC__TRY(begin_sample(s, member->name, (size_t)(dot - member->name)));
    for (int k = 0; k < 2; k++)
        if (rank_of(s->endings[k], dot + 1) >= 0)
            PC__TRY(take_member(s, tar, member, dot + 1, k));
    return PC_OK;
}

/* --- files --- */

static pc_status read_shard(pc__shards *s, const char *path)
{
    pc__taken_file taken;
    s->first = s->sample_count;
    s->linked = 0;
    PC__TRY(pc__open_files_add(&s->files, path));
    PC__TRY(pc__open_files_take(&s->files, s->files.count - 1, &taken));
    const pc_status status = pc__tar_read(path, taken.fd, each, s);
    pc__open_files_give(&s->files, taken);
    PC__TRY(status);
    PC__TRY(end_sample(s));
    pc__free(s->key);
    s->key = NULL; /* samples do not go on in the next file */
    return PC_OK;
}

static pc_status read_matching(void *context, const char *pattern)
{
    pc__shards *s = context;
    glob_t found = {0};
    const int missing = glob(pattern, 0, NULL, &found);
    pc_status status = PC_OK;
    if (missing == GLOB_NOSPACE)
        status = pc__fail(PC_ERR_MEMORY, "cannot look for %s: out of memory", pattern);
    else if (missing)
        status = pc__fail(PC_ERR_NOT_FOUND, "there is no file %s", pattern);
    for (size_t i = 0; status == PC_OK && i < found.gl_pathc; i++)
        status = read_shard(s, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

static pc_status read_all(pc__shards *s, const char *pattern)
{
    PC__TRY(access(pattern, F_OK) == 0 ? read_shard(s, pattern) : pc__braces_expand(pattern, read_matching, s));
    if (s->sample_count == 0)
        return pc__fail(PC_ERR_NOT_FOUND, "%s: no samples: none has a member that ends in %s%s%s", pattern,
                        s->endings[0], s->has_y ? " and one that ends in " : "", s->has_y ? s->endings[1] : "");
    return PC_OK;
}

pc_status pc__shards_open(const char *pattern, const pc_tar_options *o, pc__shards *s)
{
    const int64_t left = pc_memory_left();
    *s = (pc__shards){
        .endings = {o->x ? o->x : "jpg;jpeg;png;webp;gif;bmp;tif;tiff;ppm;pgm;pbm;npy", o->y ? o->y : "cls"},
        .has_y = !o->y || *o->y,
        .most = left > 0 ? left / 2 : INT64_MAX,
        .files = {.lock = PTHREAD_MUTEX_INITIALIZER}};
    const pc_status status = read_all(s, pattern);
    if (status != PC_OK)
        pc__shards_close(s);
    return status;
}

const char *pc__shards_path(const pc__shards *s, const pc__shard_member *m)
{
    return s->files.files[m->shard].path;
}

static pc_status read_there(const pc__shards *s, const pc__shard_member *m, int fd, uint8_t *to)
{
    for (int64_t done = 0; done < m->size;) {
        const ssize_t got = pread(fd, to + done, (size_t)(m->size - done), (off_t)(m->offset + done));
        if (got == 0)
            return pc__fail(PC_ERR_FILE, "%s became shorter: %s is not there any more", pc__shards_path(s, m), m->name);
        if (got < 0 && errno != EINTR)
            return pc__fail_file(errno, "cannot read %s in %s", m->name, pc__shards_path(s, m));
        done += got > 0 ? got : 0;
    }
    return PC_OK;
}

pc_status pc__shards_read(pc__shards *s, const pc__shard_member *m, const uint8_t **bytes, uint8_t **own)
{
    pc__taken_file taken;
    *own = NULL;
    *bytes = m->bytes;
    if (m->bytes)
        return PC_OK;
    PC__TRY(pc__open_files_take(&s->files, m->shard, &taken));
    *own = pc__alloc((size_t)m->size + 1);
    const pc_status status = *own ? read_there(s, m, taken.fd, *own) : PC_ERR_MEMORY;
    pc__open_files_give(&s->files, taken);
    if (status != PC_OK) {
        pc__free(*own);
        *own = NULL;
    }
    *bytes = *own;
    return status;
}

/* shards.c: what tar shards have, and their members' bytes. */
#include "data/shards.h"

#include "data/braces.h"
#include "io/file.h"
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
    for (int i = 0; i < s->count; i++) {
        pc__free(s->paths[i]);
        if (s->fds[i] >= 0)
            close(s->fds[i]);
    }
    pc__free(s->samples);
    pc__free(s->paths);
    pc__free(s->fds);
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
        s->skipped += s->open.field[0].name || s->open.field[1].name;
        drop(&s->open);
        return PC_OK;
    }
    if (s->sample_count == INT32_MAX / 2)
        return pc__fail(PC_ERR_UNSUPPORTED, "more than %d samples in tar shards", s->sample_count);
    PC__TRY(pc__grow((void **)&s->samples, &s->sample_room, s->sample_count, sizeof *s->samples));
    s->samples[s->sample_count++] = s->open;
    s->open = (pc__shard_sample){0};
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

/* Of several endings that would do, the one that is named first counts. */
static pc_status take_member(pc__shards *s, pc__tar *tar, const pc__tar_member *member, const char *ending, int field)
{
    pc__shard_member *m = &s->open.field[field];
    const int rank = rank_of(s->endings[field], ending);
    if (m->name && rank == m->rank)
        return pc__fail(PC_ERR_FORMAT,
                        "%s: a sample has %.200s twice, one behind the other: names of samples must differ",
                        s->paths[s->count - 1], member->name);
    if (m->name && rank > m->rank)
        return PC_OK;
    s->kept -= m->bytes ? m->size : 0;
    pc__free(m->bytes);
    pc__free(m->name);
    *m = (pc__shard_member){.rank = rank, .name = pc__strdup(member->name)};
    if (!m->name)
        return PC_ERR_MEMORY;
    m->shard = s->count - 1;
    m->kind = kind_of(ending);
    m->size = member->size;
    m->offset = m->kind == PC__MEMBER_LABEL ? -1 : member->offset;
    return m->offset < 0 ? keep_bytes(s, tar, m) : PC_OK;
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
    int room = s->room;
    int64_t size;
    PC__TRY(pc__grow((void **)&s->paths, &room, s->count, sizeof *s->paths));
    PC__TRY(pc__grow((void **)&s->fds, &s->room, s->count, sizeof *s->fds));
    s->paths[s->count] = pc__strdup(path);
    s->fds[s->count] = -1;
    if (!s->paths[s->count++])
        return PC_ERR_MEMORY;
    PC__TRY(pc__file_open(path, &s->fds[s->count - 1], &size));
    PC__TRY(pc__tar_read(path, s->fds[s->count - 1], each, s));
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
        .most = left > 0 ? left / 2 : INT64_MAX};
    const pc_status status = read_all(s, pattern);
    if (status != PC_OK)
        pc__shards_close(s);
    return status;
}

pc_status pc__shards_read(const pc__shards *s, const pc__shard_member *m, const uint8_t **bytes, uint8_t **own)
{
    *own = NULL;
    *bytes = m->bytes;
    if (m->bytes)
        return PC_OK;
    *own = pc__alloc((size_t)m->size + 1);
    if (!*own)
        return PC_ERR_MEMORY;
    for (int64_t done = 0; done < m->size;) {
        const ssize_t got = pread(s->fds[m->shard], *own + done, (size_t)(m->size - done), (off_t)(m->offset + done));
        if (got > 0 || (got < 0 && errno == EINTR)) {
            done += got > 0 ? got : 0;
            continue;
        }
        const int why = errno;
        pc__free(*own);
        *own = NULL;
        return got < 0
                   ? pc__fail_file(why, "cannot read %s in %s", m->name, s->paths[m->shard])
                   : pc__fail(PC_ERR_FILE, "%s became shorter: %s is not there any more", s->paths[m->shard], m->name);
    }
    *bytes = *own;
    return PC_OK;
}

/* open.c: the files of a folder: those of the newest job in it, of its last start, one a rank. */
#include "calls/calls.h"

#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

void pc_calls_free(pc_calls *calls)
{
    if (!calls)
        return;
    for (int i = 0; i < calls->file_count; i++)
        pc__free(calls->files[i].why);
    pc__free(calls->files);
    pc__free(calls->calls);
    pc__free(calls);
}

bool pc__seen_is_pair(const pc__seen_call *call)
{
    return !strcmp(call->op, "send") || !strcmp(call->op, "receive");
}

const pc__seen_file *pc__seen_file_of(const pc_calls *calls, int who)
{
    if (calls->files[0].size == 1)
        return &calls->files[0]; /* ranks are its threads */
    if (who >= 0 && who < calls->file_count && calls->files[who].rank == who)
        return &calls->files[who];
    for (int i = 0; i < calls->file_count; i++)
        if (calls->files[i].rank == who)
            return &calls->files[i];
    return NULL;
}

/* "calls.rank3.json", and not the temporary of a write that was cut off. */
static bool is_ours(const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(name, "calls.", 6) && n > 11 && !strcmp(name + n - 5, ".json");
}

static pc_status read_one(pc_calls *calls, const char *folder, const char *name)
{
    uint8_t *bytes;
    size_t n;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return pc__fail(PC_ERR_FILE, "%.60s...: the path is too long", folder);
    PC__TRY(pc__file_read(path, &bytes, &n));
    const pc_status status = pc__calls_read(calls, path, name, bytes, n);
    pc__free(bytes);
    return status;
}

static pc_status read_all(pc_calls *calls, const char *folder)
{
    pc_status status = PC_OK;
    DIR *list = opendir(folder);
    if (!list)
        return pc__fail_file(errno, "cannot read the folder %s", folder);
    for (const struct dirent *entry; status == PC_OK && (entry = readdir(list));)
        if (is_ours(entry->d_name))
            status = read_one(calls, folder, entry->d_name);
    closedir(list);
    if (status == PC_OK && !calls->file_count)
        status = pc__fail(
            PC_ERR_NOT_FOUND,
            "%s holds no calls of ranks (calls.rank0.json and so on): ranks write them where PARACORD_DIST_DUMP "
            "names the folder, when a wait ends by its deadline or a rank is lost",
            folder);
    return status;
}

static bool belongs(const pc__seen_file *f, const pc__seen_file *newest)
{
    return !strcmp(f->job, newest->job) && f->start == newest->start && f->size == newest->size;
}

/* The last start of the job that wrote last. */
static const pc__seen_file *newest_of(const pc_calls *calls)
{
    const pc__seen_file *best = &calls->files[0];
    for (int i = 1; i < calls->file_count; i++) {
        const pc__seen_file *f = &calls->files[i];
        const bool same = !strcmp(f->job, best->job);
        if (same ? f->start > best->start || (f->start == best->start && f->written > best->written)
                 : f->written > best->written)
            best = f;
    }
    return best;
}

static void leave_out(pc_calls *calls, const char *name)
{
    const size_t n = strlen(calls->left_out);
    snprintf(calls->left_out + n, sizeof calls->left_out - n, "%s%s", n ? ", " : "", name);
}

static int by_rank(const void *a, const void *b)
{
    const pc__seen_file *x = a, *y = b;
    return x->rank != y->rank ? x->rank - y->rank : (x->written < y->written) - (x->written > y->written);
}

void pc__calls_choose(pc_calls *calls)
{
    int kept = 0;
    const pc__seen_file newest = *newest_of(calls);
    qsort(calls->files, (size_t)calls->file_count, sizeof *calls->files, by_rank);
    for (int i = 0; i < calls->file_count; i++) {
        pc__seen_file *f = &calls->files[i];
        const bool twice = kept && calls->files[kept - 1].rank == f->rank;
        if (belongs(f, &newest) && !twice) {
            for (int c = f->first; c < f->first + f->count; c++)
                calls->calls[c].kept = true;
            calls->files[kept++] = *f;
            continue;
        }
        leave_out(calls, f->name);
        pc__free(f->why);
    }
    calls->file_count = kept;
    calls->size = calls->files[0].size;
    const bool threads = calls->size == 1;
    for (int i = 0; threads && i < calls->files[0].count; i++) { /* which are ranks */
        const pc__seen_call *c = &calls->calls[calls->files[0].first + i];
        calls->size = PC__MAX(calls->size, PC__MAX(c->of, c->who + 1));
    }
}

pc_calls *pc_calls_open(const char *folder)
{
    PC__NEED_OR(NULL, folder);
    pc_calls *calls = pc__calloc(1, sizeof *calls);
    if (!calls)
        return NULL;
    if (read_all(calls, folder) != PC_OK) {
        pc_calls_free(calls);
        return NULL;
    }
    pc__calls_choose(calls);
    return calls;
}

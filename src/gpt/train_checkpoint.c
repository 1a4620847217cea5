/* train_checkpoint.c: a training between two steps as one safetensors file, whatever number of ranks write and read it: weights
 * ("w.NAME"), moments ("m0.NAME", "m1.NAME"), the curves, and what else there is as notes. */
#include "dist/group.h"
#include "gpt/train.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "nn/optimizer.h"
#include "train/metrics_line.h"

#include <paracord/random.h>

#include <math.h>
#include <unistd.h>

static pc_tensor *curve_tensor(const pc__gpt_training *t)
{
    const pc__curve *c = &t->run.curve;
    double values[2 * PC__CURVE_GROUPS];
    for (int64_t i = 0; i < c->count; i++)
        values[2 * i] = c->groups[i].loss, values[2 * i + 1] = (double)c->groups[i].seen;
    return pc_from_data(values, PC_SHAPE(c->count, 2), PC_F64, PC_DEVICE_CPU);
}

static pc_tensor *tested_tensor(const pc__gpt_training *t)
{
    static const pc__gpt_tested none;
    return pc_from_data(t->run.tested ? t->run.tested : &none, PC_SHAPE(t->run.tested_count, 3), PC_F64, PC_DEVICE_CPU);
}

static bool is_shared_out(const pc__gpt_training *t)
{
    return t->zero || t->network;
}

/* The first rank's file, as it stands before what is shared out is in it. */
typedef struct begun {
    pc_status status;
    int64_t start;
    pc__draft draft;
} begun;

/* In a scope. */
static begun begin(const pc__gpt_training *t, const char *path, pc_parameter *list, int n)
{
    char step[32], seed[32], draws[32], seconds[40], best[40], width[32], speed[40], mfu[40];
    const pc_generator generator = pc_generator_get();
    const pc__plain_numbers plain = pc__plain_numbers_begin();
    snprintf(step, sizeof step, "%lld", (long long)t->at.step);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)generator.seed);
    snprintf(draws, sizeof draws, "%llu", (unsigned long long)generator.step);
    snprintf(seconds, sizeof seconds, "%.6g", t->run.seconds);
    snprintf(best, sizeof best, "%a", t->best);
    snprintf(width, sizeof width, "%lld", (long long)t->run.curve.width);
    snprintf(speed, sizeof speed, "%.6g", t->run.tokens_per_second);
    snprintf(mfu, sizeof mfu, "%.6g", t->run.mfu);
    pc__plain_numbers_end(plain);
    const pc_weights_note_pair notes[] = {{"checksum", "0000000000000000"},
                                          {"paracord gpt", "1"},
                                          {"settings", t->settings},
                                          {"step", step},
                                          {"seed", seed},
                                          {"draws", draws},
                                          {"seconds", seconds},
                                          {"best", best},
                                          {"width", width},
                                          {"tokens a second", speed},
                                          {"mfu", mfu},
                                          {NULL, NULL}};
    begun b = {.draft.fd = -1};
    snprintf(list[n].name, sizeof list[n].name, "curve");
    list[n].tensor = curve_tensor(t);
    snprintf(list[n + 1].name, sizeof list[n + 1].name, "tested");
    list[n + 1].tensor = tested_tensor(t);
    if (!list[n].tensor || !list[n + 1].tensor)
        b.status = PC_ERR_MEMORY;
    else
        b.status = pc__weights_begin(path, list, n + 2, notes, &b.draft, &b.start);
    return b;
}

/* Of what several ranks have alike the first of them writes it. */
static bool is_to_write(const pc__gpt_training *t, const pc__weights_part *part)
{
    const bool cut = part->runs.run, first = !t->network || pc_group_rank(t->network) == 0;
    return (cut || first) && (t->zero || t->copy == 0);
}

/* This rank's pieces, and of the first the two curves. */
static pc_status put_pieces(const pc__gpt_training *t, const char *path, const char *temporary, int64_t start,
                            pc__gpt_pieces *p)
{
    int used = 0;
    for (int i = 0; i < p->part_count; i++)
        if (is_to_write(t, &p->parts[i]))
            p->parts[used++] = p->parts[i];
    for (int i = p->count; i < p->count + 2 && !t->rank; i++)
        p->parts[used++] = (pc__weights_part){.tensor = i, .t = p->list[i].tensor};
    return used ? pc__weights_put(path, temporary, start, p->list, p->parts, used) : PC_OK;
}

/* What every rank must know of the first one's: where tensors begin, and the temporary's number. */
typedef struct place {
    int64_t start, number;
} place;

/* This rank's part of the file that the first one has begun, and none of it is lost when that one is the checkpoint. */
static pc_status write_part(const pc__gpt_training *t, const char *path, const begun *b, place *all, pc__gpt_pieces *p)
{
    if (!is_shared_out(t))
        return put_pieces(t, path, b->draft.temporary, b->start, p);
    const place mine = {b->start, b->draft.number};
    PC__TRY(pc__group_exchange(t->o.group, &mine, sizeof mine, all));
    char *temporary = pc__file_temporary(path, (int)all[0].number);
    const pc_status status = temporary ? put_pieces(t, path, temporary, all[0].start, p) : pc_error_last()->status;
    const bool there = !t->rank || !temporary || access(temporary, F_OK) == 0;
    pc__free(temporary);
    if (status == PC_OK)
        return pc__group_exchange(t->o.group, &mine, sizeof mine, all);
    if (there)
        return status;
    pc_error own = pc__error_take(); /* the first rank has heard of an error, and removed it: that one is to be told */
    if (pc__group_exchange(t->o.group, &mine, sizeof mine, all) == PC_OK)
        (void)pc__error_put(&own);
    return pc_error_last()->status;
}

/* All ranks that have a part of it write, and the first makes it the checkpoint when all have. Who fails tells the others,
 * whose exchanges end with what it says: nobody else has told anything before, so that it is known which rank's disk it is. */
static pc_status write_parts(const pc__gpt_training *t, const char *path, begun *b, pc__gpt_pieces *p)
{
    place *all = pc__alloc((size_t)t->ranks * sizeof *all);
    pc_status status = !all ? PC_ERR_MEMORY : b->status;
    if (status == PC_OK)
        status = write_part(t, path, b, all, p);
    if (!t->rank && status == PC_OK)
        status = pc__gpt_checkpoint_seal(b->draft.temporary, path);
    if (!t->rank && status == PC_OK)
        status = pc__file_commit(&b->draft, path);
    else
        pc__file_drop(&b->draft);
    pc__free(all);
    return status;
}

pc_status pc__gpt_checkpoint_save(pc__gpt_training *t, const char *path)
{
    if (t->rank && !is_shared_out(t))
        return PC_OK;
    PC__TRY(pc__optimizer_settle(t->optimizer));
    begun mine = {.draft.fd = -1};
    PC_SCOPE {
        pc__gpt_pieces p;
        mine.status = pc__gpt_pieces_find(t, &p);
        if (mine.status == PC_OK && !t->rank)
            mine = begin(t, path, p.list, p.count);
        mine.status = write_parts(t, path, &mine, &p);
        pc__gpt_pieces_free(&p);
    }
    return mine.status;
}

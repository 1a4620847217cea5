/* agree.c: comparing networks over ranks: a sum of all that is in them first, and what they are only where that differs. */
#include "parallel/agree.h"

#include "nn/module.h"

#include <paracord/autograd.h>

enum { WORDS = 320 };

enum { MANNER = 120 };

static const char *words_of_manner(const pc__manner *m, char words[MANNER])
{
    char kind[48] = "pc_ddp";
    if (m->stage)
        snprintf(kind, sizeof kind, "pc_zero, stage %lld, ahead %lld", (long long)m->stage, (long long)m->ahead);
    snprintf(words, MANNER, "%s, bucket_mb %.6g, reduce_dtype %s", kind, m->bucket_mb,
             pc_dtype_name((pc_dtype)m->dtype));
    return words;
}

pc_status pc__agree_on_manner(pc_group *group, pc__manner mine)
{
    char one[MANNER], other[MANNER];
    pc__manner *all = pc__alloc((size_t)group->size * sizeof *all);
    pc_status status = all ? pc__group_exchange(group, &mine, sizeof mine, all) : PC_ERR_MEMORY;
    for (int r = 1; r < group->size && status == PC_OK; r++)
        if (memcmp(&all[r], all, sizeof *all) != 0)
            status =
                pc__fail(PC_ERR_STATE,
                         "ranks reduce their gradients otherwise: rank 0 has %s, and rank %d %s; give all the same",
                         words_of_manner(all, one), r, words_of_manner(&all[r], other));
    pc__free(all);
    return status;
}

typedef struct outcome {
    pc_status status;
    char words[WORDS];
} outcome;

static pc_status first_failure(const outcome *all, int size)
{
    for (int r = 0; r < size; r++)
        if (all[r].status != PC_OK)
            return pc__fail(all[r].status, "rank %d: %s", r, all[r].words);
    return PC_OK;
}

pc_status pc__agree_on_success(pc_group *group, pc_status mine)
{
    if (group->size == 1)
        return mine;
    const pc_error own = mine != PC_OK ? pc__error_take() : (pc_error){0};
    outcome o = {.status = mine}, *all = pc__alloc((size_t)group->size * sizeof *all);
    if (mine != PC_OK)
        snprintf(o.words, sizeof o.words, "%.*s", WORDS - 1, own.message);
    pc_status status = all ? pc__group_exchange(group, &o, sizeof o, all) : PC_ERR_MEMORY;
    if (status == PC_OK && mine == PC_OK)
        status = first_failure(all, group->size);
    pc__free(all);
    if (mine == PC_OK)
        return status;
    pc_error_clear();
    return pc__error_put(&own);
}

typedef struct summary {
    uint64_t sum;
    int count;
} summary;

/* What is compared, as text: an error says it. */
static void words_of(const char *name, const pc_tensor *t, char words[WORDS])
{
    const bool c_order = pc__is_contiguous(t);
    snprintf(words, WORDS, "%.90s, %s %s%s%s", name, pc_dtype_name((pc_dtype)t->dtype), PC__SHAPE_OF(t),
             c_order ? "" : " in another memory order than C's", pc_requires_grad(t) ? "" : ", not trained");
}

static pc_status add(void *context, const char *name, pc__named *tensor)
{
    summary *s = context;
    const pc_tensor *t = tensor->object;
    char words[WORDS];
    words_of(name, t, words);
    for (const char *c = words; *c; c++) /* FNV-1a */
        s->sum = (s->sum ^ (unsigned char)*c) * 0x100000001b3u;
    for (int i = 0; i < t->ndim; i++)
        s->sum = (s->sum ^ (uint64_t)t->strides[i]) * 0x100000001b3u;
    s->count++;
    return PC_OK;
}

typedef struct search {
    int left;
    char words[WORDS];
} search;

static pc_status find(void *context, const char *name, pc__named *tensor)
{
    search *s = context;
    if (s->left-- == 0)
        words_of(name, tensor->object, s->words);
    return PC_OK;
}

/* Number i of both, one after the other, until they differ. */
static pc_status tell(pc_group *group, pc_module *module, int count)
{
    char(*all)[WORDS] = pc__alloc((size_t)group->size * sizeof *all);
    pc_status status = all ? PC_OK : PC_ERR_MEMORY;
    for (int i = 0; i < count && status == PC_OK; i++) {
        search s = {.left = i, .words = "nothing"};
        (void)pc__module_visit_state(module, find, &s);
        status = pc__group_exchange(group, s.words, sizeof s.words, all);
        for (int r = 1; r < group->size && status == PC_OK; r++)
            if (strcmp(all[0], all[r]) != 0)
                status = pc__fail(PC_ERR_STATE, "ranks have other networks: rank 0 has %s, and rank %d %s", all[0], r,
                                  all[r]);
    }
    pc__free(all);
    return status != PC_OK ? status
                           : pc__fail(PC_ERR_STATE, "ranks have networks in other memory orders, or of long names");
}

pc_status pc__agree_on_module(pc_group *group, pc_module *module)
{
    summary mine = {.sum = 0xcbf29ce484222325u}, *all = pc__calloc((size_t)group->size, sizeof *all);
    if (!all)
        return PC_ERR_MEMORY;
    (void)pc__module_visit_state(module, add,
                                 &mine); /* with names that are too long, too, all ranks come to the exchange */
    pc_status status = pc__group_exchange(group, &mine, sizeof mine, all);
    bool same = true;
    int most = 0;
    for (int r = 0; r < group->size && status == PC_OK; r++) {
        same &= all[r].sum == all[0].sum && all[r].count == all[0].count;
        most = PC__MAX(most, all[r].count);
    }
    pc__free(all);
    return status != PC_OK || same ? status : tell(group, module, most);
}

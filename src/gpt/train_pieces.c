/* train_pieces.c: what a checkpoint has of weights and moments, and what of it is this rank's: pieces of pc_zero, parts of a
 * network that is cut up, or pieces of such parts. */
#include "dist/group.h"
#include "parallel/cut.h"
#include "parallel/zero_state.h"
#include "gpt/train.h"
#include "nn/optimizer.h"

/* In bytes, of float32. Where ranks cannot share a dimension equally the last ones have zeros behind its end. */
static pc__runs runs_of(const pc__cut *cut, const pc_tensor *own)
{
    int64_t behind = sizeof(float);
    for (int i = cut->dim + 1; i < own->ndim; i++)
        behind *= own->shape[i];
    const int64_t run = own->shape[cut->dim] / cut->blocks * behind, step = cut->size / cut->blocks * behind;
    const int64_t first = PC__MIN(run * cut->group->rank, step);
    return (pc__runs){.run = run, .step = step, .first = first, .kept = PC__MIN(run, step - first)};
}

/* Of the whole one's shape, without memory for it. */
static pc_tensor *whole_of(const pc__cut *cut, pc_tensor *own)
{
    pc_shape shape = pc_shape_of(own->ndim, own->shape), ones = shape;
    shape.dim[cut->dim] = cut->size;
    for (int i = 0; i < own->ndim; i++)
        ones.dim[i] = 1;
    return pc_expand(pc_zeros(ones, (pc_dtype)own->dtype, PC_DEVICE_CPU), shape);
}

/* The parameter as a whole in the list, and its moments; and where this rank's share of it lies. */
static pc_status list_parameter(const pc__gpt_training *t, pc__gpt_pieces *p, int k, pc__runs *runs)
{
    const int slots = t->optimizer->slots, n = p->count / (1 + slots);
    const char *name = t->zero ? NULL : t->optimizer->names[k].name;
    pc_tensor *own = t->zero ? pc__zero_parameter(t->zero, k, &name) : t->optimizer->parameters[k];
    const pc__cut *cut = t->network ? pc__cut_find(t->gpt, own) : NULL;
    pc_tensor *whole = cut ? whole_of(cut, own) : own;
    for (int kind = -1; kind < slots; kind++) {
        pc_parameter *to = &p->list[(kind + 1) * n + k];
        to->tensor = whole;
        if (kind < 0)
            snprintf(to->name, sizeof to->name, "w.%.80s", name);
        else
            snprintf(to->name, sizeof to->name, "m%d.%.80s", kind, name);
    }
    *runs = cut ? runs_of(cut, own) : (pc__runs){0};
    return whole ? PC_OK : pc_error_last()->status;
}

/* What this rank has, in the order of the list, mostly. Where that is a whole tensor, it is the list's. */
static void add_parts(const pc__gpt_training *t, pc__gpt_pieces *p, const pc__runs *runs)
{
    const pc_optimizer *o = t->optimizer;
    const int n = p->count / (1 + o->slots);
    const pc__piece *pieces = NULL;
    const int own = t->zero ? pc__zero_pieces(t->zero, &pieces) : n;
    for (int kind = -1; kind < o->slots; kind++)
        for (int i = 0; i < own; i++) {
            const int k = pieces ? pieces[i].parameter : i;
            pc__weights_part *part = &p->parts[p->part_count++];
            part->tensor = (kind + 1) * n + k;
            part->at = pieces ? pieces[i].begin * (int64_t)sizeof(float) : 0;
            part->t = kind >= 0 ? o->state[kind * own + i] : pieces ? pieces[i].weights : o->parameters[i];
            part->runs = runs[k];
            if (!pieces && !runs[k].run)
                p->list[part->tensor].tensor = part->t;
        }
}

pc_status pc__gpt_pieces_find(const pc__gpt_training *t, pc__gpt_pieces *p)
{
    const pc__piece *pieces;
    const int n = t->zero ? pc__zero_parameters(t->zero) : t->optimizer->count;
    const int own = t->zero ? pc__zero_pieces(t->zero, &pieces) : n, kinds = 1 + t->optimizer->slots;
    *p = (pc__gpt_pieces){.list = pc__calloc((size_t)n * (size_t)kinds + 2, sizeof *p->list),
                          .count = n * kinds,
                          .parts = pc__calloc((size_t)own * (size_t)kinds + 2, sizeof *p->parts)};
    pc__runs *runs = pc__calloc((size_t)n, sizeof *runs);
    pc_status status = p->list && p->parts && runs ? PC_OK : PC_ERR_MEMORY;
    for (int k = 0; k < n && status == PC_OK; k++)
        status = list_parameter(t, p, k, &runs[k]);
    if (status == PC_OK)
        add_parts(t, p, runs);
    pc__free(runs);
    return status;
}

void pc__gpt_pieces_free(pc__gpt_pieces *p)
{
    pc__free(p->list);
    pc__free(p->parts);
}

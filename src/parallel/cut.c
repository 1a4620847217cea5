/* cut.c: parts of parameters, taken from whole ones and put together again. */
#include "dist/group.h"
#include "parallel/agree.h"
#include "parallel/cut.h"

#include <paracord/no_grad.h>
#include <paracord/ops.h>
#include <paracord/tensor_parallel.h>

pc_status pc__cut_check(const char *who, const char *what, int64_t size, int64_t blocks, const pc_group *group)
{
    if (blocks >= 1 && size >= 1 && size % (blocks * group->size) == 0)
        return PC_OK;
    char each[48] = "";
    if (blocks != 1)
        snprintf(each, sizeof each, " in %lld blocks", (long long)blocks);
    return pc__fail(PC_ERR_ARGUMENT,
                    "%s: %d ranks cannot share %lld %s%s equally; make it a multiple of %lld, or take fewer ranks", who,
                    group->size, (long long)size, what, each, (long long)(PC__MAX(blocks, 1) * group->size));
}

/* [in front of the cut dimension, block, place in it, behind]. */
static pc_tensor *in_blocks(const pc__cut *cut, pc_tensor *t)
{
    const int64_t before = pc__count(cut->dim, t->shape), n = t->shape[cut->dim] / cut->blocks;
    const int64_t after = pc__count(t->ndim - cut->dim - 1, t->shape + cut->dim + 1);
    return pc_reshape(t, PC_SHAPE(before, cut->blocks, n, after));
}

pc_status pc__cut_take(const pc__cut *cut, pc_tensor *own, pc_tensor *whole)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *to = in_blocks(cut, own), *from = in_blocks(cut, whole);
        if (!to || !from) {
            status = pc_error_last()->status;
            break;
        }
        const int64_t n = to->shape[2], begin = PC__MIN(n * cut->group->rank, from->shape[2]);
        const int64_t end = PC__MIN(begin + n, from->shape[2]);
        pc_tensor *part = pc_slice(from, 2, begin, end, 1);
        status = end - begin < n ? pc_fill(own, 0) : PC_OK;
        if (status == PC_OK)
            status = pc_copy(pc_slice(to, 2, 0, end - begin, 1),
                             pc_to(part, pc_tensor_device(own), (pc_dtype)own->dtype, false));
    }
    return status;
}

pc_tensor *pc__cut_join(const pc__cut *cut, pc_tensor *own)
{
    pc_tensor *all = NULL;
    pc_shape shape = pc_shape_of(own->ndim, own->shape);
    shape.dim[cut->dim] = cut->size;
    PC_SCOPE {
        pc_tensor *mine = in_blocks(cut, own);
        all = mine && cut->group->size > 1 ? pc__gather_over(cut->group, mine, 2) : mine;
        all = pc_keep(pc_reshape(pc_slice(all, 2, 0, cut->size / cut->blocks, 1), shape));
    }
    return all;
}

bool pc__is_cut(const pc__cut *cut)
{
    return cut && cut->group->size > 1;
}

/* What one gather of them needs of a rank by itself. */
typedef struct gathering {
    pc_tensor *own, *all; /* [in front of the cut dimension and blocks, all of a part]; the same of each rank */
    pc_shape blocks;      /* of the whole one: [in front, block, place in it, behind] */
} gathering;

static pc_status prepare(const pc__cut *cut, pc_tensor *own, gathering *g)
{
    pc_tensor *mine = in_blocks(cut, own);
    if (!mine)
        return pc_error_last()->status;
    const int64_t before = mine->shape[0] * mine->shape[1], part = mine->shape[2] * mine->shape[3];
    g->blocks = pc_shape_of(mine->ndim, mine->shape);
    g->blocks.dim[2] *= cut->group->size;
    g->own = pc_contiguous(pc_reshape(mine, PC_SHAPE(before, part)));
    g->all = pc_empty(PC_SHAPE(cut->group->size, before, part), (pc_dtype)own->dtype, pc_tensor_device(own));
    return g->own && g->all ? PC_OK : pc_error_last()->status;
}

pc_tensor *pc__cut_join_next(const pc__cut *cut, pc_tensor *own, pc_status *status)
{
    pc_tensor *whole = NULL;
    pc_shape shape = pc_shape_of(own->ndim, own->shape);
    shape.dim[cut->dim] = cut->size;
    PC_SCOPE {
        gathering g = {.own = NULL};
        *status = pc__agree_on_success(cut->group, *status == PC_OK ? prepare(cut, own, &g) : *status);
        if (*status == PC_OK)
            *status = pc_group_all_gather(cut->group, g.all, g.own);
        if (*status != PC_OK)
            break;
        pc_tensor *all = pc_reshape(pc_transpose(g.all, 0, 1), g.blocks);
        whole = pc_keep(pc_reshape(pc_slice(all, 2, 0, cut->size / cut->blocks, 1), shape));
        *status = whole ? PC_OK : pc_error_last()->status;
    }
    return whole;
}

typedef struct search {
    const pc_tensor *object;
    const pc__cut *cut;
} search;

static pc_status find_cut(void *context, const char *name, pc__named *part)
{
    search *s = context;
    (void)name;
    s->cut = part->cut && part->object == s->object ? part->cut : s->cut;
    return PC_OK;
}

const pc__cut *pc__cut_find(pc_module *module, const pc_tensor *object)
{
    search s = {.object = object};
    (void)pc__module_each(module, find_cut, &s);
    return s.cut;
}

const pc__cut *pc__cut_of(pc_module *module, const pc__named *part)
{
    return part->cut ? part->cut : pc__cut_find(module, part->object);
}

static pc_status find_group(void *context, const char *name, pc__named *part)
{
    pc_group **group = context;
    (void)name;
    if (pc__is_cut(part->cut))
        *group = part->cut->group;
    return PC_OK;
}

pc_group *pc__cut_group(pc_module *module)
{
    pc_group *group = NULL;
    (void)pc__module_each(module, find_group, &group);
    return group;
}

pc_status pc__cut_agree(pc_group *group, pc_module *module, pc_status mine)
{
    PC__TRY(pc__agree_on_success(group, mine));
    return pc__agree_on_module(group, module);
}

pc_status pc__cut_parameter(pc_module *module, const char *name, pc_tensor *whole, const pc__cut *cut)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        PC_NO_GRAD {
            pc_shape shape = pc_shape_of(whole->ndim, whole->shape);
            const int ranks = cut->group->size;
            shape.dim[cut->dim] = (shape.dim[cut->dim] + ranks - 1) / ranks;
            pc_tensor *own = pc_empty(shape, (pc_dtype)whole->dtype, pc_tensor_device(whole));
            status = own ? pc__cut_take(cut, own, whole) : pc_error_last()->status;
            if (status == PC_OK)
                status = pc_module_add_parameter(module, name, own);
            if (status == PC_OK) {
                module->parameters[module->parameter_count - 1].cut = cut;
                module->parameters[module->parameter_count - 1].apart = ranks > 1;
            }
        }
    }
    return status;
}

/* --- networks --- */

typedef struct pairing {
    const char *who;
    pc_module *cut_up; /* NULL: nothing is */
    pc_module *whole;  /* NULL: nobody wants it */
    const char *name;  /* looked for */
    pc_tensor *found;
} pairing;

static pc_status match(void *context, const char *name, pc__named *t)
{
    pairing *p = context;
    if (strcmp(name, p->name) == 0)
        p->found = t->object;
    return PC_OK;
}

/* What the whole network has of that name. */
static pc_status find(pairing *p, const char *name, const pc__named *part)
{
    const pc_tensor *own = part->object;
    const pc__cut *cut = pc__cut_of(p->cut_up, part);
    pc_shape shape = pc_shape_of(own->ndim, own->shape);
    if (cut)
        shape.dim[cut->dim] = cut->size;
    p->name = name;
    p->found = NULL;
    PC__TRY(pc__module_visit_state(p->whole, match, p));
    if (!p->found)
        return pc__fail(PC_ERR_NOT_FOUND, "%s: the whole network has no \"%.80s\"", p->who, name);
    if (p->found->ndim == shape.ndim && memcmp(p->found->shape, shape.dim, (size_t)shape.ndim * sizeof *shape.dim) == 0)
        return PC_OK;
    return pc__fail(PC_ERR_SHAPE, "%s: \"%.80s\" of the whole network is %s, and %s is asked for", p->who, name,
                    PC__SHAPE_OF(p->found), pc__shape_format(shape.ndim, shape.dim).s);
}

static pc_status check(void *context, const char *name, pc__named *part)
{
    return find(context, name, part);
}

static pc_status copy(pc_tensor *to, pc_tensor *from)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_copy(to, pc_to(from, pc_tensor_device(to), (pc_dtype)to->dtype, false));
    }
    return status;
}

static pc_status take(void *context, const char *name, pc__named *part)
{
    pairing *p = context;
    const pc__cut *cut = pc__cut_of(p->cut_up, part);
    PC__TRY(find(p, name, part));
    return cut ? pc__cut_take(cut, part->object, p->found) : copy(part->object, p->found);
}

typedef struct joining {
    pairing p;
    pc_status status;
} joining;

/* PC_OK at all events: others wait for this rank's part in what is to come. */
static pc_status join(void *context, const char *name, pc__named *part)
{
    joining *j = context;
    const pc__cut *cut = pc__cut_of(j->p.cut_up, part);
    PC_SCOPE {
        pc_tensor *all = pc__is_cut(cut) ? pc__cut_join_next(cut, part->object, &j->status) : part->object;
        if (j->status == PC_OK && j->p.whole)
            j->status = find(&j->p, name, part);
        if (j->status == PC_OK && j->p.whole)
            j->status = copy(j->p.found, all);
    }
    return PC_OK;
}

pc_status pc_tensor_parallel_cut(pc_module *parallel, const pc_module *whole)
{
    PC__NEED(parallel);
    PC__NEED(whole);
    pairing p = {.who = "pc_tensor_parallel_cut", .whole = (pc_module *)whole};
    p.cut_up = pc__cut_group(parallel) ? parallel : NULL;
    PC__TRY(pc__module_visit_state(parallel, check, &p));
    pc_status status = PC_OK;
    PC_NO_GRAD {
        status = pc__module_visit_state(parallel, take, &p);
    }
    return status;
}

pc_status pc_tensor_parallel_join(pc_module *parallel, pc_module *whole)
{
    PC__NEED(parallel);
    joining j = {.p = {.who = "pc_tensor_parallel_join", .whole = whole}};
    pc_group *group = pc__cut_group(parallel);
    j.p.cut_up = group ? parallel : NULL;
    j.status = whole ? pc__module_visit_state(parallel, check, &j.p) : PC_OK;
    j.status = group ? pc__cut_agree(group, parallel, j.status) : j.status;
    if (j.status != PC_OK)
        return j.status;
    PC_NO_GRAD {
        (void)pc__module_visit_state(parallel, join, &j); /* names are no longer than they were */
    }
    return group ? pc__agree_on_success(group, j.status) : j.status;
}

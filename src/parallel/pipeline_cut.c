/* pipeline_cut.c: a network's layers shared out over stages. */
#include "nn/layers.h"

#include <math.h>
#include <paracord/pipeline.h>

static pc_status check(const char *who, const pc_module *net)
{
    if (net->type == &pc__sequential_class || net->type == &pc__module_list_class)
        return PC_OK;
    return pc__fail(PC_ERR_ARGUMENT,
                    "%s: a %s cannot be cut; a Sequential or a ModuleList can, and any module is a stage by itself",
                    who, net->type->name);
}

/* The best way to have children 0 to i - 1 in s + 1 stages: what it costs, and where the last stage begins. */
typedef struct choice {
    double cost;
    int begins;
} choice;

/* sum[i]: numbers of all children in front of i. Costs are the largest stage's numbers, where limit is infinite,
 * else the sum of the stages' squares, none of which is larger than that. best: stages rows of count + 1. */
static void share_out(int stages, int count, const int64_t *sum, double limit, choice *best)
{
    const bool largest = isinf(limit);
    for (int s = 0; s < stages; s++)
        for (int i = s + 1; i <= count; i++) {
            choice *here = &best[s * (count + 1) + i];
            *here = (choice){.cost = INFINITY};
            for (int from = s; from < (s ? i : 1); from++) {
                const double own = (double)(sum[i] - sum[from]),
                             before = s ? best[(s - 1) * (count + 1) + from].cost : 0;
                const double cost = largest ? PC__MAX(before, own) : own > limit ? INFINITY : before + own * own;
                if (cost <= here->cost) /* of equal ones the last: what has no parameters stays in front of the cut */
                    *here = (choice){cost, from};
            }
        }
}

pc_status pc_pipeline_balance(const pc_module *net, int stages, int *first)
{
    PC__NEED(net);
    PC__NEED(first);
    PC__TRY(check("pc_pipeline_balance", net));
    const int count = net->child_count, row = count + 1;
    if (stages < 1 || stages > PC_PIPELINE_STAGES || stages > count)
        return pc__fail(PC_ERR_ARGUMENT, "pc_pipeline_balance: %d stages of %d layers; there are 1 to %d", stages,
                        count, PC__MIN(count, (int)PC_PIPELINE_STAGES));
    int64_t *sum = pc__calloc((size_t)row, sizeof *sum);
    choice *best = pc__calloc((size_t)stages * (size_t)row, sizeof *best);
    const bool room = sum && best;
    if (room) {
        for (int i = 0; i < count; i++)
            sum[i + 1] = sum[i] + pc_module_parameter_elements(net->children[i].object);
        share_out(stages, count, sum, INFINITY, best);
        share_out(stages, count, sum, best[stages * row - 1].cost, best);
        first[stages] = count;
        for (int s = stages - 1; s >= 0; s--)
            first[s] = best[s * row + first[s + 1]].begins;
    }
    pc__free(sum);
    pc__free(best);
    return room ? PC_OK : PC_ERR_MEMORY;
}

pc_status pc_pipeline_cut(pc_module *net, int from, int to)
{
    PC__NEED(net);
    PC__TRY(check("pc_pipeline_cut", net));
    if (from < 0 || from >= to || to > net->child_count)
        return pc__fail(PC_ERR_RANGE, "pc_pipeline_cut: children %d to %d of %d; at least one is left", from, to - 1,
                        net->child_count);
    for (int i = 0; i < net->child_count; i++) {
        pc_module *child = net->children[i].object;
        if (i >= from && i < to)
            continue;
        child->parent = NULL;
        pc_module_free(child);
    }
    memmove(net->children, net->children + from, (size_t)(to - from) * sizeof *net->children);
    net->child_count = to - from;
    net->version++;
    return PC_OK;
}

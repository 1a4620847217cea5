/* best.c: the weights of the best epoch so far. */
#include "train/best.h"

#include "nn/module.h"
#include "tensor/tensor.h"

#include <math.h>
#include <paracord/no_grad.h>

/* Parameters, then buffers. */
static pc_tensor *tensor_at(const pc_module *net, pc__parameters p, int i)
{
    return i < p.count ? p.tensor[i] : pc__module_buffer_at(net, i - p.count);
}

static pc_status make_room(pc__best *best, const pc_module *net, pc__parameters p)
{
    const int count = p.count + pc__module_buffer_count(net);
    best->values = pc__calloc((size_t)count + 1, sizeof *best->values);
    best->count = best->values ? count : 0;
    return best->values ? PC_OK : PC_ERR_MEMORY;
}

pc_status pc__best_open(pc__best *best, const pc_module *net, pc__parameters p)
{
    PC__TRY(make_room(best, net, p));
    for (int i = 0; i < best->count; i++) {
        const pc_tensor *t = tensor_at(net, p, i);
        PC_SCOPE {
            best->values[i] = pc_tensor_retain(pc_zeros(pc_tensor_shape(t), t->dtype, PC_DEVICE_CPU));
        }
        if (!best->values[i])
            return pc_error_last()->status;
    }
    return PC_OK;
}

pc_status pc__best_open_in(pc__best *best, const pc_module *room, const pc_module *net, pc__parameters p)
{
    PC__TRY(make_room(best, net, p));
    pc_parameter *list = pc__calloc((size_t)p.count + 1, sizeof *list);
    if (!list)
        return PC_ERR_MEMORY;
    const bool same = pc_module_parameter_list(room, list, p.count) == p.count &&
                      p.count + pc__module_buffer_count(room) == best->count;
    for (int i = 0; i < best->count && same; i++)
        best->values[i] = pc_tensor_retain(i < p.count ? list[i].tensor : pc__module_buffer_at(room, i - p.count));
    pc__free(list);
    return same ? PC_OK : pc__fail(PC_ERR_SHAPE, "keeping the best epoch: the networks differ");
}

static int compare(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

/* What is gone by, the greater the better. */
static double worth(const pc__best *best, const pc_epoch_result *r)
{
    if (best->metric)
        return best->greater ? r->metric[best->metric - 1] : -r->metric[best->metric - 1];
    return best->by_loss ? -r->test_loss : best->balanced ? r->test_balanced_accuracy : r->test_accuracy;
}

static bool is_better(const pc__best *best, const pc_epoch_result *new)
{
    const pc_epoch_result *old = &best->result;
    const double was = worth(best, old) + best->least_gain;
    const int order = compare(worth(best, new), was);
    return order || best->metric || best->by_loss || best->least_gain > 0
               ? order > 0
               : compare(-new->test_loss, -old->test_loss) > 0;
}

pc_status pc__best_offer(pc__best *best, const pc_module *net, pc__parameters p, const pc_epoch_result *result)
{
    if (!result->has_test || (best->result.epoch && !is_better(best, result)))
        return PC_OK;
    pc_status status = PC_OK;
    PC_NO_GRAD {
        for (int i = 0; i < best->count && status == PC_OK; i++)
            status = pc_copy(best->values[i], tensor_at(net, p, i));
    }
    /* a copy of a part of them is of no epoch */
    best->result = status == PC_OK ? *result : (pc_epoch_result){0};
    return status;
}

static pc_status exchange(pc_tensor *a, pc_tensor *b)
{
    pc_tensor *was = pc_clone(a);
    PC__TRY(was ? pc_copy(a, b) : pc_error_last()->status);
    return pc_copy(b, was);
}

pc_status pc__best_exchange(pc__best *best, const pc_module *net, pc__parameters p)
{
    pc_status status = PC_OK;
    for (int i = 0; i < best->count && status == PC_OK; i++)
        PC_NO_GRAD {
            PC_SCOPE {
                status = exchange(best->values[i], tensor_at(net, p, i));
            }
        }
    return status;
}

void pc__best_close(pc__best *best)
{
    for (int i = 0; i < best->count; i++)
        pc_tensor_free(best->values[i]);
    pc__free(best->values);
    *best = (pc__best){0};
}

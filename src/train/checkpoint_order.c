/* checkpoint_order.c: the tensors of a checkpoint in order, and whether those of a file are such. */
#include "train/checkpoint_order.h"

#include "nn/module.h"
#include "nn/scaler.h"
#include "train/checkpoint_cut.h"

int pc__checkpoint_stepped(const pc__fit *fit)
{
    return pc__fit_parameters(fit).count * (1 + fit->optimizer->slots);
}

/* Without the buffers of the network. */
static int trained_count(const pc__fit *fit)
{
    return pc__checkpoint_stepped(fit) + (fit->scaler != NULL);
}

int pc__checkpoint_tensors(const pc__fit *fit)
{
    return trained_count(fit) + pc__module_buffer_count(fit->net);
}

pc_tensor *pc__checkpoint_tensor_at(const pc__fit *fit, int i)
{
    const pc_optimizer *o = fit->optimizer;
    const pc__parameters p = pc__fit_parameters(fit);
    const int all = pc__checkpoint_tensors(fit), trained = trained_count(fit);
    if (i >= all)
        return fit->best.values[i - all];
    if (i >= trained)
        return pc__module_buffer_at(fit->net, i - trained);
    if (i == pc__checkpoint_stepped(fit))
        return fit->scaler->numbers;
    return i < p.count ? p.tensor[i] : o->state[i - p.count];
}

pc_tensor *pc__checkpoint_of_network(const pc__fit *fit, int i)
{
    const pc__parameters p = pc__fit_parameters(fit);
    const int all = pc__checkpoint_tensors(fit), trained = trained_count(fit), best = i - all;
    if (best >= p.count)
        return pc__module_buffer_at(fit->net, best - p.count);
    if (best >= 0)
        return p.tensor[best];
    if (i >= trained)
        return pc__module_buffer_at(fit->net, i - trained);
    return i < pc__checkpoint_stepped(fit) ? p.tensor[i % p.count] : NULL;
}

typedef struct wanted {
    const pc_tensor *tensor;
    char name[96];
} wanted;

static pc_status look(void *context, const char *name, pc__named *named)
{
    wanted *w = context;
    if (named->object == w->tensor)
        snprintf(w->name, sizeof w->name, "%s", name);
    return PC_OK;
}

/* Words for number i of them. */
static const char *name_of(const pc__fit *fit, int i, wanted *w)
{
    *w = (wanted){pc__checkpoint_of_network(fit, i), "a tensor"};
    if (w->tensor)
        (void)!pc__module_visit_state(fit->net, look, w);
    return w->name;
}

static pc_status check(const char *path, const pc__checkpoint_file *file, const pc__fit *fit, int i, size_t *at)
{
    pc_tensor *own = pc__checkpoint_of_network(fit, i);
    const pc_tensor *like = i < pc__checkpoint_stepped(fit) ? own : pc__checkpoint_tensor_at(fit, i);
    const pc__cut *cut = pc__checkpoint_cut_of(fit, own);
    const size_t here = *at;
    pc__checkpoint_tensor is;
    pc_status status = PC_OK;
    wanted w;
    PC_SCOPE {
        like = cut ? pc__checkpoint_whole(cut, like) : like;
        if (!like)
            status = pc_error_last()->status;
        else if (!pc__checkpoint_fits(file, at, like, &is))
            status = pc__checkpoint_misfit(path, file, here, like, name_of(fit, i, &w));
    }
    return status;
}

pc_status pc__checkpoint_check_tensors(const char *path, const pc__checkpoint_file *file, const pc__fit *fit, int n)
{
    size_t at = 0;
    for (int i = 0; i < n; i++)
        PC__TRY(check(path, file, fit, i, &at));
    return at == file->tensor_bytes || file->header.kept > n - file->header.tensors
               ? PC_OK
               : pc__checkpoint_cut(path, file, "it has more tensors than the network");
}

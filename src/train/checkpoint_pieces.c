/* checkpoint_pieces.c: what ranks have pieces of, a bucket at a time: nobody has memory for all of it but the host that writes. */
#include "train/checkpoint_pieces.h"

#include "train/checkpoint_cut.h"

#include "parallel/zero_state.h"
#include "nn/optimizer.h"

typedef struct whole {
    const pc__fit *fit;
    pc__parameters all;
    int kind;   /* what is under way: 0 the parameters, from 1 on what the optimiser keeps */
    size_t *at; /* where the numbers of each kind of each parameter begin */
    pc__text *out;
    const char *path;
    const pc__checkpoint_file *file;
} whole;

/* Where it is among all parameters, of which the frozen ones are not shared out. */
static int place_of(const whole *w, const pc_tensor *t)
{
    int i = 0;
    while (i < w->all.count && w->all.tensor[i] != t)
        i++;
    return w->kind * w->all.count + i;
}

static bool is_shared_out(const whole *w, const pc_tensor *t)
{
    const char *name;
    const int count = pc__zero_parameters(w->fit->zero);
    for (int i = 0; i < count; i++)
        if (pc__zero_parameter(w->fit->zero, i, &name) == t)
            return true;
    return false;
}

static pc_tensor *const *pieces_of(const whole *w)
{
    const pc_optimizer *o = w->fit->optimizer;
    return w->kind ? o->state + (w->kind - 1) * o->count : o->parameters;
}

static pc_status open_whole(whole *w, const pc__fit *fit)
{
    *w = (whole){.fit = fit, .all = pc__fit_parameters(fit)};
    w->at = pc__calloc((size_t)w->all.count * (size_t)(1 + fit->optimizer->slots) + 1, sizeof *w->at);
    return w->at ? PC_OK : PC_ERR_MEMORY;
}

/* What the file has of t, which is of that parameter, goes to its place. */
static pc_status put_at(const whole *w, int place, const pc_tensor *parameter, pc_tensor *t)
{
    const pc__cut *cut = pc__checkpoint_cut_of(w->fit, parameter);
    pc_status status = PC_OK;
    if (!cut && !w->out)
        return PC_OK;
    PC_SCOPE {
        const pc_tensor *all = pc__checkpoint_join(cut, t, pc_tensor_device(t));
        if (!all)
            status = pc_error_last()->status;
        else if (w->out)
            status =
                pc_read(all, w->out->data + w->at[place], (size_t)pc_tensor_count(all) * pc_dtype_size(all->dtype));
    }
    return status;
}

static pc_status put_frozen(whole *w)
{
    for (int i = 0; i < w->all.count; i++) {
        pc_tensor *t = w->all.tensor[i];
        if (!is_shared_out(w, t))
            PC__TRY(put_at(w, i, t, t));
    }
    return PC_OK;
}

static pc_status put_rooms(whole *w)
{
    const int slots = w->fit->optimizer->slots;
    for (int i = 0; i < w->all.count * (1 + slots) && w->out; i++)
        PC_SCOPE {
            const pc_tensor *t = w->all.tensor[i % w->all.count];
            const pc__cut *cut = pc__checkpoint_cut_of(w->fit, t);
            t = cut ? pc__checkpoint_whole(cut, t) : t;
            if (t)
                w->at[i] = pc__checkpoint_put_room(w->out, t);
            w->out->failed |= !t;
        }
    return w->out && w->out->failed ? PC_ERR_MEMORY : put_frozen(w);
}

static pc_status put(void *context, int parameter, pc_tensor *t)
{
    const whole *w = context;
    const char *name;
    const pc_tensor *own = pc__zero_parameter(w->fit->zero, parameter, &name);
    return put_at(w, place_of(w, own), own, t);
}

pc_status pc__checkpoint_put_pieces(const pc__fit *fit, pc__text *out)
{
    whole w;
    PC__TRY(open_whole(&w, fit));
    w.out = out;
    pc_status status = put_rooms(&w);
    for (; w.kind <= fit->optimizer->slots && status == PC_OK; w.kind++)
        status = pc__zero_gather_pieces(fit->zero, pieces_of(&w), put, &w);
    pc__free(w.at);
    return status;
}

static pc_status take(void *context, int parameter, pc_tensor *t)
{
    const whole *w = context;
    const char *name;
    const pc_tensor *own = pc__zero_parameter(w->fit->zero, parameter, &name);
    size_t at = w->at[place_of(w, own)];
    return pc__checkpoint_take_part(w->path, w->file, &at, pc__checkpoint_cut_of(w->fit, own), t, name);
}

static pc_status take_frozen(const whole *w)
{
    for (int i = 0; i < w->all.count; i++) {
        size_t at = w->at[i];
        if (!is_shared_out(w, w->all.tensor[i]))
            PC__TRY(pc__checkpoint_take_part(w->path, w->file, &at, pc__checkpoint_cut_of(w->fit, w->all.tensor[i]),
                                             w->all.tensor[i], "a tensor"));
    }
    return PC_OK;
}

static pc_status take_all(whole *w, size_t *at)
{
    const pc__fit *fit = w->fit;
    for (int i = 0; i < w->all.count * (1 + fit->optimizer->slots); i++) {
        w->at[i] = *at;
        PC__TRY(pc__checkpoint_pass(w->path, w->file, at, pc_tensor_dtype(w->all.tensor[i % w->all.count])));
    }
    PC__TRY(take_frozen(w));
    PC__TRY(pc__zero_set_weights(fit->zero, take, w));
    for (w->kind = 1; w->kind <= fit->optimizer->slots; w->kind++)
        PC__TRY(pc__zero_cut_pieces(fit->zero, pieces_of(w), take, w));
    return PC_OK;
}

pc_status pc__checkpoint_take_pieces(const char *path, const pc__checkpoint_file *file, size_t *at, const pc__fit *fit)
{
    whole w;
    PC__TRY(open_whole(&w, fit));
    w.path = path;
    w.file = file;
    const pc_status status = take_all(&w, at);
    pc__free(w.at);
    return status;
}

/* op.c: cases of a single op. */
#include "drawn/drawn.h"

#include <stdlib.h>
#include <string.h>

static bool collects(const drawn *d, int i)
{
    return d->in[i] && d->gradient && pc_requires_grad(d->in[i]);
}

static pc_status op_go(void *context)
{
    drawn *d = context;
    pc_status status;
    PC_SCOPE {
        pc_tensor *y = d->op->make(d);
        status = !y ? pc_error_last()->status : d->gradient ? pc_backward_with(y, d->gradient) : PC_OK;
    }
    for (int i = 0; i < INPUTS_MOST; i++)
        if (collects(d, i))
            pc_zero_grad(d->in[i]);
    return status;
}

static pc_status read_words(drawn *d)
{
    const words *w = &d->words;
    d->op = w->count > 1 ? op_named(w->word[1]) : NULL;
    if (!d->op)
        return pc_fail(PC_ERR_ARGUMENT, "op '%s' is not known", w->count > 1 ? w->word[1] : "");
    d->dim = number_of(w, "dim", 0);
    d->k = number_of(w, "k", 1);
    d->keepdim = number_of(w, "keep", 0);
    d->dims = numbers_between(word_of(w, "dims") ? word_of(w, "dims") : "", '.', NULL);
    d->causal = number_of(w, "causal", 0);
    d->kernel = number_of(w, "kernel", 1);
    d->stride = number_of(w, "stride", 1);
    d->padding = number_of(w, "pad", 0);
    d->groups = number_of(w, "groups", 1);
    d->dilation = number_of(w, "dilation", 1);
    d->p = strtod(word_of(w, "p") ? word_of(w, "p") : "0", NULL);
    if (word_of(w, "act") && activation_of(word_of(w, "act"), &d->activation) != PC_OK)
        return pc_error_last()->status;
    return word_of(w, "to") ? dtype_of(word_of(w, "to"), &d->to) : PC_OK;
}

static bool is_number(number_kind kind)
{
    return kind == ANY || kind == POSITIVE;
}

/* Inputs are leaves, whatever view of memory they are. */
static pc_status make_inputs(drawn *d, bool both)
{
    static const char *const names[INPUTS_MOST] = {"x", "y", "z"};
    for (int i = 0; i < INPUTS_MOST; i++) {
        const char *text = word_of(&d->words, names[i]);
        const number_kind kind = d->op->kinds[i];
        if (!text)
            continue;
        pc_tensor *t = tensor_of(text, (uint32_t)i + 1, kind, d->dtype, d->device);
        d->in[i] = pc_keep(t);
        if (!t || (both && is_number(kind) && !d->op->writes_input && pc_require_grad(t, true) != PC_OK))
            return pc_error_last()->status;
    }
    if (d->op->has_labels)
        d->index = pc_keep(labels_of(pc_tensor_size(d->in[0], 0), pc_tensor_size(d->in[0], 1), d->device));
    const char *index = word_of(&d->words, "index");
    if (index) {
        const pc_shape shape = numbers_between(index, 'x', NULL);
        int64_t count = 1;
        for (int i = 0; i < shape.ndim; i++)
            count *= shape.dim[i];
        d->index = pc_keep(pc_reshape(labels_of(count, pc_tensor_size(d->in[0], d->dim), d->device), shape));
    }
    return pc_error_last()->status;
}

/* The result's gradient lies in memory as the result does. */
static pc_status make_gradient(drawn *d)
{
    pc_tensor *y = d->op->make(d), *gradient = NULL;
    PC_NO_GRAD {
        gradient = pc_clone(pc_detach(y));
        pc_tensor *numbers = numbers_of(pc_tensor_shape(y), 9, ANY, 1, pc_tensor_dtype(y), d->device);
        if (!numbers || pc_copy(gradient, numbers) != PC_OK)
            return pc_error_last()->status;
    }
    d->gradient = pc_keep(gradient);
    return d->gradient ? PC_OK : pc_error_last()->status;
}

pc_status op_begin(drawn *d)
{
    const char *pass = word_of(&d->words, "pass");
    const bool both = pass && strcmp(pass, "both") == 0;
    pc_status status = read_words(d);
    d->go = op_go;
    if (status == PC_OK)
        PC_SCOPE {
            status = make_inputs(d, both);
            if (status == PC_OK && both)
                status = make_gradient(d);
        }
    return status;
}

pc_status op_tell(drawn *d)
{
    static const char *const names[INPUTS_MOST] = {"dx", "dy", "dz"};
    pc_status status;
    PC_SCOPE {
        pc_tensor *y = d->op->make(d);
        status = y ? tell("result", y) : pc_error_last()->status;
        if (status == PC_OK && d->gradient)
            status = pc_backward_with(y, d->gradient);
        for (int i = 0; status == PC_OK && i < INPUTS_MOST; i++)
            if (collects(d, i)) {
                status = tell(names[i], pc_grad(d->in[i]));
                pc_zero_grad(d->in[i]);
            }
    }
    return status;
}

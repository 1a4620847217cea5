/* pipeline_link.c: activations and gradients between neighbours, in C order. In the first step each activation has
 * its form in front, for which the host waits; later ones are allocated by what was told then. */
#include "parallel/pipeline.h"

#include "tensor/tensor.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>

enum { FORM = sizeof(pc__form) / sizeof(int64_t) };

static pc__form form_of(const pc_pipeline *p, const pc_tensor *t)
{
    pc__form form = {.batch = p->batch, .dtype = t->dtype, .ndim = t->ndim};
    memcpy(form.shape, t->shape, (size_t)t->ndim * sizeof *t->shape);
    return form;
}

static pc_shape shape_of(const pc__form *form)
{
    return pc_shape_of((int)form->ndim, form->shape);
}

static pc_status send_form(pc_pipeline *p, const pc__form *form)
{
    const int64_t *numbers = (const int64_t *)form;
    return pc_group_send(p->group, pc_from_data(numbers, PC_SHAPE(FORM), PC_I64, p->device), p->stage + 1);
}

static pc_status receive_form(pc_pipeline *p, pc__form *form)
{
    pc_tensor *numbers = pc_empty(PC_SHAPE(FORM), PC_I64, p->device);
    PC__TRY(pc_group_receive(p->group, numbers, p->stage - 1));
    PC__TRY(pc_read(numbers, form, sizeof *form));
    p->batch = form->batch;
    return PC_OK;
}

static pc_tensor *empty_as(const pc_pipeline *p, const pc__form *form)
{
    return pc_empty(shape_of(form), (pc_dtype)form->dtype, p->device);
}

static pc_status receive_input(pc_pipeline *p, pc__microbatch *b)
{
    if (!p->knows_forms)
        PC__TRY(receive_form(p, &b->takes));
    pc_tensor *in = empty_as(p, &b->takes);
    PC__TRY(pc_group_receive(p->group, in, p->stage - 1));
    PC__TRY(pc_require_grad(in, true));
    b->in = pc_tensor_retain(in);
    return PC_OK;
}

pc_status pc__pipeline_receive_input(pc_pipeline *p, int m)
{
    pc_status status = PC_OK;
    if (p->stage)
        PC_SCOPE {
            status = receive_input(p, &p->microbatch[m]);
        }
    return status;
}

/* The next stage has room for what this was in the first step. */
static pc_status check_output(const pc_pipeline *p, const pc__microbatch *b, const pc_tensor *out)
{
    const pc__form now = form_of(p, out);
    if (!pc__is_float((pc_dtype)out->dtype))
        return pc__fail(PC_ERR_DTYPE, "makes %s; between stages go floating activations, which have a gradient",
                        pc_dtype_name((pc_dtype)out->dtype));
    if (!p->knows_forms || memcmp(&now, &b->makes, sizeof now) == 0)
        return PC_OK;
    return pc__fail(PC_ERR_SHAPE,
                    "makes %s %s, and made %s %s in the first step, which the next stage has room for; "
                    "pc_pipeline_forget_shapes in all ranks tells them anew",
                    pc_dtype_name((pc_dtype)out->dtype), PC__SHAPE_OF(out), pc_dtype_name((pc_dtype)b->makes.dtype),
                    pc__shape_format((int)b->makes.ndim, b->makes.shape).s);
}

pc_status pc__pipeline_send_output(pc_pipeline *p, int m)
{
    pc__microbatch *b = &p->microbatch[m];
    pc_status status = PC_OK;
    if (p->stage == p->stages - 1)
        return PC_OK;
    if (check_output(p, b, b->out) != PC_OK)
        return pc__pipeline_tell(p, m, "forward");
    PC_SCOPE {
        PC_NO_GRAD {
            b->makes = form_of(p, b->out);
            if (!p->knows_forms)
                status = send_form(p, &b->makes);
            if (status == PC_OK)
                status = pc_group_send(p->group, pc_contiguous(b->out), p->stage + 1);
        }
    }
    return status;
}

pc_status pc__pipeline_send_gradient(pc_pipeline *p, pc_tensor *gradient)
{
    pc_status status = PC_OK;
    if (p->stage)
        PC_SCOPE {
            PC_NO_GRAD {
                status = pc_group_send(p->group, pc_contiguous(gradient), p->stage - 1);
            }
        }
    return status;
}

pc_tensor *pc__pipeline_receive_gradient(pc_pipeline *p, int m)
{
    pc_tensor *gradient = NULL;
    PC_SCOPE {
        pc_tensor *place = empty_as(p, &p->microbatch[m].makes);
        if (place && pc_group_receive(p->group, place, p->stage + 1) == PC_OK)
            gradient = pc_tensor_retain(place);
    }
    return gradient;
}

/* Networks put together, hooks, checkpoints, descriptions and averages, with each allocation failing once. */
#include "sweep.h"

#include <paracord/autograd.h>
#include <paracord/ema.h>
#include <paracord/module.h>

static pc_tensor *doubled(void *context, pc_tensor *x)
{
    (void)context;
    return pc_mul_scalar(x, 2);
}

static pc_status look(void *context, pc_module *module, pc_tensor **in, int in_count)
{
    (void)context, (void)module, (void)in_count;
    in[0] = pc_add_scalar(in[0], 1);
    return in[0] ? PC_OK : pc_error_last()->status;
}

static pc_status twins(pc_module *module, pc_tensor *const *in, int in_count, pc_tensor **out, int out_count)
{
    (void)in_count, (void)out_count;
    out[0] = pc_sub(pc_forward_child(module, "tower", in[0]), pc_forward_child(module, "tower", in[1]));
    out[1] = in[0];
    return out[0] ? PC_OK : pc_error_last()->status;
}

static const pc_module_class twins_class = {.name = "Twins", .forward_many = twins, .inputs = 2, .outputs = 2};

static pc_module *network(void)
{
    return pc_module_of(&twins_class,
                        {"tower", pc_sequential(pc_linear(3, 3), pc_function_module(doubled, NULL),
                                                pc_residual(pc_sequential(pc_linear(3, 3), pc_dropout(0.5)),
                                                            .shortcut = pc_linear(3, 3)))},
                        {"unused", pc_module_list(pc_linear(1, 1), pc_linear(1, 1))});
}

static bool learns(void)
{
    pc_module *net = network();
    pc_module *residual = net ? pc_module_child_named(net, "tower.2") : NULL;
    bool fine = residual && pc_module_add_hook(residual, look, NULL, NULL);
    if (fine)
        pc_module_set_checkpoint(residual, true);
    pc_tensor *in[2] = {NULL}, *out[2] = {NULL};
    for (int i = 0; i < 2 && fine; i++)
        fine = (in[i] = pc_randn(PC_SHAPE(4, 3), PC_F32, PC_DEVICE_CPU)) != NULL;
    fine = fine && pc_forward_many(net, in, 2, out, 2) == PC_OK;
    pc_tensor *sum = fine ? pc_sum(pc_mul(out[0], pc_gradient_hook(out[0], doubled, NULL))) : NULL;
    fine = fine && pc_backward(sum) == PC_OK;
    pc_module_free(net);
    return fine;
}

static bool without_a_scope(void)
{
    pc_module *net = network();
    pc_tensor *in[2] = {NULL}, *out[2] = {NULL};
    bool fine = net != NULL;
    for (int i = 0; i < 2 && fine; i++)
        fine = (in[i] = pc_zeros(PC_SHAPE(1, 3), PC_F32, PC_DEVICE_CPU)) != NULL;
    fine = fine && pc_forward_many(net, in, 2, out, 2) == PC_OK;
    for (int i = 0; i < 2; i++) {
        pc_tensor_free(in[i]);
        pc_tensor_free(out[i]);
    }
    pc_module_free(net);
    return fine;
}

static bool tells(void)
{
    pc_module *net = pc_sequential(pc_linear(3, 3), pc_residual(pc_linear(3, 3)),
                                   pc_module_dict({"a", pc_linear(1, 1)}, {"b", pc_flatten()}));
    pc_module *front = net ? pc_sequential(pc_linear(3, 4), pc_batch_norm1d(4)) : NULL;
    char *text = front ? pc_module_text(net) : NULL, *table = text ? pc_module_describe(front, PC_SHAPE(2, 3)) : NULL;
    const bool fine = table != NULL;
    pc_text_free(text);
    pc_text_free(table);
    pc_module_free(front);
    pc_module_free(net);
    return fine;
}

static bool averages(void)
{
    pc_module *net = pc_sequential(pc_linear(2, 2), pc_linear(2, 1));
    pc_ema *ema = net ? pc_ema_new(net, 0.5) : NULL;
    pc_parameter list[5];
    bool fine = ema && pc_ema_update(ema) == PC_OK && pc_ema_swap_in(ema) == PC_OK;
    fine = fine && pc_ema_swap_out(ema) == PC_OK;
    fine = fine && pc_ema_load(ema, list, pc_ema_state_list(ema, list, 5)) == PC_OK;
    fine = fine && pc_module_load_matching(net, list, 0, NULL) == PC_OK;
    pc_ema_free(ema);
    pc_module_free(net);
    return fine;
}

static void in_scopes(void **state)
{
    (void)state;
    bool (*const works[])(void) = {learns, tells, averages};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        sweep(works[i], true, false);
        sweep(works[i], true, true);
    }
}

static void without_scopes(void **state)
{
    (void)state;
    sweep(without_a_scope, false, false);
    sweep(without_a_scope, false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_scopes), cmocka_unit_test(without_scopes)};
    return cmocka_run_group_tests_name("nn.out_of_memory", tests, NULL, NULL);
}

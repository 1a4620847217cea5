/* Every single allocation of forward and backward fails once: an error, no crash, nothing left behind. */
#include "ops/registered.h"
#include "sweep.h"

#include <paracord/autograd.h>
#include <paracord/ops.h>
#include <paracord/random.h>

/* A fused network from picture to loss, its gradients, and a step. */
static bool network(void)
{
    pc_tensor *x = pc_randn(PC_SHAPE(2, 3, 9, 9), PC_F32, PC_DEVICE_CPU);
    pc_tensor *w = pc_randn(PC_SHAPE(4, 3, 3, 3), PC_F32, PC_DEVICE_CPU);
    pc_tensor *b = pc_zeros(PC_SHAPE(4), PC_F32, PC_DEVICE_CPU);
    pc_tensor *v = pc_randn(PC_SHAPE(1, 36), PC_F32, PC_DEVICE_CPU);
    pc_tensor *y = pc_from_data((float[]){1, 0}, PC_SHAPE(2, 1), PC_F32, PC_DEVICE_CPU);
    bool fine =
        pc_require_grad(w, true) == PC_OK && pc_require_grad(b, true) == PC_OK && pc_require_grad(v, true) == PC_OK;
    pc_tensor *h = pc_fn_conv2d(x, w, b, (pc_fn_conv2d_options){.activation = PC_ACTIVATION_RELU, .pool = 2});
    h = pc_fn_linear(pc_flatten_from(h, 1), v, NULL, PC_ACTIVATION_NONE);
    pc_tensor *loss = pc_bce_with_logits(h, y);
    fine = fine && pc_backward(loss) == PC_OK;
    PC_NO_GRAD {
        fine = fine && pc_saxpy(w, -0.1, pc_grad(w)) == PC_OK;
    }
    return fine;
}

/* The ops that the network has not. */
static bool many_ops(void)
{
    pc_tensor *a = pc_rand(PC_SHAPE(3, 4), PC_F64, PC_DEVICE_CPU), *most = NULL;
    bool fine = pc_require_grad(a, true) == PC_OK;
    pc_tensor *y = pc_add(pc_mul_scalar(a, 2), pc_cast(pc_arange(0, 4, 1, PC_I32, PC_DEVICE_CPU), PC_F32));
    y = pc_where(pc_gt(y, pc_scalar(1, PC_F64, PC_DEVICE_CPU)), pc_exp(pc_neg(y)),
                 pc_log(pc_add_scalar(pc_sqrt(a), 1)));
    y = pc_matmul(pc_transpose(y, 0, 1), pc_sigmoid(pc_softmax(a, 0)));
    y = pc_cat((pc_tensor *[]){y, pc_reshape(pc_permute(y, PC_SHAPE(1, 0)), PC_SHAPE(4, -1))}, 2, 1);
    y = pc_index_select(y, 1, pc_arange(1, 6, 2, PC_I32, PC_DEVICE_CPU));
    y = pc_sub(y, pc_max_dim(y, 0, true, &most));
    y = pc_fn_dropout(pc_div(pc_slice(y, 0, 0, 4, 2), pc_expand(pc_max(a), PC_SHAPE(2, 3))), 0.5);
    pc_tensor *labels = pc_zeros(PC_SHAPE(2), PC_I64, PC_DEVICE_CPU);
    pc_tensor *loss = pc_add(pc_cross_entropy(y, labels), pc_mse(pc_log_softmax(y, 1), pc_tanh(pc_clone(y))));
    loss = pc_add(loss, pc_mean(pc_mean_dims(pc_relu(y), PC_SHAPE(0), false)));
    fine = fine && pc_backward(loss) == PC_OK;
    char *text = pc_tensor_text(loss);
    fine = fine && text && pc_copy(pc_detach(y), pc_argmax(y, 1, true)) == PC_OK;
    pc_text_free(text);
    return fine;
}

static bool pictures(void)
{
    pc_tensor *x = pc_rand(PC_SHAPE(1, 2, 6, 6), PC_F32, PC_DEVICE_CPU);
    bool fine = pc_require_grad(x, true) == PC_OK;
    pc_tensor *y = pc_fn_max_pool2d(x, (pc_fn_pool2d_options){.kernel = {2, 2}});
    y = pc_fn_avg_pool2d(y, (pc_fn_pool2d_options){.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
    return fine && pc_backward(pc_sum(y)) == PC_OK;
}

/* Ops that the program has registered, on inputs that are copied first, and with a second output alone. */
static bool ops_of_our_own(void)
{
    pc_tensor *x = pc_rand(PC_SHAPE(4, 5), PC_F64, PC_DEVICE_CPU), *ends[2];
    bool fine = pc_require_grad(x, true) == PC_OK;
    pc_tensor *y = blend(x, pc_exp(x), 1, 2), *both = blend(pc_transpose(y, 0, 1), pc_transpose(x, 0, 1), 2, 3);
    fine = fine && pc_op_call(ends_op(), &both, 1, NULL, ends) == PC_OK && pc_backward(pc_sum(ends[1])) == PC_OK;
    pc_tensor *line = pc_empty(PC_SHAPE(7), PC_F32, PC_DEVICE_CPU);
    return number(line, 2) == PC_OK && fine;
}

/* The same without any scope: everything is freed by hand. */
static bool by_hand(void)
{
    pc_tensor *a = pc_arange(0, 144, 1, PC_I32, PC_DEVICE_CPU), *x = pc_cast(a, PC_F32), *indices = NULL;
    bool fine = pc_require_grad(x, true) == PC_OK;
    pc_tensor *p = pc_reshape(x, PC_SHAPE(2, 2, 6, 6)), *w = pc_slice(p, 2, 0, 3, 1), *turned = pc_transpose(a, 0, -1);
    pc_tensor *made[] = {
        pc_fn_conv2d(p, w, NULL, (pc_fn_conv2d_options){.activation = PC_ACTIVATION_TANH}),
        pc_add(a, x),
        pc_mean_dims(p, PC_SHAPE(0, 2), true),
        pc_max_dim(p, 1, false, &indices),
        pc_max(p),
        pc_argmax(p, 0, false),
        pc_prod_dim(p, 3, true),
        pc_all_dims(p, PC_SHAPE(0, 2), false),
        pc_std_dims(p, PC_SHAPE(0, 2), 1, false),
        pc_norm_dims(p, 3, PC_SHAPE(0, 2), false),
        pc_dot(x, x),
        pc_softmax(p, 1),
        pc_fn_max_pool2d(p, (pc_fn_pool2d_options){.kernel = {2, 2}}),
        pc_cat((pc_tensor *[]){a, x, turned}, 3, 0),
        pc_index_select(x, 0, a),
        pc_mse(x, a),
        pc_fn_dropout(w, 0.5),
    };
    pc_tensor *loss = pc_mean(made[0]);
    fine = fine && pc_backward(loss) == PC_OK;
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        fine = fine && made[i];
        pc_tensor_free(made[i]);
    }
    pc_tensor *rest[] = {loss, turned, w, p, x, a, indices};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        pc_tensor_free(rest[i]);
    return fine;
}

static void the_network(void **state)
{
    (void)state;
    sweep(network, true, false);
    sweep(network, true, true);
}

static void the_ops(void **state)
{
    (void)state;
    sweep(many_ops, true, false);
    sweep(many_ops, true, true);
    sweep(pictures, true, false);
    sweep(pictures, true, true);
    assert_true(blend_op() && ends_op() && numbered_op());
    sweep(ops_of_our_own, true, false);
    sweep(ops_of_our_own, true, true);
}

static void ops_without_a_scope(void **state)
{
    (void)state;
    sweep(by_hand, false, false);
    sweep(by_hand, false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_network), cmocka_unit_test(the_ops),
                                       cmocka_unit_test(ops_without_a_scope)};
    return cmocka_run_group_tests_name("autograd.out_of_memory", tests, NULL, NULL);
}

/* A network of residual blocks with BatchNorm2d beside PyTorch's: what it gives, the loss, and what one step of SGD leaves
 * of its weights and running statistics; plain and recorded. */
#include "nn/networks.h"

#include <paracord/module.h>
#include <paracord/step.h>

static pc_module *conv(int64_t in, int64_t out, int kernel, int stride)
{
    return pc_conv2d(in, out, kernel, .stride = stride, .padding = kernel / 2, .no_bias = true);
}

static pc_module *block(int64_t in, int64_t out, int stride)
{
    pc_module *body = pc_sequential(conv(in, out, 3, stride), pc_batch_norm2d(out), pc_activation(PC_ACTIVATION_RELU),
                                    conv(out, out, 3, 1), pc_batch_norm2d(out));
    pc_module *shortcut =
        in == out && stride == 1 ? NULL : pc_sequential(conv(in, out, 1, stride), pc_batch_norm2d(out));
    return pc_residual(body, .shortcut = shortcut, .activation = PC_ACTIVATION_RELU);
}

/* The numbers of a parameter or an input, by its number: those of golden/nn.py. */
static pc_tensor *formula(pc_shape shape, int at)
{
    float values[1024];
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
    assert_true(n <= 1024);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)((7 * i + 3 * at) % 11 - 5) / 8;
    return pc_from_data(values, shape, PC_F32, test_device());
}

typedef struct job {
    pc_module *net;
    pc_optimizer *sgd;
    pc_tensor *x, *labels, *y, *loss;
} job;

static job begin(void)
{
    job j = {.net = on_device(pc_sequential(conv(3, 4, 3, 1), pc_batch_norm2d(4), pc_activation(PC_ACTIVATION_RELU),
                                            block(4, 4, 1), block(4, 6, 2), pc_avg_pool2d(4), pc_flatten(),
                                            pc_linear(6, 3)))};
    pc_parameter list[32];
    const int count = pc_module_parameter_list(j.net, list, 32);
    PC_NO_GRAD {
        for (int i = 0; i < count; i++)
            assert_ok(pc_copy(list[i].tensor, formula(pc_tensor_shape(list[i].tensor), i)));
    }
    j.sgd = pc_sgd(j.net, .lr = 0.1, .momentum = 0.9);
    j.x = formula(PC_SHAPE(2, 3, 8, 8), 9);
    j.labels = pc_from_data((const int64_t[]){2, 0}, PC_SHAPE(2), PC_I64, test_device());
    j.y = pc_zeros(PC_SHAPE(2, 3), PC_F32, test_device());
    j.loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device());
    return j;
}

static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_ERR_STATE;
    PC_SCOPE {
        pc_tensor *y = pc_forward(j->net, j->x), *loss = pc_cross_entropy(y, j->labels);
        status = pc_backward(loss);
        status = status == PC_OK ? pc_optimizer_step(j->sgd) : status;
        PC_NO_GRAD {
            status = status == PC_OK ? pc_copy(j->y, y) : status;
            status = status == PC_OK ? pc_copy(j->loss, loss) : status;
        }
    }
    return status;
}

/* The numbers of `text` are the tensor's. Where they end. */
static char *compare(const char *name, pc_tensor *t, char *text)
{
    double *got = values_of(t);
    for (int64_t i = 0; i < pc_tensor_count(t); i++) {
        const double want = strtod(text, &text);
        if (!(fabs(got[i] - want) <= 1e-4 * (1 + fabs(want))))
            fail_msg("%s: number %lld is %.9g; PyTorch has %.9g", name, (long long)i, got[i], want);
    }
    free(got);
    return text;
}

static pc_tensor *part(const job *j, const char *name)
{
    pc_parameter list[64];
    const int count = pc_module_state_list(j->net, list, 64);
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].tensor;
    fail_msg("the network has no %s", name);
    return NULL;
}

static void compare_all(const job *j)
{
    FILE *file = golden_open();
    static char line[32768];
    char name[64];
    int at, compared = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "residual %63s %n", name, &at) != 1)
            continue;
        compared++;
        if (strcmp(name, "outputs") == 0) {
            char *rest = compare(name, j->y, line + at);
            (void)compare("loss", j->loss, strchr(rest, '|') + 1);
        } else if (strcmp(name, "evaluated") == 0) {
            pc_module_set_training(j->net, false);
            (void)compare(name, pc_forward(j->net, j->x), line + at);
        } else {
            (void)compare(name, part(j, name), line + at);
        }
    }
    fclose(file);
    assert_int_equal(compared, pc_module_state_list(j->net, NULL, 0) + 2);
}

static void run(bool recorded)
{
    job j;
    PC_SCOPE {
        j = begin();
        pc_step *step = pc_step_new(learn, &j, j.sgd);
        assert_ok(recorded ? pc_step_run(step) : learn(&j));
        assert_null(pc_step_why(step));
        compare_all(&j);
        pc_step_free(step);
    }
    pc_optimizer_free(j.sgd);
    pc_module_free(j.net);
    assert_nothing_left();
}

static void a_step_is_pytorchs(void **state)
{
    (void)state;
    run(false);
}

static void a_recorded_step_is_pytorchs(void **state)
{
    (void)state;
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_pytorchs),
        cmocka_unit_test(a_recorded_step_is_pytorchs),
    };
    return cmocka_run_group_tests_name("nn.residual", tests, NULL, NULL);
}

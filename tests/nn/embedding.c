/* The embedding layer: its table, the row that stands for nothing, and a network that learns with it. */
#include "nn/networks.h"

#include <math.h>
#include <paracord/random.h>
#include <paracord/step.h>

static void table_and_text(void **state)
{
    (void)state;
    enum { ROWS = 50, COLUMNS = 40 };
    static float table[ROWS * COLUMNS];
    double sum = 0, squares = 0;
    pc_seed(1);
    pc_module *layer = pc_embedding(ROWS, COLUMNS), *padded = pc_embedding(10, 3, .padded = true, .padding_idx = -1);
    char *text = pc_module_text(layer), *other = pc_module_text(padded);
    assert_string_equal(text, "Embedding(50, 40)");
    assert_string_equal(other, "Embedding(10, 3, padding_idx=9)");
    pc_text_free(text);
    pc_text_free(other);
    assert_int_equal(pc_module_parameter_elements(layer), ROWS * COLUMNS);
    assert_ok(pc_read(pc_module_parameter(layer, "weight"), table, sizeof table));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        sum += (double)table[i];
        squares += (double)table[i] * (double)table[i];
    }
    assert_true(fabs(sum / (ROWS * COLUMNS)) < 0.1 && fabs(squares / (ROWS * COLUMNS) - 1) < 0.1);
    assert_ok(pc_read(pc_module_parameter(padded, "weight"), table, 30 * sizeof(float)));
    for (int i = 0; i < 3; i++)
        assert_true(table[27 + i] == 0 && table[i] != 0);
    pc_module_free(layer);
    pc_module_free(padded);
    assert_no_leak();
}

/* Indices of both dtypes, and a gradient that leaves the padding row out. */
static void forward_and_gradient(void **state)
{
    (void)state;
    float got[4][2];
    pc_module *layer = pc_embedding(4, 2, .padded = true, .padding_idx = 0);
    assert_ok(pc_module_to(layer, test_device(), PC_F32));
    PC_SCOPE {
        const int32_t at[2][3] = {{1, 0, 3}, {1, 1, 0}};
        pc_tensor *x = pc_from_data(at, PC_SHAPE(2, 3), PC_I32, test_device());
        pc_tensor *y = pc_forward(layer, x), *z = pc_forward(layer, pc_cast(x, PC_I64));
        assert_int_equal(pc_tensor_ndim(y), 3);
        assert_int_equal(pc_tensor_size(y, 2), 2);
        assert_true(pc_item(pc_max(pc_abs(pc_sub(y, z)))) == 0);
        assert_ok(pc_backward(pc_sum(y)));
        assert_ok(pc_read(pc_grad(pc_module_parameter(layer, "weight")), got, sizeof got));
        for (int c = 0; c < 2; c++)
            assert_true(got[0][c] == 0 && got[1][c] == 3 && got[2][c] == 0 && got[3][c] == 1);
        assert_fails_on_device(pc_forward(layer, pc_full(PC_SHAPE(1), 4, PC_I64, test_device())), PC_ERR_RANGE,
                               "embedding: entry 0 of the index is 4; it must be 0 to 3");
    }
    pc_module_free(layer);
    assert_no_leak();
}

/* Each word has a class; what is learned is a table. */
static void learns(void **state)
{
    (void)state;
    pc_seed(2);
    pc_module *net = pc_sequential(pc_embedding(6, 4), pc_linear(4, 3));
    assert_ok(pc_module_to(net, test_device(), PC_F32));
    pc_optimizer *adam = pc_adam(net, .lr = 0.1);
    double first = 0, last = 0;
    for (int i = 0; i < 40; i++)
        PC_SCOPE {
            const int64_t words[] = {0, 1, 2, 3, 4, 5}, classes[] = {2, 0, 1, 1, 0, 2};
            pc_tensor *x = pc_from_data(words, PC_SHAPE(6), PC_I64, test_device());
            pc_tensor *y = pc_from_data(classes, PC_SHAPE(6), PC_I64, test_device());
            pc_tensor *loss = pc_cross_entropy(pc_forward(net, x), y);
            assert_ok(pc_backward(loss));
            assert_ok(pc_optimizer_step(adam));
            last = pc_item(loss);
            first = i == 0 ? last : first;
        }
    assert_true(first > 0.5 && last < 0.1);
    pc_optimizer_free(adam);
    pc_module_free(net);
    assert_no_leak();
}

/* Words with classes, a batch after the other in the same tensors. */
typedef struct lesson {
    pc_module *net;
    pc_optimizer *adam;
    pc_tensor *x, *y;
} lesson;

static pc_status learn(void *user)
{
    lesson *l = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        status = pc_backward(pc_cross_entropy(pc_forward(l->net, l->x), l->y));
        if (status == PC_OK)
            status = pc_optimizer_step(l->adam);
    }
    return status;
}

enum { WORDS = 70, WIDTH = 12, BATCH = 50 };

static void train(bool recorded, float table[WORDS * WIDTH])
{
    pc_seed(7);
    lesson l = {.net =
                    pc_sequential(pc_embedding(WORDS, WIDTH, .padded = true, .padding_idx = 3), pc_linear(WIDTH, 5))};
    assert_ok(pc_module_to(l.net, test_device(), PC_F32));
    l.adam = pc_adam(l.net, .lr = 0.05);
    l.x = pc_zeros(PC_SHAPE(BATCH), PC_I64, test_device());
    l.y = pc_zeros(PC_SHAPE(BATCH), PC_I64, test_device());
    pc_step *step = recorded ? pc_step_new(learn, &l, l.adam) : NULL;
    for (int i = 0; i < 8; i++)
        PC_SCOPE {
            int64_t words[BATCH], classes[BATCH];
            for (int k = 0; k < BATCH; k++) {
                words[k] = (int64_t)(pc_uniform(9, 1, (uint64_t)(i * BATCH + k)) * (k % 2 ? 4 : WORDS));
                classes[k] = words[k] % 5;
            }
            assert_ok(pc_copy(l.x, pc_from_data(words, PC_SHAPE(BATCH), PC_I64, test_device())));
            assert_ok(pc_copy(l.y, pc_from_data(classes, PC_SHAPE(BATCH), PC_I64, test_device())));
            assert_ok(step ? pc_step_run(step) : learn(&l));
        }
    if (step)
        assert_null(pc_step_why(step));
    assert_ok(pc_read(pc_module_parameter(l.net, "0.weight"), table, WORDS * WIDTH * sizeof *table));
    for (int c = 0; c < WIDTH; c++)
        assert_true(table[3 * WIDTH + c] == 0);
    pc_step_free(step);
    pc_optimizer_free(l.adam);
    pc_module_free(l.net);
    pc_tensor_free(l.x);
    pc_tensor_free(l.y);
}

static void recorded_as_plain(void **state)
{
    (void)state;
    static float plain[WORDS * WIDTH], recorded[WORDS * WIDTH];
    train(false, plain);
    train(true, recorded);
    assert_memory_equal(plain, recorded, sizeof plain);
    assert_no_leak();
}

static void refuses(void **state)
{
    (void)state;
    assert_fails(pc_embedding(0, 3), PC_ERR_ARGUMENT, "embedding: 0 rows of 3");
    assert_fails(pc_embedding(3, 0), PC_ERR_ARGUMENT, "at least 1");
    assert_fails(pc_embedding(3, 2, .padded = true, .padding_idx = 3), PC_ERR_RANGE, "it must be -3 to 2");
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table_and_text), cmocka_unit_test(forward_and_gradient),
                                       cmocka_unit_test(learns), cmocka_unit_test(recorded_as_plain),
                                       cmocka_unit_test(refuses)};
    return cmocka_run_group_tests_name("nn.embedding", tests, NULL, NULL);
}

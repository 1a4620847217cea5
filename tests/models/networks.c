/* Networks for pictures beside torchvision's: names and shapes of everything that they have, and with weights of a formula
 * what they give and what a step leaves of them (golden/networks.txt, made by golden/networks.py). */
#include "nn/networks.h"

#include "models/models.h"

enum { CLASSES = 5, BATCH = 2, STATE_MAX = 400 };

/* --- the numbers of the formula: those of golden/networks.py --- */

static float drawn(uint64_t i, int at)
{
    uint64_t h = i * 2654435761u + (uint64_t)(at + 1) * 40503;
    h = ((h ^ (h >> 15)) * 2246822519u) & 0xFFFFFFFFu;
    return (float)((h ^ (h >> 13)) & 0xFFFF) / 32768 - 1;
}

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static pc_tensor *formula(pc_shape shape, int at, double scale, double offset)
{
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
    float *values = malloc((size_t)n * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)((double)drawn((uint64_t)i, at) * scale + offset);
    pc_tensor *t = pc_from_data(values, shape, PC_F32, test_device());
    free(values);
    return t;
}

/* A tensor of a state dict. */
static pc_tensor *weight(const pc_parameter *p, int at)
{
    const pc_shape shape = pc_tensor_shape(p->tensor);
    if (shape.ndim < 2)
        return formula(shape, at, 0.125, ends_in(p->name, "var") || ends_in(p->name, "weight"));
    double inputs = 1;
    for (int i = 1; i < shape.ndim; i++)
        inputs *= (double)shape.dim[i];
    return formula(shape, at, sqrt(3 / (shape.ndim == 3 ? 100 : inputs)), 0);
}

static pc_module *network(const char *name, int size)
{
    static pc_parameter list[STATE_MAX];
    pc_module *net = on_device(pc_picture_network(name, CLASSES, .height = size, .width = size, .dropout = -1));
    const int count = pc_module_state_list(net, list, STATE_MAX);
    PC_NO_GRAD
        PC_SCOPE {
            for (int i = 0; i < count; i++)
                if (pc_tensor_shape(list[i].tensor).ndim)
                    assert_ok(pc_copy(list[i].tensor, weight(&list[i], i)));
        }
    return net;
}

static pc_tensor *pictures(int size)
{
    return formula(PC_SHAPE(BATCH, 3, size, size), 1000, 1, 0);
}

/* --- golden lines --- */

static FILE *golden(void)
{
    FILE *file = fopen(PC_TEST_GOLDEN "/networks.txt", "r");
    if (!file)
        fail_msg("cannot open %s", PC_TEST_GOLDEN "/networks.txt");
    return file;
}

/* The numbers behind the bar are the tensor's. Where they end. */
static char *compare(const char *name, pc_tensor *t, char *text)
{
    double *got = values_of(t);
    text = strchr(text, '|');
    assert_non_null(text);
    text++;
    for (int64_t i = 0; i < pc_tensor_count(t); i++) {
        const double want = strtod(text, &text);
        if (!(fabs(got[i] - want) <= 1e-4 * (1 + fabs(want))))
            fail_msg("%s: number %lld is %.9g and must be %.9g", name, (long long)i, got[i], want);
    }
    free(got);
    return text;
}

/* --- names --- */

static void check_names(FILE *file, const char *name, int count)
{
    static pc_parameter list[STATE_MAX];
    char line[256], got[256];
    pc_module *net = pc_picture_network(name, CLASSES, .height = 64, .width = 64);
    assert_not_null_ok(net);
    assert_int_equal(pc_module_state_list(net, list, STATE_MAX), count);
    for (int i = 0; i < count && fgets(line, sizeof line, file); i++) {
        const pc_shape shape = pc_tensor_shape(list[i].tensor);
        int n = snprintf(got, sizeof got, "%s", list[i].name);
        for (int d = 0; d < shape.ndim; d++)
            n += snprintf(got + n, sizeof got - (size_t)n, " %lld", (long long)shape.dim[d]);
        line[strcspn(line, "\n")] = 0;
        assert_string_equal(got, line);
    }
    const char *head = pc_picture_network_head(name);
    assert_not_null_ok(head);
    assert_not_null_ok(pc_module_child_named(net, head));
    assert_int_equal(pc_tensor_size(list[count - 1].tensor, 0), CLASSES);
    assert_true(strncmp(list[count - 1].name, head, strlen(head)) == 0);
    pc_module_free(net);
}

static void names_are_torchvisions(void **state)
{
    (void)state;
    char line[1024], name[32];
    FILE *file = golden();
    int count, cases = 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "names %31s %d", name, &count) == 2) {
            check_names(file, name, count);
            cases++;
        }
    assert_int_equal(cases, 5);
    fclose(file);
    assert_nothing_left();
}

/* --- numbers --- */

static void gives_what_torchvision_gives(void **state)
{
    (void)state;
    char line[1024], name[32];
    FILE *file = golden();
    int size, cases = 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "evaluated %31s %d", name, &size) == 2)
            PC_SCOPE {
                pc_module *net = network(name, size);
                pc_module_set_training(net, false);
                PC_NO_GRAD {
                    compare(name, pc_forward(net, pictures(size)), line);
                }
                pc_module_free(net);
                cases++;
            }
    assert_int_equal(cases, 4);
    fclose(file);
    assert_nothing_left();
}

/* By so much of all that changed; and by what one pixel more or less on the other side of a ReLU6 makes, which other orders of
 * sums do (widths of vectors, FMA or not): a tenth of the least that a parameter moves by here, a bias of few channels. */
#define CHANGE 2e-3
#define ONE 2e-6

static void compare_change(const char *name, pc_tensor *before, pc_tensor *after, double norm, double first)
{
    double *a = values_of(before), *b = values_of(after), sum = 0;
    const double moved = b[0] - a[0], rounded = 1e-7 * sqrt((double)pc_tensor_count(after));
    for (int64_t i = 0; i < pc_tensor_count(after); i++)
        sum += (b[i] - a[i]) * (b[i] - a[i]);
    if (!(fabs(sqrt(sum) - norm) <= CHANGE * norm + rounded + ONE && fabs(moved - first) <= CHANGE * norm + ONE))
        fail_msg("%s: a step moves it by %.7g, its first number by %.7g; it must be %.7g and %.7g", name, sqrt(sum),
                 moved, norm, first);
    free(a);
    free(b);
}

static void check_step(FILE *file, const char *name, pc_module *net, pc_tensor **before)
{
    static pc_parameter list[STATE_MAX];
    char line[256], part[128];
    double norm, first;
    int count = 0;
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(sscanf(line, "step %127s %d", part, &count), 2);
    assert_string_equal(part, name);
    assert_int_equal(pc_module_state_list(net, list, STATE_MAX), count);
    for (int i = 0; i < count && fgets(line, sizeof line, file); i++) {
        assert_int_equal(sscanf(line, "%127s %lf %lf", part, &norm, &first), 3);
        assert_string_equal(part, list[i].name);
        compare_change(part, before[i], list[i].tensor, norm, first);
    }
}

static void check_training(FILE *file, const char *name, char *line)
{
    static pc_parameter list[STATE_MAX];
    static pc_tensor *before[STATE_MAX];
    pc_module *net = network(name, 64);
    const int count = pc_module_state_list(net, list, STATE_MAX);
    for (int i = 0; i < count; i++)
        before[i] = pc_clone(pc_detach(list[i].tensor));
    pc_optimizer *sgd = pc_sgd(net, .lr = 0.1, .weight_decay = 0.001);
    pc_tensor *labels = pc_from_data((const int64_t[]){3, 1}, PC_SHAPE(2), PC_I64, test_device());
    pc_tensor *y = pc_forward(net, pictures(64)), *loss = pc_cross_entropy(y, labels);
    assert_ok(pc_backward(loss));
    assert_ok(pc_optimizer_step(sgd));
    compare("loss", loss, compare(name, y, line));
    check_step(file, name, net, before);
    pc_optimizer_free(sgd);
    pc_module_free(net);
}

static void learns_what_torchvision_learns(void **state)
{
    (void)state;
    char line[1024], name[32];
    FILE *file = golden();
    int cases = 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "trained %31s |", name) == 1)
            PC_SCOPE {
                check_training(file, name, line);
                cases++;
            }
    assert_int_equal(cases, 3);
    fclose(file);
    assert_nothing_left();
}

/* --- options --- */

static void options_make_other_networks(void **state)
{
    (void)state;
    pc_module *net = pc_picture_network("vit_tiny", 2, .channels = 1, .height = 32, .width = 48);
    assert_not_null_ok(net);
    assert_int_equal(pc_tensor_size(pc_module_parameter(net, "encoder.pos_embedding"), 1), 1 + 2 * 3);
    PC_SCOPE {
        pc_tensor *y = pc_forward(net, pc_ones(PC_SHAPE(3, 1, 32, 48), PC_F32, PC_DEVICE_CPU));
        assert_not_null_ok(y);
        assert_int_equal(pc_tensor_size(y, 0), 3);
        assert_int_equal(pc_tensor_size(y, 1), 2);
        assert_fails(pc_forward(net, pc_ones(PC_SHAPE(1, 1, 32, 32), PC_F32, PC_DEVICE_CPU)) ? PC_OK
                                                                                             : pc_error_last()->status,
                     PC_ERR_SHAPE, "for 6 patches of 16 x 16 pixels was given 4");
    }
    pc_module_free(net);
    net = pc_picture_network("mobilenet_v2", 7, .channels = 1);
    assert_not_null_ok(net);
    assert_int_equal(pc_tensor_size(pc_module_parameter(net, "features.0.0.weight"), 1), 1);
    pc_module_free(net);
    assert_nothing_left();
}

static void what_makes_none_is_told(void **state)
{
    (void)state;
    assert_string_equal(pc_picture_network_name(0), "vgg11");
    assert_null(pc_picture_network_name(-1));
    assert_null(pc_picture_network_name(7));
    assert_null(pc_picture_network("alexnet", 10));
    assert_int_equal(pc_error_last()->status, PC_ERR_ARGUMENT);
    assert_non_null(strstr(pc_error_last()->message, "there are vgg11, resnet18, "));
    pc_error_clear();
    assert_null(pc_picture_network_head("alexnet"));
    pc_error_clear();
    assert_null(pc_picture_network("resnet18", 0));
    pc_error_clear();
    assert_null(pc_picture_network("vgg11", 10, .height = 31, .width = 31));
    assert_int_equal(pc_error_last()->status, PC_ERR_SHAPE);
    pc_error_clear();
    assert_null(pc_picture_network("vit_tiny", 10, .height = 100, .width = 96));
    assert_non_null(strstr(pc_error_last()->message, "multiples of 16, such as 96 x 96"));
    pc_error_clear();
    assert_null(pc_picture_network("mobilenet_v2", 10, .dropout = 2));
    pc_error_clear();
    assert_nothing_left();
}

/* First weights: each layer's deviation is torchvision's. */
static void weights_begin_as_torchvisions(void **state)
{
    (void)state;
    static const struct {
        const char *network, *name;
        double deviation;
    } cases[] = {{"resnet18", "layer2.0.conv1.weight", 0.0416667},
                 {"resnet18", "fc.weight", 0.0255155},
                 {"mobilenet_v2", "features.1.conv.0.0.weight", 0.0833333},
                 {"mobilenet_v2", "classifier.1.weight", 0.01},
                 {"mobilenet_v2", "classifier.1.bias", 0},
                 {"vit_tiny", "conv_proj.weight", 0.0360844},
                 {"vit_tiny", "encoder.pos_embedding", 0.02},
                 {"vit_tiny", "encoder.layers.encoder_layer_3.mlp.0.weight", 0.0456435},
                 {"vit_tiny", "heads.head.weight", 0}};
    pc_seed(3);
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        PC_SCOPE {
            pc_module *net = pc_picture_network(cases[i].network, 100, .height = 64, .width = 64);
            assert_not_null_ok(net);
            pc_tensor *t = pc_module_parameter(net, cases[i].name);
            assert_not_null_ok(t);
            const double n = (double)pc_tensor_count(t), got = sqrt(pc_item(pc_mean(pc_mul(t, t))));
            if (!(fabs(got - cases[i].deviation) <= cases[i].deviation * 3 / sqrt(n)))
                fail_msg("%s %s: the deviation is %g and must be about %g", cases[i].network, cases[i].name, got,
                         cases[i].deviation);
            pc_module_free(net);
        }
    assert_nothing_left();
}

/* What is said of a network before it is made: its parameters exactly, what its layers give about. */
static void sizes_are_known_before(void **state)
{
    (void)state;
    for (int i = 0; pc_picture_network_name(i); i++) {
        const char *name = pc_picture_network_name(i);
        pc__picture_size size;
        double made;
        if (strcmp(name, "vgg11") == 0 || strcmp(name, "vit_b_16") == 0) /* which are large */
            continue;
        const pc_picture_network_options o = {.channels = 1, .height = 64, .width = 96};
        assert_ok(pc__picture_network_size(name, 6, o, &size));
        pc_module *net = pc_picture_network_new(name, 6, o);
        assert_not_null_ok(net);
        assert_true(size.parameters == (double)pc_module_parameter_elements(net));
        char *text = pc_module_describe(net, PC_SHAPE(1, 1, 64, 96)), *at = text ? strstr(text, "FLOP, makes ") : NULL;
        assert_non_null(at);
        assert_int_equal(sscanf(at, "FLOP, makes %lf MiB", &made), 1);
        if (!(fabs(size.activations * 4 / 1048576 - made) <= 0.25 * made))
            fail_msg("%s: %g MiB, and it is %g", name, size.activations * 4 / 1048576, made);
        pc_text_free(text);
        pc_module_free(net);
    }
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_torchvisions),         cmocka_unit_test(gives_what_torchvision_gives),
        cmocka_unit_test(learns_what_torchvision_learns), cmocka_unit_test(options_make_other_networks),
        cmocka_unit_test(what_makes_none_is_told),        cmocka_unit_test(weights_begin_as_torchvisions),
        cmocka_unit_test(sizes_are_known_before),
    };
    return cmocka_run_group_tests_name("models.networks", tests, NULL, NULL);
}

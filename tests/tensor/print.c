/* Tensors as text, against PyTorch's (golden/print.txt, made by golden/print.py). */
#include "comma.h"
#include "ops/golden.h"

typedef struct text_case {
    char name[64], then[32], want[4096];
    pc_tensor *t;
} text_case;

static pc_tensor *range_of(char **rest)
{
    pc_dtype dtype = golden_dtype(strtok_r(NULL, " ", rest));
    pc_shape shape = golden_numbers(strtok_r(NULL, " ", rest));
    double start = strtod(strtok_r(NULL, " ", rest), NULL), step = strtod(strtok_r(NULL, " ", rest), NULL), n = 1;
    for (int i = 0; i < shape.ndim; i++)
        n *= (double)shape.dim[i];
    pc_tensor *t = pc_arange(0, n, 1, PC_F64, test_device());
    return pc_reshape(pc_cast(pc_add_scalar(pc_mul_scalar(t, step), start), dtype), shape);
}

/* The next case; its tensor belongs to the scope. */
static bool next(FILE *file, text_case *c)
{
    static char line[4096];
    static golden_tensor in;
    int lines;
    if (!fgets(line, sizeof line, file) || sscanf(line, "case %63s %d", c->name, &lines) != 2)
        return false;
    c->then[0] = c->want[0] = 0;
    char *rest = NULL;
    assert_non_null(fgets(line, sizeof line, file));
    line[strcspn(line, "\n")] = 0;
    if (strcmp(strtok_r(line, " ", &rest), "range") == 0) {
        c->t = range_of(&rest);
    } else {
        golden_tensor_read(&in, &rest, true);
        c->t = golden_views(golden_make(in.values, in.count, in.shape, in.dtype), in.views);
    }
    while (lines > 0 && fgets(line, sizeof line, file)) {
        if (!c->want[0] && sscanf(line, "then %31s", c->then) == 1)
            continue;
        strcat(c->want, line);
        lines--;
    }
    c->want[strlen(c->want) - 1] = 0;
    return true;
}

/* Away with ", device='...'", which only tensors off the CPU have, and with the breaks between suffixes, which it
 * moves. */
static void as_on_the_cpu(char *text)
{
    static const char gap[] = ",\n       ";
    char *last = strrchr(text, ']'), *suffix = last ? last : text;
    for (char *at; (at = strstr(suffix, gap)); at[1] = ' ')
        memmove(at + 2, at + sizeof gap - 1, strlen(at + sizeof gap - 1) + 1);
    char *place = strstr(suffix, ", device='"), *end = place ? strchr(place + 10, '\'') : NULL;
    if (end)
        memmove(place, end + 1, strlen(end + 1) + 1);
}

static void as_pytorch_prints(void **state)
{
    (void)state;
    static text_case c;
    FILE *file = fopen(PC_TEST_GOLDEN "/print.txt", "r");
    assert_non_null(file);
    int cases = 0, wrong = 0;
    PC_SCOPE {
        for (; next(file, &c); cases++) {
            if (c.then[0])
                assert_ok(pc_require_grad(c.t, true));
            char *text = pc_tensor_text(strcmp(c.then, "exp") == 0 ? pc_exp(c.t) : c.t);
            assert_not_null_ok(text);
            if (test_device().type != PC_CPU) {
                as_on_the_cpu(text);
                as_on_the_cpu(c.want);
            }
            if (strcmp(text, c.want) != 0) {
                print_error("%s: got\n%s\nwant\n%s\n", c.name, text, c.want);
                wrong++;
            }
            pc_text_free(text);
        }
    }
    fclose(file);
    assert_true(cases > 90);
    assert_int_equal(wrong, 0);
    assert_no_leak();
}

static void to_a_stream(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    char got[200] = "";
    assert_non_null(file);
    PC_SCOPE {
        pc_print_to(pc_arange(1, 4, 1, PC_I64, PC_DEVICE_CPU), file);
    }
    rewind(file);
    assert_true(fread(got, 1, sizeof got - 1, file) > 0);
    assert_string_equal(got, "tensor([1, 2, 3])\n");
    fclose(file);
}

static void in_any_locale(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-print-XXXXXX", place[64] = "";
    assert_non_null(mkdtemp(folder));
    const bool comma = comma_locale(folder, place, sizeof place);
    PC_SCOPE {
        char *fixed = pc_tensor_text(pc_full(PC_SHAPE(2), -1.5, PC_F32, PC_DEVICE_CPU)),
             *small = pc_tensor_text(pc_full(PC_SHAPE(1), 2.5e-9, PC_F32, PC_DEVICE_CPU));
        comma_locale_end(place);
        assert_string_equal(fixed, "tensor([-1.5000, -1.5000])");
        assert_string_equal(small, "tensor([2.5000e-09])");
        pc_text_free(fixed);
        pc_text_free(small);
    }
    rmdir(folder);
    if (!comma)
        skip();
}

static void of_nothing(void **state)
{
    (void)state;
    assert_fails(pc_tensor_text(NULL), PC_ERR_ARGUMENT, "NULL");
    pc_print_to(NULL, stderr);
    assert_int_equal(pc_error_last()->status, PC_ERR_ARGUMENT);
    pc_error_clear();
    pc_text_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_pytorch_prints),
        cmocka_unit_test(to_a_stream),
        cmocka_unit_test(in_any_locale),
        cmocka_unit_test(of_nothing),
    };
    return run_with_golden("tensor.print", NULL, 0, tests, GOLDEN_COUNT(tests));
}

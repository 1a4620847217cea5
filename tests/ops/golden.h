/* golden.h: runs the cases of golden/ops.txt (golden/ops.py says what they hold): results and gradients against
 * PyTorch's, in float32, and again in float64, float16 and bfloat16. */
#ifndef PC_TEST_GOLDEN_H
#define PC_TEST_GOLDEN_H

#include "channels_last.h"
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <paracord/autograd.h>
#include <paracord/ops.h>

enum { GOLDEN_TENSORS = 12, GOLDEN_VALUES = 256, GOLDEN_ARGS = 8 };

typedef struct golden_tensor {
    bool there;
    pc_dtype dtype;
    pc_shape shape;
    char views[64];
    int count;
    double values[GOLDEN_VALUES];
} golden_tensor;

typedef struct golden {
    char op[32], name[64];
    bool single; /* only in float32 */
    int n_in, n_out, n_args;
    golden_tensor in[GOLDEN_TENSORS], out[2], grad[GOLDEN_TENSORS];
    double args[GOLDEN_ARGS];
} golden;

/* Run the op: inputs `in`, results into out[0] and, where there are two, out[1]. */
typedef struct golden_op {
    const char *name;
    void (*run)(const golden *g, pc_tensor **in, pc_tensor **out);
} golden_op;

/* --- reading the file --- */

static inline pc_dtype golden_dtype(const char *code)
{
    static const char *const codes[PC_DTYPE_COUNT] = {"b", "u8", "i32", "i64", "f16", "bf16", "f32", "f64"};
    for (int i = 0; i < PC_DTYPE_COUNT; i++)
        if (strcmp(code, codes[i]) == 0)
            return (pc_dtype)i;
    fail_msg("the golden file has no dtype \"%s\"", code);
    return PC_F32;
}

static inline pc_shape golden_numbers(const char *text)
{
    pc_shape list = {0};
    for (char *end; *text && *text != '('; text = *end ? end + 1 : end)
        list.dim[list.ndim++] = strtoll(text, &end, 10);
    return list;
}

static inline void golden_values(golden_tensor *t, char **rest)
{
    for (char *word; (word = strtok_r(NULL, " ", rest)); t->values[t->count++] = strtod(word, NULL))
        assert_true(t->count < GOLDEN_VALUES);
    t->there = true;
}

static inline void golden_tensor_read(golden_tensor *t, char **rest, bool with_views)
{
    *t = (golden_tensor){.dtype = golden_dtype(strtok_r(NULL, " ", rest))};
    t->shape = golden_numbers(strtok_r(NULL, " ", rest));
    if (with_views)
        snprintf(t->views, sizeof t->views, "%s", strtok_r(NULL, " ", rest));
    golden_values(t, rest);
}

static inline void golden_line(golden *g, char *line)
{
    char *rest = NULL, *kind = strtok_r(line, " ", &rest);
    if (strcmp(kind, "in") == 0) {
        assert_true(g->n_in < GOLDEN_TENSORS);
        golden_tensor_read(&g->in[g->n_in++], &rest, true);
    } else if (strcmp(kind, "out") == 0) {
        assert_true(g->n_out < 2);
        golden_tensor_read(&g->out[g->n_out++], &rest, false);
    } else if (strcmp(kind, "grad") == 0) {
        int k = atoi(strtok_r(NULL, " ", &rest));
        g->grad[k].count = 0;
        golden_values(&g->grad[k], &rest);
    } else {
        assert_string_equal(kind, "args");
        for (char *word; (word = strtok_r(NULL, " ", &rest)); g->args[g->n_args++] = strtod(word, NULL))
            assert_true(g->n_args < GOLDEN_ARGS);
    }
}

/* The next case of `op`; false at the end of the file. Cases of other ops are passed over. */
static inline bool golden_next(FILE *file, const char *op, golden *g)
{
    static char line[16384];
    bool found = false;
    for (;;) {
        long here = ftell(file);
        if (!fgets(line, sizeof line, file))
            return found;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "case ", 5) == 0) {
            if (found) {
                fseek(file, here, SEEK_SET);
                return true;
            }
            memset(g, 0, sizeof *g);
            char flags[16] = "";
            sscanf(line, "case %31s %63s %15s", g->op, g->name, flags);
            g->single = strcmp(flags, "f32") == 0;
            found = strcmp(g->op, op) == 0;
        } else if (found) {
            golden_line(g, line);
        }
    }
}

/* --- making inputs --- */

static inline pc_tensor *golden_make(const double *values, int64_t n, pc_shape shape, pc_dtype dtype)
{
    union {
        bool b[GOLDEN_VALUES];
        uint8_t u8[GOLDEN_VALUES];
        int32_t i32[GOLDEN_VALUES];
        int64_t i64[GOLDEN_VALUES];
        pc_f16 f16[GOLDEN_VALUES];
        pc_bf16 bf16[GOLDEN_VALUES];
        float f32[GOLDEN_VALUES];
        double f64[GOLDEN_VALUES];
    } data;
    assert_true(n <= GOLDEN_VALUES);
    for (int64_t i = 0; i < n; i++)
        switch (dtype) {
        case PC_BOOL:
            data.b[i] = values[i] != 0;
            break;
        case PC_U8:
            data.u8[i] = (uint8_t)values[i];
            break;
        case PC_I32:
            data.i32[i] = (int32_t)values[i];
            break;
        case PC_I64:
            data.i64[i] = (int64_t)values[i];
            break;
        case PC_F16:
            data.f16[i] = pc_f16_from_float((float)values[i]);
            break;
        case PC_BF16:
            data.bf16[i] = pc_bf16_from_float((float)values[i]);
            break;
        case PC_F32:
            data.f32[i] = (float)values[i];
            break;
        default:
            data.f64[i] = values[i];
        }
    return pc_from_data(&data, shape, dtype, test_device());
}

static inline pc_tensor *golden_view(pc_tensor *t, const char *step)
{
    pc_shape n = step[1] == ':' ? golden_numbers(step + 2) : (pc_shape){0};
    switch (step[0]) {
    case 't':
        return pc_transpose(t, (int)n.dim[0], (int)n.dim[1]);
    case 'p':
        return pc_permute(t, n);
    case 's':
        return pc_slice(t, (int)n.dim[0], n.dim[1], n.dim[2], n.dim[3]);
    case 'e':
        return pc_expand(t, n);
    case 'r':
        return pc_reshape(t, n);
    case 'c':
        return as_channels_last(t);
    default:
        fail_msg("the golden file has no view \"%s\"", step);
        return NULL;
    }
}

static inline pc_tensor *golden_views(pc_tensor *t, const char *views)
{
    char text[64], *rest = NULL;
    snprintf(text, sizeof text, "%s", views);
    for (char *step = strtok_r(text, ";", &rest); step; step = strtok_r(NULL, ";", &rest))
        if (strcmp(step, "-") != 0)
            t = golden_view(t, step);
    return t;
}

/* --- checking --- */

static inline double golden_read(const pc_tensor *t, double *values)
{
    int64_t n = pc_tensor_count(t);
    char *raw = malloc((size_t)n * 8 + 1);
    assert_non_null(raw);
    assert_ok(pc_read(t, raw, (size_t)n * pc_dtype_size(pc_tensor_dtype(t))));
    for (int64_t i = 0; i < n; i++)
        switch (pc_tensor_dtype(t)) {
        case PC_BOOL:
        case PC_U8:
            values[i] = ((uint8_t *)raw)[i];
            break;
        case PC_I32:
            values[i] = ((int32_t *)(void *)raw)[i];
            break;
        case PC_I64:
            values[i] = (double)((int64_t *)(void *)raw)[i];
            break;
        case PC_F16:
            values[i] = (double)pc_f16_to_float(((pc_f16 *)(void *)raw)[i]);
            break;
        case PC_BF16:
            values[i] = (double)pc_bf16_to_float(((pc_bf16 *)(void *)raw)[i]);
            break;
        case PC_F32:
            values[i] = (double)((float *)(void *)raw)[i];
            break;
        default:
            values[i] = ((double *)(void *)raw)[i];
        }
    free(raw);
    return n ? values[0] : 0;
}

/* A result in 16 bits is rounded once or twice; what a gradient rule adds up are roundings of terms of up to `terms`.
 */
static inline bool golden_near(double got, double want, double terms, pc_dtype real)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    if (real == PC_F16 || real == PC_BF16) {
        double last_place = real == PC_F16 ? 0x1p-10 : 0x1p-7;
        return fabs(got - want) <= last_place * (2 * fabs(want) + terms) + (real == PC_F16 ? 0x1p-24 : 0);
    }
    return fabs(got - want) <= (real == PC_F64 ? 1e-8 + 1e-6 * fabs(want) : 2e-6 + 1e-5 * fabs(want));
}

static inline void golden_check(const golden *g, const char *what, const pc_tensor *t, pc_dtype dtype, pc_shape shape,
                                const double *want, pc_dtype real)
{
    double got[GOLDEN_VALUES], terms = 0;
    if (!t)
        fail_msg("%s %s: no %s: %s", g->op, g->name, what, pc_error_last()->message);
    if (pc_tensor_dtype(t) != dtype)
        fail_msg("%s %s: %s is %s, want %s", g->op, g->name, what, pc_dtype_name(pc_tensor_dtype(t)),
                 pc_dtype_name(dtype));
    bool same = pc_tensor_ndim(t) == shape.ndim;
    for (int i = 0; same && i < shape.ndim; i++)
        same = pc_tensor_size(t, i) == shape.dim[i];
    if (!same || pc_tensor_count(t) > GOLDEN_VALUES) {
        char *text = pc_tensor_text(t);
        fail_msg("%s %s: %s has another shape: %s", g->op, g->name, what, text);
    }
    golden_read(t, got);
    const bool rounded = strncmp(what, "gradient", 8) == 0 || strcmp(g->op, "attention") == 0; /* its weights are */
    for (int64_t i = 0; rounded && i < pc_tensor_count(t); i++)
        terms = fmax(fmax(terms, 1), isfinite(want[i]) ? 2 * fabs(want[i]) : 0);
    for (int64_t i = 0; i < pc_tensor_count(t); i++)
        if (!golden_near(got[i], want[i], terms, real))
            fail_msg("%s %s: element %d of %s (%s) is %.9g, want %.9g", g->op, g->name, (int)i, what,
                     pc_dtype_name(dtype), got[i], want[i]);
}

/* The dtype of a case's tensor when its float32 ones are `real`. */
static inline pc_dtype golden_as(pc_dtype dtype, pc_dtype real)
{
    return dtype == PC_F32 ? real : dtype;
}

static inline void golden_backward(const golden *g, pc_tensor *y, pc_tensor **base, pc_dtype real)
{
    double weights[GOLDEN_VALUES];
    int64_t n = pc_tensor_count(y);
    for (int64_t i = 0; i < n; i++)
        weights[i] = (double)((7 * i + 3) % 11 - 5) / 4;
    assert_ok(pc_backward_with(y, golden_make(weights, n, pc_tensor_shape(y), pc_tensor_dtype(y))));
    for (int k = 0; k < g->n_in; k++) {
        char what[32];
        snprintf(what, sizeof what, "gradient %d", k);
        if (g->grad[k].there)
            golden_check(g, what, pc_grad(base[k]), pc_tensor_dtype(base[k]), g->in[k].shape, g->grad[k].values, real);
    }
}

static inline void golden_case(const golden *g, const golden_op *op, pc_dtype real)
{
    pc_tensor *base[GOLDEN_TENSORS], *in[GOLDEN_TENSORS], *out[2] = {NULL, NULL};
    pc_error_clear();
    PC_SCOPE {
        bool differentiate = false;
        for (int i = 0; i < g->n_in; i++) {
            const golden_tensor *t = &g->in[i];
            base[i] = golden_make(t->values, t->count, t->shape, golden_as(t->dtype, real));
            differentiate |= g->grad[i].there;
            if (t->dtype >= PC_F16)
                assert_ok(pc_require_grad(base[i], true));
            in[i] = golden_views(base[i], t->views);
            assert_not_null_ok(in[i]);
        }
        op->run(g, in, out);
        for (int i = 0; i < g->n_out; i++)
            golden_check(g, i ? "output 1" : "the result", out[i], golden_as(g->out[i].dtype, real), g->out[i].shape,
                         g->out[i].values, real);
        if (differentiate)
            golden_backward(g, out[0], base, real);
        for (int i = 0; i < g->n_in; i++)
            golden_check(g, "an input, afterwards,", base[i], golden_as(g->in[i].dtype, real), g->in[i].shape,
                         g->in[i].values, real);
    }
    assert_false(pc_failed());
}

/* Whether a case says the same in 16 bits: its inputs are numbers there too. */
static inline bool golden_fits(const golden *g, pc_dtype real)
{
    for (int i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i].count && g->in[i].dtype == PC_F32; k++) {
            double v = g->in[i].values[k];
            double there = real == PC_F16    ? (double)pc_f16_to_float(pc_f16_from_float((float)v))
                           : real == PC_BF16 ? (double)pc_bf16_to_float(pc_bf16_from_float((float)v))
                                             : v;
            if (there != v && !isnan(v))
                return false;
        }
    return true;
}

/* All cases of one op; a cmocka test whose state is the golden_op. */
static inline void golden_test(void **state)
{
    const golden_op *op = *state;
    static golden g;
    FILE *file = fopen(PC_TEST_GOLDEN "/ops.txt", "r");
    assert_non_null(file);
    int cases = 0;
    while (golden_next(file, op->name, &g)) {
        bool floats = false;
        for (int i = 0; i < g.n_in; i++)
            floats |= g.in[i].dtype == PC_F32;
        static const pc_dtype others[] = {PC_F64, PC_F16, PC_BF16};
        golden_case(&g, op, PC_F32);
        for (int i = 0; floats && !g.single && i < 3; i++)
            if (golden_fits(&g, others[i]))
                golden_case(&g, op, others[i]);
        cases++;
    }
    fclose(file);
    assert_true(cases > 0);
    assert_no_leak();
}

/* A check that fails leaves by longjmp, past the ends of scopes: close them, so that the next test starts clean. */
static inline int close_scopes(void **state)
{
    (void)state;
    pc_scope outermost = {1};
    pc_scope_leave(&outermost);
    pc_error_clear();
    return 0;
}

/* Run the golden cases of `ops` and then `tests`, as one group. */
static inline int run_with_golden(const char *group, const golden_op *ops, int n_ops, const struct CMUnitTest *tests,
                                  int n_tests)
{
    struct CMUnitTest all[64];
    for (int i = 0; i < n_ops; i++)
        all[i] = (struct CMUnitTest){ops[i].name, golden_test, NULL, close_scopes, (void *)&ops[i]};
    for (int i = 0; i < n_tests; i++) {
        all[n_ops + i] = tests[i];
        all[n_ops + i].teardown_func = close_scopes;
    }
    return _cmocka_run_group_tests(group, all, (size_t)(n_ops + n_tests), NULL, NULL);
}

#define GOLDEN_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define golden_main(group, ops, tests) run_with_golden(group, ops, GOLDEN_COUNT(ops), tests, GOLDEN_COUNT(tests))

#endif

/* Scaled dot-product attention. */
#include "ops/golden.h"

#include <paracord/random.h>
#include <paracord/threads.h>

static void run_attention(const golden *g, pc_tensor **in, pc_tensor **out)
{
    pc_tensor *mask = g->n_in > 3 ? pc_detach(in[3]) : NULL;
    out[0] = pc_fn_attention(in[0], in[1], in[2],
                             (pc_fn_attention_options){.causal = g->args[0] != 0, .scale = g->args[1], .mask = mask});
}

static const golden_op ops[] = {{"attention", run_attention}};

/* Entry i of a dimension, without it. */
static pc_tensor *entry(pc_tensor *t, int dim, int64_t i)
{
    return pc_squeeze(pc_slice(t, dim, i, i + 1, 1), dim);
}

static void bad_input(void **state)
{
    (void)state;
    PC_SCOPE {
        const pc_fn_attention_options plain = {0};
        pc_tensor *q = pc_zeros(PC_SHAPE(2, 3, 4), PC_F32, test_device());
        pc_tensor *v = pc_zeros(PC_SHAPE(2, 5, 4), PC_F32, test_device());
        assert_fails(pc_fn_attention(NULL, q, v, plain), PC_ERR_ARGUMENT, "attention");
        assert_fails(pc_fn_self_attention(NULL, plain), PC_ERR_ARGUMENT, "self_attention");
        assert_fails(pc_fn_self_attention(q, plain), PC_ERR_SHAPE, "[3, ..., length, size]");
        assert_fails(pc_fn_self_attention(pc_zeros(PC_SHAPE(3, 2, 2), PC_I32, test_device()), plain), PC_ERR_DTYPE,
                     "int32");
        assert_fails(pc_fn_attention(q, q, v, plain), PC_ERR_SHAPE, "lengths of k and v");
        assert_fails(pc_fn_attention(q, pc_slice(v, 2, 0, 3, 1), v, plain), PC_ERR_SHAPE, "last sizes of q and k");
        assert_fails(pc_fn_attention(entry(entry(q, 0, 0), 0, 0), v, v, plain), PC_ERR_SHAPE, "two dimensions");
        assert_fails(pc_fn_attention(q, pc_cast(v, PC_F64), v, plain), PC_ERR_DTYPE, "k float64");
        assert_fails(pc_fn_attention(pc_expand(q, PC_SHAPE(3, 2, 3, 4)), pc_expand(v, PC_SHAPE(4, 2, 5, 4)), v, plain),
                     PC_ERR_SHAPE, "attention");
        assert_fails(pc_fn_attention(q, v, v, (pc_fn_attention_options){.dropout = 1.5}), PC_ERR_ARGUMENT, "dropout");
        assert_fails(pc_fn_attention(q, v, v, (pc_fn_attention_options){.scale = (double)NAN}), PC_ERR_ARGUMENT,
                     "scale");
        assert_fails(pc_fn_attention(q, v, v, (pc_fn_attention_options){.mask = q}), PC_ERR_SHAPE, "mask");
        pc_tensor *whole = pc_zeros(PC_SHAPE(3, 2, 3, 5), PC_BOOL, test_device());
        assert_fails(pc_fn_attention(q, v, v, (pc_fn_attention_options){.mask = whole}), PC_ERR_SHAPE, "mask of shape");
        pc_tensor *counts = pc_zeros(PC_SHAPE(3, 5), PC_I32, test_device());
        assert_fails(pc_fn_attention(q, v, v, (pc_fn_attention_options){.mask = counts}), PC_ERR_DTYPE, "int32");
        pc_tensor *trained = pc_zeros(PC_SHAPE(3, 5), PC_F32, test_device());
        assert_ok(pc_require_grad(trained, true));
        assert_fails(pc_fn_attention(q, v, v, (pc_fn_attention_options){.mask = trained}), PC_ERR_UNSUPPORTED,
                     "the mask");
    }
    assert_no_leak();
}

/* --- beside products and a softmax in float64 --- */

/* true where j <= i */
static pc_tensor *triangle(int64_t l, int64_t s)
{
    pc_tensor *i = pc_reshape(pc_arange(0, (double)l, 1, PC_I32, test_device()), PC_SHAPE(l, 1));
    return pc_ge(i, pc_arange(0, (double)s, 1, PC_I32, test_device()));
}

/* `factors`: of a dropout, or NULL. */
static pc_tensor *plain(pc_tensor *q, pc_tensor *k, pc_tensor *v, pc_fn_attention_options o, pc_tensor *factors)
{
    const int64_t l = pc_tensor_size(q, -2), s = pc_tensor_size(k, -2), e = pc_tensor_size(q, -1);
    const double scale = o.scale != 0 ? o.scale : 1 / sqrt((double)e);
    pc_tensor *scores = pc_mul_scalar(pc_matmul(q, pc_transpose(k, -1, -2)), scale);
    if (o.mask && pc_tensor_dtype(o.mask) == PC_BOOL)
        scores = pc_masked_fill(scores, pc_logical_not(o.mask), -INFINITY);
    else if (o.mask)
        scores = pc_add(scores, pc_cast(o.mask, PC_F64));
    if (o.causal)
        scores = pc_masked_fill(scores, pc_logical_not(triangle(l, s)), -INFINITY);
    pc_tensor *weights = pc_softmax(scores, -1);
    return pc_matmul(factors ? pc_mul(weights, factors) : weights, v);
}

typedef struct shape {
    int64_t b, h, l, s, e, ev;
} shape;

/* Numbers of [b, h, t, e], seen in [b, t, 3, h, e] where `views`: of variance 1, and drawn evenly, as to draw normal ones takes
 * half of the test with the address sanitizer. */
static pc_tensor *some(const shape *z, int64_t t, int64_t e, pc_dtype dtype, bool views)
{
    const pc_shape of = views ? PC_SHAPE(z->b, t, 3, z->h, e) : PC_SHAPE(z->b, z->h, t, e);
    pc_tensor *all = pc_mul_scalar(pc_sub_scalar(pc_rand(of, PC_F32, test_device()), 0.5), sqrt(12));
    all = pc_cast(all, dtype);
    return views ? pc_permute(entry(all, 2, 1), PC_SHAPE(0, 2, 1, 3)) : all;
}

static double tolerance_of(pc_dtype dtype)
{
    return dtype == PC_F64 ? 1e-12 : dtype == PC_F32 ? 1e-5 : dtype == PC_F16 ? 4e-3 : 3e-2;
}

/* The largest difference, as a share of the largest number of `b`, or of 1 where that is below. */
static double off_by(pc_tensor *a, pc_tensor *b)
{
    pc_tensor *wide = pc_cast(b, PC_F64), *difference = pc_sub(pc_cast(a, PC_F64), wide);
    return pc_item(pc_max(pc_abs(difference))) / fmax(1, pc_item(pc_max(pc_abs(wide))));
}

static void check_all(const char *what, const shape *z, pc_dtype dtype, pc_tensor **got, pc_tensor **want)
{
    static const char *const names[] = {"y", "dq", "dk", "dv"};
    for (int i = 0; i < 4; i++) {
        assert_not_null_ok(got[i]);
        const double off = off_by(got[i], want[i]);
        if (!(off <= tolerance_of(dtype)))
            fail_msg("%s, %s of b %d h %d l %d s %d e %d ev %d in %s: %.3g off", what, names[i], (int)z->b, (int)z->h,
                     (int)z->l, (int)z->s, (int)z->e, (int)z->ev, pc_dtype_name(dtype), off);
    }
}

/* y and the gradients, of attention in `dtype` or in parts in float64. */
static void results(pc_tensor *const *in, pc_fn_attention_options o, pc_tensor *factors, bool parts, pc_tensor **out)
{
    pc_tensor *x[3];
    for (int i = 0; i < 3; i++) {
        x[i] = parts ? pc_cast(in[i], PC_F64) : pc_detach(in[i]);
        assert_ok(pc_require_grad(x[i], true));
    }
    out[0] = parts ? plain(x[0], x[1], x[2], o, factors) : pc_fn_attention(x[0], x[1], x[2], o);
    assert_not_null_ok(out[0]);
    assert_ok(pc_backward_with(out[0], pc_cast(in[3], pc_tensor_dtype(out[0]))));
    for (int i = 0; i < 3; i++)
        out[1 + i] = pc_grad(x[i]);
}

static void make(const shape *z, pc_dtype dtype, bool views, pc_tensor **in)
{
    in[0] = some(z, z->l, z->e, dtype, views);
    in[1] = some(z, z->s, z->e, dtype, views);
    in[2] = some(z, z->s, z->ev, dtype, views);
    in[3] = some(z, z->l, z->ev, dtype, views);
}

static void check(const char *what, const shape *z, pc_dtype dtype, bool views, pc_fn_attention_options o)
{
    PC_SCOPE {
        pc_tensor *in[4], *got[4], *want[4];
        make(z, dtype, views, in);
        results(in, o, NULL, false, got);
        results(in, o, NULL, true, want);
        check_all(what, z, dtype, got, want);
    }
}

static const pc_dtype dtypes[] = {PC_F32, PC_F64, PC_F16, PC_BF16};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void lengths_and_sizes(void **state)
{
    static const int64_t lengths[] = {1, 7, 65, 130}, sizes[] = {1, 3, 8, 20, 32, 64, 80, 128};
    (void)state;
    int at = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 8; k++, at++) {
                if (sampled() && (at % 5 || lengths[i] * lengths[j] > 10000))
                    continue;
                const shape z = {1, 2, lengths[i], lengths[j], sizes[k], sizes[at % 8]};
                const pc_fn_attention_options o = {.causal = at % 3 == 0};
                check("dense", &z, dtypes[at % DTYPES], at % 2, o);
            }
    assert_no_leak();
}

/* Of all dtypes, causal and not, where heads are views of one tensor. */
static void heads_of_one_tensor(void **state)
{
    static const shape shapes[] = {
        {2, 4, 64, 64, 32, 32}, {1, 2, 70, 70, 64, 64}, {2, 1, 33, 129, 16, 24}, {1, 2, 67, 40, 70, 93}};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int d = 0; d < DTYPES; d++)
            for (int causal = 0; causal < 2; causal++)
                check("views", &shapes[i], dtypes[d], true, (pc_fn_attention_options){.causal = causal, .scale = 0.2});
    assert_no_leak();
}

static void long_rows(void **state)
{
    const shape z = {1, 1, 300, sampled() ? 300 : 1100, 24, 40};
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        check("long", &z, dtypes[d], d % 2, (pc_fn_attention_options){.causal = d < 2});
    assert_no_leak();
}

/* Later keys have larger scores, so that a row's largest one moves again and again; or smaller ones, by a scale below 0. */
static void growing_scores(void **state)
{
    static const shape shapes[] = {{1, 2, 90, 200, 32, 32}, {1, 1, 130, 140, 64, 40}};
    static const double scales[] = {0, -0.2};
    (void)state;
    for (int i = 0; i < 4 * DTYPES; i++)
        PC_SCOPE {
            const shape *z = &shapes[i / 2 / DTYPES];
            const pc_dtype dtype = dtypes[i / 2 % DTYPES];
            const pc_fn_attention_options o = {.causal = i % 3 == 0, .scale = scales[i % 2]};
            pc_tensor *in[4], *got[4], *want[4];
            make(z, dtype, false, in);
            pc_tensor *growth = pc_reshape(pc_arange(0, (double)z->s, 1, PC_F32, test_device()), PC_SHAPE(z->s, 1));
            in[1] = pc_cast(pc_mul(pc_cast(in[1], PC_F32), pc_mul_scalar(growth, 8.0 / (double)z->s)), dtype);
            results(in, o, NULL, false, got);
            results(in, o, NULL, true, want);
            check_all("growing", z, dtype, got, want);
        }
    assert_no_leak();
}

/* Every row sees its first key, since parts have no answer where none is. */
static void masks(void **state)
{
    const shape z = {2, 3, 70, 130, 24, 16};
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        PC_SCOPE {
            pc_tensor *drawn = pc_rand(PC_SHAPE(3, 70, 130), PC_F32, test_device());
            pc_tensor *first = pc_eq(pc_arange(0, 130, 1, PC_I32, test_device()), pc_scalar(0, PC_I32, test_device()));
            pc_tensor *allowed = pc_logical_or(pc_lt(drawn, pc_scalar(0.4, PC_F32, test_device())), first);
            pc_tensor *keys = pc_reshape(entry(allowed, 1, 0), PC_SHAPE(1, 3, 1, 130));
            pc_tensor *turned = pc_transpose(pc_contiguous(pc_transpose(allowed, 1, 2)), 1, 2);
            check("bool mask", &z, dtypes[d], d % 2, (pc_fn_attention_options){.mask = allowed});
            check("keys' mask", &z, dtypes[d], true, (pc_fn_attention_options){.mask = keys, .causal = true});
            check("turned mask", &z, dtypes[d], true, (pc_fn_attention_options){.mask = turned});
            check("added mask", &z, dtypes[d], true, (pc_fn_attention_options){.mask = pc_mul_scalar(drawn, 3)});
            pc_tensor *mixed = pc_masked_fill(drawn, pc_logical_not(allowed), -INFINITY);
            check("added infinity", &z, dtypes[d], false, (pc_fn_attention_options){.mask = mixed, .causal = true});
        }
    assert_no_leak();
}

/* A query or two, as when text is made word by word. */
static void few_queries(void **state)
{
    (void)state;
    for (int l = 1; l < 5; l++)
        for (int d = 0; d < DTYPES; d++)
            PC_SCOPE {
                const shape z = {2, 2, l, 530, 20 + 12 * (l % 2), 32};
                pc_tensor *drawn = pc_rand(PC_SHAPE(2, l, 530), PC_F32, test_device());
                pc_tensor *allowed = pc_lt(drawn, pc_scalar(0.4, PC_F32, test_device()));
                const int only = sampled() ? (l + d) % 3 : -1;
                if (only <= 0)
                    check("few queries", &z, dtypes[d], d % 2, (pc_fn_attention_options){.causal = l == 3});
                if (only < 0 || only == 1)
                    check("few, bool mask", &z, dtypes[d], true, (pc_fn_attention_options){.mask = allowed});
                if (only < 0 || only == 2)
                    check("few, added mask", &z, dtypes[d], true,
                          (pc_fn_attention_options){.mask = drawn, .causal = true});
            }
    assert_no_leak();
}

/* Weights that a dropout leaves, from values that are a unit matrix; gradients beside parts with the same ones. */
static void dropout(void **state)
{
    const shape z = {1, 2, 70, 90, 24, 90};
    const pc_fn_attention_options o = {.dropout = 0.25, .causal = false};
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        PC_SCOPE {
            pc_tensor *in[4], *got[4], *want[4], *unit, *weights, *left;
            make(&z, dtypes[d], d % 2, in);
            unit = pc_cast(
                pc_mul(pc_cast(triangle(90, 90), PC_F64), pc_cast(pc_transpose(triangle(90, 90), 0, 1), PC_F64)),
                PC_F64);
            pc_tensor *wide[] = {pc_cast(in[0], PC_F64), pc_cast(in[1], PC_F64)};
            pc_seed(7);
            left = pc_fn_attention(wide[0], wide[1], unit, o);
            weights = pc_fn_attention(wide[0], wide[1], unit, (pc_fn_attention_options){.causal = false});
            pc_tensor *factors = pc_div(left, weights);
            const double mean = pc_item(pc_mean(factors)), most = pc_item(pc_max(factors));
            assert_close(most, 1 / 0.75, 1e-9);
            assert_close(mean, 1, 0.03);
            pc_seed(7);
            results(in, o, NULL, false, got);
            results(in, o, factors, true, want);
            check_all("dropout", &z, dtypes[d], got, want);
            pc_tensor *none = pc_fn_attention(in[0], in[1], in[2], (pc_fn_attention_options){.dropout = 1});
            assert_close(pc_item(pc_max(pc_abs(none))), 0, 0);
        }
    assert_no_leak();
}

/* What is left of weights is a thousand times as large, and is rounded to 16 bits: later keys weigh e^5 times what the first do. */
static void dropout_of_most(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        PC_SCOPE {
            const pc_shape rows = PC_SHAPE(1, 8, 64, 8), keys = PC_SHAPE(1, 8, 192, 8);
            pc_tensor *q = pc_ones(rows, dtypes[d], test_device()), *v = pc_ones(keys, dtypes[d], test_device());
            pc_tensor *k = pc_zeros(keys, dtypes[d], test_device());
            assert_ok(pc_fill(pc_slice(k, 2, 64, 192, 1), 5.0 / 8));
            pc_seed(3);
            pc_tensor *y = pc_fn_attention(q, k, v, (pc_fn_attention_options){.scale = 1, .dropout = 0.999});
            assert_not_null_ok(y);
            assert_true(pc_item(pc_max(y)) > 1);
            assert_true(pc_item(pc_all(pc_isfinite(y))) == 1);
        }
    assert_no_leak();
}

/* Queries without keys give zeros, however many there are. */
static void no_keys(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        PC_SCOPE {
            pc_tensor *q = pc_ones(PC_SHAPE(2, 3, 200, 64), dtypes[d], test_device());
            pc_tensor *none = pc_zeros(PC_SHAPE(2, 3, 0, 64), dtypes[d], test_device());
            pc_tensor *y = pc_fn_attention(q, none, none, (pc_fn_attention_options){0});
            assert_not_null_ok(y);
            assert_close(pc_item(pc_max(pc_abs(y))), 0, 0);
        }
    assert_no_leak();
}

static bool same_bits(pc_tensor *a, pc_tensor *b)
{
    return pc_item(pc_sum(pc_cast(pc_ne(a, b), PC_I32))) == 0;
}

static void threads_change_no_bit(void **state)
{
    const shape z = {1, 3, 530, 530, 32, 32};
    (void)state;
    only_on_the_cpu();
    PC_SCOPE {
        pc_tensor *in[4], *one[4], *many[4];
        make(&z, PC_F32, true, in);
        for (int causal = 0; causal < 2; causal++) {
            const pc_fn_attention_options o = {.causal = causal, .dropout = 0.1};
            pc_seed(3);
            pc_threads_set(1);
            results(in, o, NULL, false, one);
            pc_seed(3);
            pc_threads_set(4);
            results(in, o, NULL, false, many);
            for (int i = 0; i < 4; i++)
                assert_true(same_bits(one[i], many[i]));
        }
        pc_threads_set(0);
    }
    assert_no_leak();
}

/* The result lies as q does, so that heads are put together without a copy. */
static void results_lie_as_inputs(void **state)
{
    const shape z = {2, 3, 5, 7, 8, 4};
    (void)state;
    PC_SCOPE {
        pc_tensor *in[4];
        make(&z, PC_F32, true, in);
        pc_tensor *y = pc_fn_attention(in[0], in[1], in[2], (pc_fn_attention_options){.causal = false});
        pc_tensor *turned = pc_permute(y, PC_SHAPE(0, 2, 1, 3));
        assert_true(pc_tensor_is_contiguous(turned));
        assert_false(pc_tensor_is_contiguous(y));
    }
    assert_no_leak();
}

/* q, k and v of one tensor, beside the same apart; the gradient lies as that tensor does. */
static void one_tensor(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        PC_SCOPE {
            const pc_fn_attention_options o = {.causal = true, .dropout = d % 2 ? 0.2 : 0};
            pc_tensor *all = pc_cast(pc_randn(PC_SHAPE(2, 20, 3, 4, 16), PC_F32, test_device()), dtypes[d]);
            pc_tensor *whole = pc_detach(pc_permute(all, PC_SHAPE(2, 0, 3, 1, 4))), *parts[4], *other[4];
            assert_ok(pc_require_grad(whole, true));
            for (int i = 0; i < 3; i++)
                parts[i] = pc_detach(entry(whole, 0, i));
            parts[3] = pc_randn(PC_SHAPE(2, 4, 20, 16), PC_F32, test_device());
            pc_seed(2);
            results(parts, o, NULL, false, other);
            pc_seed(2);
            pc_tensor *y = pc_fn_self_attention(whole, o);
            assert_ok(pc_backward_with(y, pc_cast(parts[3], dtypes[d])));
            assert_close(off_by(y, other[0]), 0, 0);
            for (int i = 0; i < 3; i++)
                assert_close(off_by(entry(pc_grad(whole), 0, i), other[1 + i]), 0, 0);
            assert_true(pc_tensor_is_contiguous(pc_permute(pc_grad(whole), PC_SHAPE(1, 3, 0, 2, 4))));
        }
    assert_no_leak();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_input),
    cmocka_unit_test(lengths_and_sizes),
    cmocka_unit_test(heads_of_one_tensor),
    cmocka_unit_test(long_rows),
    cmocka_unit_test(growing_scores),
    cmocka_unit_test(masks),
    cmocka_unit_test(few_queries),
    cmocka_unit_test(dropout),
    cmocka_unit_test(dropout_of_most),
    cmocka_unit_test(no_keys),
    cmocka_unit_test(threads_change_no_bit),
    cmocka_unit_test(results_lie_as_inputs),
    cmocka_unit_test(one_tensor),
};

int main(void)
{
    return golden_main("ops.attention", ops, tests);
}

/* Matrix products of every level against plain loops in double: sizes with tails, strides, epilogues, threads. */
#include "levels.h"

typedef struct layout {
    int64_t rs, cs, size;
} layout;

/* Row-major, column-major, every second element, or one row repeated. */
static layout layout_of(int kind, int64_t rows, int64_t columns)
{
    switch (kind) {
    case 0:
        return (layout){columns, 1, rows * columns};
    case 1:
        return (layout){1, rows, rows * columns};
    case 2:
        return (layout){2 * columns + 3, 2, rows * (2 * columns + 3)};
    default:
        return (layout){0, 1, columns};
    }
}

/* A product of two matrices of one type. */
typedef struct product {
    const int64_t *size;
    const int *kinds;
    layout la, lb;
    array a, b;
    double *sums; /* [m, n], by plain loops in double: without bias and activation */
} product;

/* A dense copy as doubles. */
static double *numbers_of(array a, layout l, int64_t rows, int64_t columns)
{
    double *numbers = calloc((size_t)(rows * columns) + 1, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            numbers[i * columns + j] = get(a, i * l.rs + j * l.cs);
    return numbers;
}

static double *plain_sums(const product *p)
{
    const int64_t m = p->size[0], n = p->size[1], depth = p->size[2];
    double *a = numbers_of(p->a, p->la, m, depth), *b = numbers_of(p->b, p->lb, depth, n);
    double *sums = calloc((size_t)(m * n) + 1, sizeof *sums);
    assert_non_null(sums);
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < depth; q++)
            for (int64_t j = 0; j < n; j++)
                sums[i * n + j] += a[i * depth + q] * b[q * n + j];
    free(a), free(b);
    return sums;
}

static void check(const kernels *k, const product *p, bool bias, bool add, pc__activation activation)
{
    const int64_t m = p->size[0], n = p->size[1], depth = p->size[2];
    const layout lc = layout_of(p->kinds[2], m, n);
    array c = array_new(k, lc.size, 3), before = array_new(k, lc.size, 3), extra = array_new(k, n, 4);
    pc__gemm g = {m,
                  n,
                  depth,
                  p->a.data,
                  p->la.rs,
                  p->la.cs,
                  p->b.data,
                  p->lb.rs,
                  p->lb.cs,
                  c.data,
                  lc.rs,
                  lc.cs,
                  bias ? extra.data : NULL,
                  add,
                  activation};
    assert_ok(k->gemm(&g));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const double got = get(c, i * lc.rs + j * lc.cs);
            const double first = (add ? get(before, i * lc.rs + j * lc.cs) : 0) + (bias ? get(extra, j) : 0);
            const double want = activated(activation, first + p->sums[i * n + j]);
            if (!(fabs(got - want) <= tolerance(k) * (1 + sqrt((double)depth))))
                fail_msg("%s %s: %lldx%lldx%lld kinds %d%d%d bias %d add %d act %d at %lld,%lld: got %.9g, want %.9g",
                         k->level, k->is_double ? "f64" : "f32", (long long)m, (long long)n, (long long)depth,
                         p->kinds[0], p->kinds[1], p->kinds[2], bias, add, activation, (long long)i, (long long)j, got,
                         want);
        }
    array_free(c), array_free(before), array_free(extra);
}

/* The plain loops take longest: once for all levels and variants of a type, whose arrays are the same. */
static void check_all(bool is_double, const int64_t size[3], const int kinds[3], int first_activation)
{
    const kernels type = {.is_double = is_double};
    product p = {size, kinds, layout_of(kinds[0], size[0], size[2]), layout_of(kinds[1], size[2], size[1]),
                 .sums = NULL};
    p.a = array_new(&type, p.la.size, 1), p.b = array_new(&type, p.lb.size, 2);
    p.sums = plain_sums(&p);
    for (int i = 0; i < PC__COUNT(all_kernels); i++)
        for (int variant = 0; variant < 3; variant++)
            if (all_kernels[i].is_double == is_double && level_runs(all_kernels[i].level))
                check(&all_kernels[i], &p, variant == 1, variant == 2,
                      (pc__activation)((first_activation + variant) % 4));
    array_free(p.a), array_free(p.b), free(p.sums);
}

static void products_agree(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        {0, 3, 4},    {3, 0, 4},     {3, 4, 0},    {1, 1, 1},      {1, 5, 7},    {5, 1, 33},    {2, 3, 200},
        {32, 1, 128}, {7, 64, 9},    {13, 65, 31}, {32, 128, 64},  {6, 48, 193}, {17, 100, 27}, {33, 33, 1100},
        {65, 37, 50}, {97, 130, 40}, {5, 7, 5000}, {120, 31, 200}, {1, 300, 40}, {600, 9, 20},  {70, 700, 10},
        {45, 1, 37},  {9, 4, 70},    {37, 3, 2},   {70, 49, 1},    {49, 1, 70},  {5, 133, 210}, {11, 96, 200},
        {3, 128, 4},  {40, 83, 12},  {90, 1, 3},   {700, 1, 15},   {17, 1, 1},
    };
    for (int type = 0; type < 2; type++)
        for (int i = 0; i < PC__COUNT(sizes); i++)
            for (int kinds = 0; kinds < 4 * 4 * 3; kinds++)
                check_all(type == 1, sizes[i], (const int[]){kinds % 4, kinds / 4 % 4, kinds / 16}, i);
}

static void check_threads(const kernels *k)
{
    static const int64_t sizes[][3] = {{32, 500, 300}, {300, 64, 200},  {24, 20, 9000}, {32, 130, 1300},
                                       {700, 300, 64}, {50000, 1, 50},  {30000, 26, 3}, {600, 1003, 20},
                                       {4, 2019, 300}, {300, 1030, 60}, {30000, 1, 3},  {20000, 1, 15},
                                       {130, 1, 15}};
    for (int i = 0; i < PC__COUNT(sizes); i++)
        for (int turned = 0; turned < 2; turned++) {
            const int64_t m = sizes[i][0], n = sizes[i][1], depth = sizes[i][2];
            array a = array_new(k, m * depth, 1), b = array_new(k, depth * n, 2);
            array c[3] = {array_new(k, m * n, 3), array_new(k, m * n, 3), array_new(k, m * n, 3)};
            for (int run = 0; run < 3; run++) {
                pc__gemm g = {
                    m,           n, depth, a.data, depth, 1,           b.data, turned ? 1 : n, turned ? depth : 1,
                    c[run].data, n, 1,     NULL,   false, PC__ACT_NONE};
                pc_threads_set(run == 0 ? 1 : run == 1 ? 2 : 5);
                assert_ok(k->gemm(&g));
            }
            pc_threads_set(0);
            size_t bytes = (size_t)(m * n) * (k->is_double ? 8 : 4);
            assert_memory_equal(c[0].data, c[1].data, bytes);
            assert_memory_equal(c[0].data, c[2].data, bytes);
            array_free(a), array_free(b), array_free(c[0]), array_free(c[1]), array_free(c[2]);
        }
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    each_kernels(check_threads);
}

/* Activations over their whole range, by way of a product with 1. */
static void check_activations(const kernels *k)
{
    enum { COUNT = 4001 };
    const double loose = k->is_double ? 1e-14 : 4e-7;
    array x = array_new(k, COUNT, 1), one = array_new(k, 1, 1), y = array_new(k, COUNT, 1);
    set(one, 0, 1);
    for (int i = 0; i < COUNT; i++)
        set(x, i, (i - COUNT / 2) * (i % 2 ? 0.05 : 1e-4));
    for (int activation = PC__ACT_RELU; activation <= PC__ACT_TANH; activation++) {
        pc__gemm g = {
            1, COUNT, 1, one.data, 1, 1, x.data, COUNT, 1, y.data, COUNT, 1, NULL, false, (pc__activation)activation};
        assert_ok(k->gemm(&g));
        for (int i = 0; i < COUNT; i++) {
            double want = activated((pc__activation)activation, get(x, i));
            assert_close(get(y, i), want, loose * fabs(want) + 1e-37);
        }
    }
    set(x, 7, NAN), set(x, 8, INFINITY), set(x, 9, -INFINITY);
    for (int activation = PC__ACT_RELU; activation <= PC__ACT_TANH; activation++) {
        pc__gemm g = {
            1, COUNT, 1, one.data, 1, 1, x.data, COUNT, 1, y.data, COUNT, 1, NULL, false, (pc__activation)activation};
        assert_ok(k->gemm(&g));
        assert_true(isnan(get(y, 7)));
        assert_close(get(y, 9), activated((pc__activation)activation, -INFINITY), 1e-6);
        assert_true(activation == PC__ACT_RELU ? isinf(get(y, 8)) : fabs(get(y, 8) - 1) < 1e-6);
    }
    array_free(x), array_free(one), array_free(y);
}

static void activations_agree(void **state)
{
    (void)state;
    each_kernels(check_activations);
}

typedef struct request {
    const kernels *k;
    pc__gemm g;
} request;

static pc_status request_run(void *context)
{
    const request *r = context;
    return r->k->gemm(&r->g);
}

static void check_memory(const kernels *k)
{
    static const int64_t sizes[][3] = {{100, 120, 90}, {8, 8, 5000}, {300, 250, 40}};
    for (int i = 0; i < PC__COUNT(sizes); i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1], depth = sizes[i][2];
        array a = array_new(k, m * depth, 1), b = array_new(k, depth * n, 2), c = array_new(k, m * n, 3);
        request r = {k, {m, n, depth, a.data, depth, 1, b.data, n, 1, c.data, n, 1, NULL, false, PC__ACT_NONE}};
        assert_int_equal(sweep_allocations(request_run, &r), 1);
        array_free(a), array_free(b), array_free(c);
    }
}

static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    each_kernels(check_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_agree),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(activations_agree),
        cmocka_unit_test(out_of_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("cpu.gemm", tests, NULL, NULL);
}

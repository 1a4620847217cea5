/* Products of 16-bit numbers by every level, against plain loops in double: sizes with tails, strides, blocks, bias and
 * activation; and the same bits with any number of threads. */
#include "host.h"

#include "levels.h"
#include "tensor/half.h"

typedef pc_status half_gemm(const pc__gemm *g, bool is_f16, bool wide);

#define ROW(level) {#level, pc__gemm_half_##level},
static const struct {
    const char *name;
    half_gemm *run;
} levels[] = {PC__EACH_LEVEL(ROW)};

typedef struct matrix {
    int64_t rs, cs, count;
    uint16_t *bits;
} matrix;

static double number(uint16_t bits, bool is_f16)
{
    return (double)(is_f16 ? pc__f16_float((pc_f16){bits}) : pc__bf16_float((pc_bf16){bits}));
}

static uint16_t bits_of(double value, bool is_f16)
{
    return is_f16 ? pc__f16_of((float)value).bits : pc__bf16_of((float)value).bits;
}

/* Row-major, column-major, every second element, or one row repeated. */
static matrix matrix_new(int kind, int64_t rows, int64_t columns, bool is_f16, uint64_t seed)
{
    matrix a = {kind == 1   ? 1
                : kind == 2 ? 2 * columns + 3
                : kind == 3 ? 0
                            : columns,
                kind == 1   ? PC__MAX(rows, 1)
                : kind == 2 ? 2
                            : 1,
                0, NULL};
    a.count = 2 * rows * columns + 3 * rows + columns + 1;
    a.bits = malloc((size_t)a.count * sizeof *a.bits);
    assert_non_null(a.bits);
    for (int64_t i = 0; i < a.count; i++)
        a.bits[i] = bits_of(noise(&seed) / 2, is_f16);
    return a;
}

static pc__gemm product_of(const int64_t size[3], const matrix *a, const matrix *b, void *c, int64_t c_rs, int64_t c_cs)
{
    return (pc__gemm){.m = size[0],
                      .n = size[1],
                      .k = size[2],
                      .a = a->bits,
                      .a_rs = a->rs,
                      .a_cs = a->cs,
                      .b = b->bits,
                      .b_rs = b->rs,
                      .b_cs = b->cs,
                      .c = c,
                      .c_rs = c_rs,
                      .c_cs = c_cs};
}

/* A dense copy as doubles: what each number of the plain loops is read from. */
static double *numbers_of(const matrix *a, int64_t rows, int64_t columns, bool is_f16)
{
    double *numbers = calloc((size_t)(rows * columns) + 1, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            numbers[i * columns + j] = number(a->bits[i * a->rs + j * a->cs], is_f16);
    return numbers;
}

/* A product with its bias and activation. */
typedef struct product {
    const int64_t *size;
    const int *kinds;
    bool is_f16, wide, bias;
    pc__activation activation;
    matrix a, b, extra;
    double *want; /* [m, n], by plain loops in double */
} product;

static void want_plain(product *p)
{
    const int64_t m = p->size[0], n = p->size[1], k = p->size[2];
    double *a = numbers_of(&p->a, m, k, p->is_f16), *b = numbers_of(&p->b, k, n, p->is_f16);
    double *extra = numbers_of(&p->extra, 1, n, p->is_f16);
    p->want = calloc((size_t)(m * n) + 1, sizeof *p->want);
    assert_non_null(p->want);
    for (int64_t i = 0; i < m; i++) {
        double *row = p->want + i * n;
        if (p->bias)
            memcpy(row, extra, (size_t)n * sizeof *row);
        for (int64_t q = 0; q < k; q++)
            for (int64_t j = 0; j < n; j++)
                row[j] += a[i * k + q] * b[q * n + j];
        for (int64_t j = 0; j < n; j++)
            row[j] = p->activation == PC__ACT_RELU   ? fmax(row[j], 0)
                     : p->activation == PC__ACT_TANH ? tanh(row[j])
                                                     : row[j];
    }
    free(a), free(b), free(extra);
}

static void check(int level, const product *p)
{
    const int64_t m = p->size[0], n = p->size[1], k = p->size[2];
    matrix c = matrix_new(p->kinds[2], m, n, p->is_f16, 3);
    float *result = calloc((size_t)c.count, sizeof *result);
    assert_non_null(result);
    pc__gemm g = product_of(p->size, &p->a, &p->b, p->wide ? (void *)result : c.bits, c.rs, c.cs);
    g.bias = p->bias ? p->extra.bits : NULL;
    g.activation = p->activation;
    assert_ok(levels[level].run(&g, p->is_f16, p->wide));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = i * c.rs + j * c.cs;
            const double want = p->want[i * n + j];
            const double got = p->wide ? (double)result[at] : number(c.bits[at], p->is_f16);
            const double room =
                1e-6 * (1 + sqrt((double)k)) + (p->wide ? 0 : fabs(want) * (p->is_f16 ? 0x1p-11 : 0x1p-8));
            if (!(fabs(got - want) <= room))
                fail_msg("%s %s: %lldx%lldx%lld kinds %d%d%d at %lld,%lld: got %.9g, want %.9g", levels[level].name,
                         p->is_f16 ? "f16" : "bf16", (long long)m, (long long)n, (long long)k, p->kinds[0], p->kinds[1],
                         p->kinds[2], (long long)i, (long long)j, got, want);
        }
    free(c.bits), free(result);
}

/* The plain loops take longest: once for all levels. */
static void check_levels(product p)
{
    p.a = matrix_new(p.kinds[0], p.size[0], p.size[2], p.is_f16, 1);
    p.b = matrix_new(p.kinds[1], p.size[2], p.size[1], p.is_f16, 2);
    p.extra = matrix_new(0, 1, p.size[1], p.is_f16, 4);
    want_plain(&p);
    for (int level = 0; level < PC__COUNT(levels); level++)
        if (level_runs(levels[level].name))
            check(level, &p);
    free(p.a.bits), free(p.b.bits), free(p.extra.bits), free(p.want);
}

static void products_agree(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        {0, 3, 4},      {3, 4, 0},      {1, 1, 1},     {1, 5, 7},      {5, 1, 33},    {1, 9, 200},  {2, 3, 65},
        {3, 6, 129},    {4, 13, 96},    {5, 13, 96},   {32, 1, 128},   {7, 64, 9},    {13, 65, 31}, {130, 70, 64},
        {6, 48, 1100},  {40, 36, 1040}, {129, 33, 40}, {3, 5, 2100},   {8, 300, 20},  {300, 9, 20}, {1, 260, 1030},
        {100, 1100, 3}, {13, 200, 700}, {300, 2, 5},   {1, 1300, 333}, {2, 700, 801},
    };
    for (int i = 0; i < PC__COUNT(sizes); i++)
        for (int kinds = 0; kinds < 4 * 4 * 3; kinds++)
            check_levels((product){.size = sizes[i],
                                   .kinds = (const int[]){kinds % 4, kinds / 4 % 4, kinds / 16},
                                   .is_f16 = (i + kinds) % 2,
                                   .wide = kinds % 5 == 0,
                                   .bias = kinds % 2,
                                   .activation = (i + kinds) % 3 == 0   ? PC__ACT_RELU
                                                 : (i + kinds) % 3 == 1 ? PC__ACT_TANH
                                                                        : PC__ACT_NONE});
}

static void any_threads_give_the_same_bits(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{300, 500, 700}, {2, 4000, 600}, {700, 1500, 17}};
    const int before = pc_threads_get();
    int widest = 0;
    for (int level = 1; level < PC__COUNT(levels); level++)
        widest = level_runs(levels[level].name) ? level : widest;
    for (int i = 0; i < PC__COUNT(sizes); i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        matrix a = matrix_new(i % 2, m, k, false, 1), b = matrix_new(1, k, n, false, 2);
        float *c[2];
        for (int t = 0; t < 2; t++) {
            c[t] = calloc((size_t)(m * n), sizeof **c);
            assert_non_null(c[t]);
            pc_threads_set(1 + 3 * t);
            const pc__gemm g = product_of(sizes[i], &a, &b, c[t], n, 1);
            assert_ok(levels[widest].run(&g, false, true));
        }
        assert_memory_equal(c[0], c[1], (size_t)(m * n) * sizeof **c);
        free(a.bits), free(b.bits), free(c[0]), free(c[1]);
    }
    pc_threads_set(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_agree),
                                       cmocka_unit_test(any_threads_give_the_same_bits)};
    return cmocka_run_group_tests_name("cpu.gemm_half", tests, NULL, NULL);
}

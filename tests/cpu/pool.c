/* Maxima of 16-bit numbers, bit for bit, at every level: with places and without. */
#include "cpu/levels.h"

#include "tensor/half.h"

static float value(uint16_t bits, bool is_f16)
{
    return is_f16 ? pc__f16_float((pc_f16){bits}) : pc__bf16_float((pc_bf16){bits});
}

/* One in so many is a zero of either sign, NaN or infinite. */
static uint16_t draw(uint64_t *seed, int seldom, bool is_f16)
{
    static const uint16_t odd[] = {0, 0x8000, 0, 0x8000, 0x7fff, 0xffff, 0x7f81, 0xffc1};
    const uint16_t infinite = is_f16 ? 0x7c00 : 0x7f80;
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    const uint32_t bits = (uint32_t)(*seed >> 32);
    if (seldom && bits % (uint32_t)seldom == 0)
        return bits >> 16 & 8 ? (uint16_t)(infinite | (bits >> 8 & 0x8000)) : odd[bits >> 16 & 7];
    return (uint16_t)((bits >> 8 & 0x8000) | (bits >> 16) % infinite);
}

/* The first of equals, zeros too; the last NaN. */
static uint16_t greatest(const pc__pool *s, const uint16_t *x, int64_t e, int32_t *place)
{
    const int64_t oh = pc__pool_oh(s), ow = pc__pool_ow(s);
    const int64_t c = e % s->c, j = e / s->c % ow, i = e / s->c / ow % oh, n = e / s->c / ow / oh;
    int64_t most = -1;
    for (int64_t h = PC__MAX(i * s->sh - s->ph, 0); h < PC__MIN(i * s->sh - s->ph + s->kh, s->h); h++)
        for (int64_t w = PC__MAX(j * s->sw - s->pw, 0); w < PC__MIN(j * s->sw - s->pw + s->kw, s->w); w++) {
            const int64_t at = ((n * s->h + h) * s->w + w) * s->c + c;
            const float here = value(x[at], s->is_f16);
            if (most < 0 || here > value(x[most], s->is_f16) || here != here)
                most = at;
        }
    *place = (int32_t)(most / s->c - n * s->h * s->w);
    const bool nan = value(x[most], s->is_f16) != value(x[most], s->is_f16);
    return x[most] | (nan ? s->is_f16 ? 0x200 : 0x40 : 0);
}

static void check_pool(const kernels *k, pc__pool s, int seldom)
{
    const int64_t nx = s.n * s.h * s.w * s.c, ny = s.n * pc__pool_oh(&s) * pc__pool_ow(&s) * s.c;
    uint16_t *x = malloc((size_t)nx * 2), *y = malloc((size_t)ny * 2 + 2), *with = malloc((size_t)ny * 2);
    int32_t *places = malloc((size_t)ny * sizeof *places), place;
    uint64_t seed = (uint64_t)(nx + seldom);
    assert_true(x && y && with && places);
    for (int64_t i = 0; i < nx; i++)
        x[i] = draw(&seed, seldom, s.is_f16);
    y[ny] = 0x1234;
    assert_ok(k->max_pool2d(&s, x, y, NULL));
    assert_ok(k->max_pool2d(&s, x, with, places));
    for (int64_t e = 0; e < ny; e++) {
        const uint16_t want = greatest(&s, x, e, &place);
        if (y[e] != want || with[e] != want || places[e] != place)
            fail_msg("%s %s %dx%dx%dx%d by %dx%d/%d,%d/%d,%d: %d is %04x, %04x at %d, not %04x at %d", k->level,
                     s.is_f16 ? "float16" : "bfloat16", (int)s.n, (int)s.h, (int)s.w, (int)s.c, (int)s.kh, (int)s.kw,
                     (int)s.sh, (int)s.sw, (int)s.ph, (int)s.pw, (int)e, y[e], with[e], places[e], want, place);
    }
    assert_int_equal(y[ny], 0x1234);
    free(x), free(y), free(with), free(places);
}

/* Channels below a vector, of one and beyond; windows that touch, that lie over each other and apart; strips, parts, borders. */
static void check_level(const kernels *k)
{
    static const int64_t list[][12] = {
        {1, 1, 1, 1, 1, 1, 1, 1, 0, 0},       {3, 9, 11, 1, 3, 3, 1, 1, 1, 1},     {2, 12, 70, 1, 2, 2, 2, 2, 0, 0},
        {2, 7, 13, 2, 3, 3, 2, 2, 1, 1},      {2, 9, 23, 2, 2, 4, 1, 3, 0, 2},     {2, 11, 13, 3, 3, 3, 3, 3, 1, 1},
        {4, 6, 7, 5, 2, 2, 2, 2, 1, 1},       {2, 9, 9, 8, 5, 5, 2, 2, 2, 2},      {1, 20, 33, 16, 3, 3, 1, 1, 1, 1},
        {2, 8, 9, 31, 3, 3, 2, 2, 1, 1},      {2, 8, 9, 32, 3, 2, 1, 2, 1, 0},     {1, 9, 8, 33, 4, 4, 3, 3, 2, 2},
        {1, 12, 34, 150, 3, 3, 1, 1, 1, 1},   {1, 10, 12, 1030, 2, 2, 2, 2, 1, 1}, {1, 7, 300, 40, 3, 3, 2, 2, 0, 1},
        {1, 600, 20, 8, 6, 7, 1, 1, 3, 3},    {1, 8, 5000, 1, 3, 3, 2, 1, 1, 1},   {2, 5, 9, 6, 2, 2, 4, 5, 1, 0},
        {1, 7, 8, 12, 2, 3, 2, 3, 0, 0, 4, 3}};
    for (int i = 0; !k->is_double && i < PC__COUNT(list) * 6; i++) {
        const int64_t *v = list[i / 6];
        const pc__pool s = {v[0], v[1], v[2],  v[3], v[4],       v[5],  v[6], v[7],
                            v[8], v[9], false, true, i % 2 == 0, v[10], v[11]};
        check_pool(k, s, i % 6 / 2 == 0 ? 0 : i % 6 / 2 == 1 ? 3 : 300);
    }
}

static void maxima_of_halves(void **state)
{
    (void)state;
    each_kernels(check_level);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maxima_of_halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

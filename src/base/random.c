/* random.c: Philox4x32-10 and the calling thread's generator. */
#include "base.h"
#include "base/normal.h"
#include "base/philox.h"

void pc_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4])
{
    PC__NEED_OR(, out);
    const pc__words words = pc__philox(seed, stream, counter);
    memcpy(out, words.w, sizeof words.w);
}

float pc_uniform_f32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

double pc_uniform_f64(uint32_t high, uint32_t low)
{
    return pc__unit_f64(high, low);
}

void pc_normal_pair(uint32_t a, uint32_t b, float out[2])
{
    PC__NEED_OR(, out);
    pc__normal_two(a, b, &out[0], &out[1]);
}

double pc_uniform(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint32_t w[4];
    pc_philox(seed, stream, counter, w);
    return pc_uniform_f64(w[0], w[1]);
}

void pc_permutation(uint64_t seed, uint64_t stream, int64_t *order, int64_t n)
{
    PC__NEED_OR(, order);
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)(pc_uniform(seed, stream, (uint64_t)i) * (double)(i + 1));
        int64_t t = order[i];
        order[i] = order[j], order[j] = t;
    }
}

static _Thread_local pc_generator generator;

void pc_seed(uint64_t seed)
{
    generator = (pc_generator){seed, 0};
}

pc_generator pc_generator_get(void)
{
    return generator;
}

void pc_generator_set(pc_generator g)
{
    generator = g;
}

pc_generator pc__generator_next(void)
{
    pc_generator now = generator;
    generator.step++;
    return now;
}

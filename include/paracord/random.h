/* random.h: counter-based random numbers, the same on every device and for every number of threads.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC11). A draw is a pure
 * function of (seed, stream, counter): nothing to lock, nothing to save but the position. All functions are pure and
 * may be called from any thread.
 */
#ifndef PARACORD_RANDOM_H
#define PARACORD_RANDOM_H

#include <paracord/api.h>

PC_BEGIN

/* Four 32-bit words for (seed, stream, counter). */
PC_API void pc_philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4]);

/* A word as a number uniform in [0, 1): 24 bits for float, 53 bits of two words for double. */
PC_API float pc_uniform_f32(uint32_t word);
PC_API double pc_uniform_f64(uint32_t high, uint32_t low);

/* Box and Muller: two independent standard normal numbers from two words. */
PC_API void pc_normal_pair(uint32_t a, uint32_t b, float out[2]);

/* One uniform double in [0, 1) for (seed, stream, counter). */
PC_API double pc_uniform(uint64_t seed, uint64_t stream, uint64_t counter);

/* order[0..n-1] becomes a permutation of 0..n-1 (Fisher and Yates) that depends on (seed, stream) alone. */
PC_API void pc_permutation(uint64_t seed, uint64_t stream, int64_t *order, int64_t n);

/* The calling thread's generator for pc_rand, pc_randn, pc_dropout and parameter initialisers: each call of one of
 * those takes the next step. A thread starts with seed 0, step 0. */
typedef struct pc_generator {
    uint64_t seed;
    uint64_t step;
} pc_generator;

PC_API void pc_seed(uint64_t seed);
PC_API pc_generator pc_generator_get(void);
PC_API void pc_generator_set(pc_generator generator);

PC_END
#endif

/* random.h: attributes of ops that draw random numbers. Element i of a draw is word i % 4 of
 * pc_philox(seed, step * 4 + purpose, i / 4). */
#ifndef PC__OP_RANDOM_H
#define PC__OP_RANDOM_H

#include "tensor/tensor.h"

enum pc__purpose { PC__PURPOSE_UNIFORM, PC__PURPOSE_NORMAL, PC__PURPOSE_DROPOUT };

typedef struct pc__random_attributes {
    uint64_t seed, stream; /* dropout: plus 4 times the int64 that a second input has when the kernel runs */
    double low, high; /* uniform: the bounds; normal: mean and standard deviation; dropout and its backward: low = p */
} pc__random_attributes;

/* The next draw of the thread's generator. */
static inline pc__random_attributes pc__draw(enum pc__purpose purpose, double low, double high)
{
    pc_generator g = pc__generator_next();
    return (pc__random_attributes){g.seed, g.step * 4 + purpose, low, high};
}

/* In this thread, dropout draws relative to what `base`, int64 [1], has when its kernel runs: in recordings, where the
 * generator's step, now at `from`, is base for each launch. NULL ends it. Gives back how many draws there were since
 * the call before. */
uint64_t pc__draws_record(pc_tensor *base, uint64_t from);

/* Whether they do. */
bool pc__draws_recorded(void);

/* Makes a dropout's draw relative to that base, which is the call's last input then; NULL where there is none. */
pc_tensor *pc__draw_relative(pc__random_attributes *drawn);

#endif

/* choose.h: which token comes next. */
#ifndef PC__GPT_CHOOSE_H
#define PC__GPT_CHOOSE_H

#include <paracord/gpt.h>

/* A token and how likely it is. */
typedef struct pc__gpt_likely {
    float logit;
    int32_t token;
} pc__gpt_likely;

/* The token that `uniform`, in [0, 1), picks by the options: of the likeliest top_k, and of these of the fewest that have
 * top_p, with probabilities by logit / temperature. `room` is for n. Tokens whose logit is NaN are never picked; of equals
 * the one with the lower number is the likelier one. -1 where no logit is a number. */
int32_t pc__gpt_choose(const float *logits, int64_t n, const pc_gpt_write_options *options, double uniform,
                       pc__gpt_likely *room);

#endif

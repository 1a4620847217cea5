/* choice.c: the words under which a convolution's choice is kept. */
#include "cuda/conv/choice.h"

#include <paracord/tensor.h>
#include <stdio.h>
#include <string.h>

void pc__conv_text(char text[PC__CHOICE_TEXT], const char *gpu, int multiprocessors, size_t cudnn,
                   const pc__conv_shape *s)
{
    static const char *const directions[PC__CONV_DIRECTIONS] = {"forward", "input", "weights"};
    const char *const dtype = s->dtype == PC_F16 ? "float16" : s->dtype == PC_BF16 ? "bfloat16" : "float32";
    snprintf(
        text, PC__CHOICE_TEXT, "%.80s/%d cudnn %zu %s %s%s x %lld %d %d %d w %d %d %d stride %d %d padding %d %d%s%s",
        gpu, multiprocessors, cudnn, directions[s->direction], dtype, s->tf32 ? "/tf32" : "", (long long)s->n, s->c,
        s->h, s->w, s->o, s->kh, s->kw, s->sh, s->sw, s->ph, s->pw, s->bias ? " bias" : "", s->relu ? " relu" : "");
    const size_t n = strlen(text);
    if (s->groups > 1 || s->dh > 1 || s->dw > 1)
        snprintf(text + n, PC__CHOICE_TEXT - n, " dilation %d %d groups %d", s->dh, s->dw, s->groups);
    if (s->planes)
        snprintf(text + strlen(text), PC__CHOICE_TEXT - strlen(text), " planes");
    pc__choices_clean(text);
}

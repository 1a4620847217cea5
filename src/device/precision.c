/* precision.c: how exact the calling thread wants its products, and who is to do its convolutions. */
#include "device/backend.h"

static _Thread_local pc_precision precision;
static _Thread_local int conv = -1; /* -1: as the environment says */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pc_choice asked = PC_CHOICE_RULE;

pc_precision pc_matmul_precision_set(pc_precision wanted)
{
    pc_precision before = precision;
    precision = wanted;
    return before;
}

pc_precision pc_matmul_precision_get(void)
{
    return precision;
}

static void ask(void)
{
    static const char *const names[] = {"own", "rule", "measured", "cudnn"};
    const int said = pc__env_word("PARACORD_CHOICE", names, PC__COUNT(names));
    if (said >= 0)
        asked = (pc_choice)said;
}

pc_choice pc_choice_get(void)
{
    pthread_once(&once, ask);
    return conv < 0 ? asked : (pc_choice)conv;
}

pc_choice pc_choice_set(pc_choice wanted)
{
    const pc_choice before = pc_choice_get();
    conv = (unsigned)wanted <= PC_CHOICE_CUDNN ? (int)wanted : PC_CHOICE_RULE;
    return before;
}

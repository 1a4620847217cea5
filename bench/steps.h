/* steps.h: the time of training steps as one recording. */
#ifndef PC_BENCH_STEPS_H
#define PC_BENCH_STEPS_H

#include <paracord.h>
#include <stdlib.h>
#include <time.h>

static inline double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct training {
    pc_tensor *(*loss)(void *);
    void *user;
    pc_optimizer *optimizer;
    pc_dtype autocast; /* PC_F32: none */
} training;

static inline pc_status learn(void *user)
{
    const training *t = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = NULL;
        if (t->autocast == PC_F32)
            loss = t->loss(t->user);
        else
            PC_AUTOCAST(t->autocast)
                loss = pc_keep(t->loss(t->user));
        status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_optimizer_step(t->optimizer);
    }
    return status;
}

/* Milliseconds until the first step towards less loss was done, and of a step: the median of rounds of `steps`. */
static inline pc_status steps_timed(pc_tensor *(*loss)(void *), void *user, pc_optimizer *optimizer, pc_dtype autocast,
                                    pc_device device, int steps, double *first, double *median)
{
    enum { ROUNDS = 7 };
    double times[ROUNDS] = {0};
    const double begin = now_ms();
    training t = {loss, user, optimizer, autocast};
    pc_step *step = pc_step_new(learn, &t, optimizer);
    pc_status status = step ? pc_step_run(step) : pc_error_last()->status;
    if (status == PC_OK)
        status = pc_device_synchronize(device);
    *first = now_ms() - begin;
    for (int round = 0; round < ROUNDS && status == PC_OK; round++) {
        const double start = now_ms();
        for (int i = 0; i < steps && status == PC_OK; i++)
            status = pc_step_run(step);
        if (status == PC_OK)
            status = pc_device_synchronize(device);
        times[round] = (now_ms() - start) / steps;
    }
    if (status == PC_OK && pc_step_why(step))
        fprintf(stderr, "not recorded: %s\n", pc_step_why(step));
    qsort(times, ROUNDS, sizeof *times, ascending);
    *median = times[ROUNDS / 2];
    pc_step_free(step);
    return status;
}

#endif

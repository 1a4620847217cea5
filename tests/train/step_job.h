/* step_job.h: a small network that learns step by step, recorded or call by call. */
#ifndef PC_TEST_STEP_JOB_H
#define PC_TEST_STEP_JOB_H

#include "device.h"
#include "nn/optimizer.h"
#include "nn/step.h"

#include <paracord.h>

enum { FEATURES = 6, CLASSES = 3, BATCH = 4, SHORT = 2 };

typedef struct job {
    pc_module *net;
    pc_optimizer *optimizer;
    pc_tensor *x[PC__STEP_TURNS], *labels[PC__STEP_TURNS], *loss; /* what a whole step works with */
    int turn, turns;
    int calls;
    bool reads;                                                           /* look at the loss, in the middle */
    bool noise;                                                           /* random numbers beside dropout */
    pc_status (*first)(struct job *j, pc_tensor **x, pc_tensor **labels); /* what a step begins with; NULL: nothing */
    pc_loader *loader;
    pc_tensor *pinned, *drawn; /* BATCH, FEATURES, of the host; and where the program writes between two steps */
    int number;                /* of the step */
} job;

static pc_status learn_from(job *j, pc_tensor *x, pc_tensor *labels)
{
    pc_status status = PC_OK;
    j->calls++;
    if (j->first && j->first(j, &x, &labels) != PC_OK)
        return pc_error_last()->status;
    PC_SCOPE {
        pc_tensor *noisy = j->noise ? pc_add(x, pc_rand(pc_tensor_shape(x), PC_F32, test_device())) : x;
        pc_tensor *loss = pc_cross_entropy(pc_forward(j->net, noisy), labels);
        float value;
        status = pc_backward(loss);
        if (status == PC_OK && j->reads)
            status = pc_read(loss, &value, sizeof value);
        if (status == PC_OK)
            status = pc_optimizer_step(j->optimizer);
        if (status == PC_OK)
            PC_NO_GRAD {
                status = pc_copy(j->loss, loss);
            }
    }
    return status;
}

static pc_status learn(void *context)
{
    job *j = context;
    pc_status status = PC_OK;
    PC_SCOPE {
        status = learn_from(j, j->x[j->turn], j->labels[j->turn]);
    }
    return status;
}

static pc_tensor *pictures(int seed, int64_t n)
{
    float values[BATCH * FEATURES];
    for (int i = 0; i < BATCH * FEATURES; i++)
        values[i] = (float)((i * 37 + seed * 11) % 101) / 101;
    return pc_from_data(values, PC_SHAPE(n, FEATURES), PC_F32, test_device());
}

static pc_tensor *classes(int seed, int64_t n)
{
    int64_t values[BATCH];
    for (int i = 0; i < BATCH; i++)
        values[i] = (i + seed) % CLASSES;
    return pc_from_data(values, PC_SHAPE(n), PC_I64, test_device());
}

static bool begin(job *j, bool adam, bool dropout)
{
    pc_seed(5);
    *j = (job){.turns = 1};
    j->net = dropout ? pc_sequential(pc_linear(FEATURES, 5, .activation = PC_ACTIVATION_TANH), pc_dropout(0.3),
                                     pc_linear(5, CLASSES))
                     : pc_sequential(pc_linear(FEATURES, 5, .activation = PC_ACTIVATION_TANH), pc_linear(5, CLASSES));
    if (!j->net || pc_module_to(j->net, test_device(), PC_F32) != PC_OK)
        return false;
    j->optimizer = adam ? pc_adam(j->net, .lr = 1e-2) : pc_sgd(j->net, .lr = 0.05, .momentum = 0.9, .nesterov = true);
    PC_SCOPE {
        for (int i = 0; i < PC__STEP_TURNS; i++) {
            j->x[i] = pc_tensor_retain(pictures(0, BATCH));
            j->labels[i] = pc_tensor_retain(classes(0, BATCH));
        }
        j->loss = pc_tensor_retain(pc_zeros(PC_SHAPE_SCALAR, PC_F32, test_device()));
    }
    return j->optimizer && j->x[1] && j->labels[1] && j->loss;
}

static void end(job *j)
{
    for (int i = 0; i < PC__STEP_TURNS; i++) {
        pc_tensor_free(j->x[i]);
        pc_tensor_free(j->labels[i]);
    }
    pc_tensor_free(j->loss);
    pc_loader_free(j->loader);
    pc_tensor_free(j->pinned);
    pc_tensor_free(j->drawn);
    pc_optimizer_free(j->optimizer);
    pc_module_free(j->net);
}

static inline pc_status one(job *j, pc_step *step, int i)
{
    pc_status status = PC_OK;
    PC_SCOPE {
        if (i % 5 == 4) {
            status = learn_from(j, pictures(i, SHORT), classes(i, SHORT));
        } else {
            j->turn = i % j->turns;
            status = pc_copy(j->x[j->turn], pictures(i, BATCH));
            if (status == PC_OK)
                status = pc_copy(j->labels[j->turn], classes(i, BATCH));
            if (status == PC_OK)
                status = step ? pc__step_run(step, j->turn) : learn(j);
        }
    }
    return status;
}

static int tidy(void **state)
{
    (void)state;
    assert_no_leak();
    return 0;
}

#endif

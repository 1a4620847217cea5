/* ranks.h: a small GPT trained on a text by several ranks, in a folder of its own. */
#ifndef PC_TEST_GPT_RANKS_H
#define PC_TEST_GPT_RANKS_H

#include "dist/threads.h"
#include "io/file.h"

#include <paracord/gpt_train.h>

#include <math.h>
#include <unistd.h>

enum {
    STEPS = 14,
    BATCH = 12,
    HEADS = 4,
    LONGEST = 64
}; /* devices that work later are asked every 10 steps whether they are to stop */

static char folder[] = "/tmp/paracord-gpt-ranks-XXXXXX";

static inline const char *in_folder(char path[LONGEST], const char *name)
{
    snprintf(path, LONGEST, "%s/%s", folder, name);
    return path;
}

static inline int make_folder(void **state)
{
    char path[LONGEST];
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    pc__text text = {0};
    for (int i = 0; i < 200; i++)
        pc__text_add(&text, "line %d: %s and then %s\n", i, i % 3 ? "the cat sat" : "a dog ran",
                     i % 7 ? "went home" : "slept");
    const pc_status status = pc__file_write(in_folder(path, "text"), text.data, text.length);
    pc__text_free(&text);
    return status != PC_OK || ranks_begin(state);
}

static inline void drop_run(void)
{
    static const char *const names[] = {"run/config.json", "run/model.safetensors", "run/vocab.json", "run/checkpoint"};
    char path[LONGEST];
    for (int i = 0; i < 4; i++)
        (void)remove(in_folder(path, names[i]));
}

static inline int drop_folder(void **state)
{
    char path[LONGEST];
    drop_run();
    (void)remove(in_folder(path, "run"));
    (void)remove(in_folder(path, "kept"));
    (void)remove(in_folder(path, "text"));
    (void)remove(folder);
    return ranks_end(state);
}

typedef struct job {
    int zero, accumulate, cut, batch, stop_at; /* batch 0: BATCH; stop_at 0: never stopped */
    bool resume, offload, apart;               /* apart: ranks but the first have a folder of their own, "run-1" */
    double dropout;
    const char *precision, *from;
    double loss, test_loss; /* rank 0's */
    int64_t steps, parameters;
    bool interrupted;
    char sample[64]; /* the last one */
} job;

typedef struct listener {
    int64_t stop_at, steps;
    char *sample; /* of a job */
} listener;

static inline void progress(void *context, const pc_gpt_progress *at)
{
    ((listener *)context)->steps = at->step;
}

static inline void tested(void *context, const pc_gpt_test *test)
{
    listener *l = context;
    snprintf(l->sample, sizeof((job *)NULL)->sample, "%s", test->sample ? test->sample : "");
}

static inline bool stop(void *context)
{
    const listener *l = context;
    return l->stop_at && l->steps >= l->stop_at;
}

static inline pc_status train(job *j, pc_group *group, int rank, pc_device device)
{
    char text[LONGEST], out[LONGEST], name[PC_DEVICE_NAME_MAX];
    listener l = {.stop_at = j->stop_at, .sample = j->sample};
    const pc_gpt_train_callbacks callbacks = {.context = &l, .progress = progress, .tested = tested, .stop = stop};
    pc_gpt_train_summary summary;
    const pc_gpt_train_options options = {
        .data = in_folder(text, "text"),
        .out = in_folder(out, j->apart && rank ? "run-1" : "run"),
        .from = j->from,
        .net = {.layers = 2, .heads = HEADS, .width = 32, .context = 16, .dropout = j->dropout},
        .device = pc_device_name(device, name),
        .precision = j->precision,
        .batch = j->batch ? j->batch : BATCH,
        .steps = STEPS,
        .test_every = STEPS,
        .test_batches = 2,
        .sample = 4,
        .resume = j->resume,
        .zero = j->zero,
        .offload = j->offload,
        .accumulate = j->accumulate,
        .tensor_parallel = j->cut,
        .group = group,
        .callbacks = &callbacks};
    const pc_status status = pc_gpt_train(options, &summary);
    if (!rank) {
        j->loss = summary.loss, j->test_loss = summary.test_loss;
        j->steps = summary.steps_done, j->interrupted = summary.interrupted;
        j->parameters = summary.parameters;
    }
    return status;
}

static inline void work(rank_work *r)
{
    RANK_OK(train(r->context, r->group, r->rank, r->device));
}

static inline void assert_learnt(const job *got, const job *want)
{
    assert_int_equal(got->steps, STEPS);
    assert_false(got->interrupted);
    assert_close(got->loss, want->loss, 1e-5);
    assert_close(got->test_loss, want->test_loss, 1e-5);
}

/* Never stopped, on one device: once, however often it is compared with. */
static inline job undisturbed(void)
{
    static job alone;
    if (alone.steps)
        return alone;
    drop_run();
    assert_ok(train(&alone, NULL, 0, test_device()));
    assert_int_equal(alone.steps, STEPS);
    return alone;
}

#endif

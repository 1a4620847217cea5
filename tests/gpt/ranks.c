/* A GPT trained by several ranks: by pc_ddp and all stages of ZeRO, batches in parts, going on at another number of ranks and
 * another stage: the losses of one device that was never stopped. */
#include "dist/threads.h"
#include "io/file.h"

#include <paracord/gpt_train.h>

#include <math.h>
#include <unistd.h>

enum { STEPS = 14, BATCH = 12 }; /* devices that work later are asked every 10 steps whether they are to stop */

static char folder[] = "/tmp/paracord-gpt-ranks-XXXXXX";

static const char *in_folder(char path[64], const char *name)
{
    snprintf(path, 64, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    char path[64];
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

static void drop_run(void)
{
    static const char *const names[] = {"run/config.json", "run/model.safetensors", "run/vocab.json", "run/checkpoint"};
    char path[64];
    for (int i = 0; i < 4; i++)
        (void)remove(in_folder(path, names[i]));
}

static int drop_folder(void **state)
{
    char path[64];
    drop_run();
    (void)remove(in_folder(path, "run"));
    (void)remove(in_folder(path, "text"));
    (void)remove(folder);
    return ranks_end(state);
}

typedef struct job {
    int zero, accumulate, stop_at; /* 0: never stopped */
    bool resume;
    double loss, test_loss; /* rank 0's */
    int64_t steps;
    bool interrupted;
} job;

typedef struct listener {
    int64_t stop_at, steps;
} listener;

static void progress(void *context, const pc_gpt_progress *at)
{
    ((listener *)context)->steps = at->step;
}

static bool stop(void *context)
{
    const listener *l = context;
    return l->stop_at && l->steps >= l->stop_at;
}

static pc_status train(job *j, pc_group *group, int rank, pc_device device)
{
    char text[64], out[64], name[PC_DEVICE_NAME_MAX];
    listener l = {.stop_at = j->stop_at};
    const pc_gpt_train_callbacks callbacks = {.context = &l, .progress = progress, .stop = stop};
    pc_gpt_train_summary summary;
    const pc_gpt_train_options options = {.data = in_folder(text, "text"),
                                          .out = in_folder(out, "run"),
                                          .net = {.layers = 2, .heads = 2, .width = 32, .context = 16},
                                          .device = pc_device_name(device, name),
                                          .batch = BATCH,
                                          .steps = STEPS,
                                          .test_every = STEPS,
                                          .test_batches = 2,
                                          .sample = 4,
                                          .resume = j->resume,
                                          .zero = j->zero,
                                          .accumulate = j->accumulate,
                                          .group = group,
                                          .callbacks = &callbacks};
    const pc_status status = pc_gpt_train(options, &summary);
    if (!rank) {
        j->loss = summary.loss, j->test_loss = summary.test_loss;
        j->steps = summary.steps_done, j->interrupted = summary.interrupted;
    }
    return status;
}

static void work(rank_work *r)
{
    RANK_OK(train(r->context, r->group, r->rank, r->device));
}

static void assert_learnt(const job *got, const job *want)
{
    assert_int_equal(got->steps, STEPS);
    assert_false(got->interrupted);
    assert_close(got->loss, want->loss, 1e-4);
    assert_close(got->test_loss, want->test_loss, 1e-4);
}

/* Never stopped, on one device. */
static job undisturbed(void)
{
    job alone = {0};
    drop_run();
    assert_ok(train(&alone, NULL, 0, test_device()));
    assert_int_equal(alone.steps, STEPS);
    return alone;
}

static void all_learn_the_same(void **state)
{
    (void)state;
    const job want = undisturbed();
    job parts = {.accumulate = 3};
    drop_run();
    assert_ok(train(&parts, NULL, 0, test_device()));
    assert_learnt(&parts, &want);
    const int n = ranks_most() < 3 ? ranks_most() : 3;
    for (int zero = 0; zero <= 3; zero++) {
        job j = {.zero = zero, .accumulate = zero == 1 || zero == 3 ? 2 : 1};
        drop_run();
        ranks_work(n, work, &j);
        assert_learnt(&j, &want);
    }
}

/* The checkpoint is anybody's. */
static void another_number_goes_on(void **state)
{
    (void)state;
    const job want = undisturbed();
    const int most = ranks_most() < 3 ? ranks_most() : 3;
    const struct {
        int ranks, zero;
    } turns[][2] = {{{most, 3}, {1, 0}}, {{1, 0}, {most, 2}}, {{2, 1}, {most, 3}}, {{most, 2}, {2, 0}}};
    for (int i = 0; i < 4; i++) {
        drop_run();
        for (int k = 0; k < 2; k++) {
            job j = {.zero = turns[i][k].zero, .resume = true, .stop_at = k ? 0 : STEPS / 2};
            const int n = turns[i][k].ranks < most ? turns[i][k].ranks : most;
            ranks_work(n, work, &j);
            if (k)
                assert_learnt(&j, &want);
            else
                assert_true(j.interrupted && j.steps < STEPS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_learn_the_same),
        cmocka_unit_test(another_number_goes_on),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

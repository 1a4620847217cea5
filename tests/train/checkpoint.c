/* The checkpoint as a file: the same state gives the same bytes, damage is found, and values that no training can have
 * are refused even when the checksum is right: a file may come from anywhere. */
#include "device.h"
#include "io/file.h"
#include "nn/optimizer.h"
#include "same.h"
#include "train/checkpoint_form.h"

#include <paracord/no_grad.h>
#include <paracord/samples.h>
#include <unistd.h>

static char folder[] = "/tmp/pc-checkpoint-XXXXXX";
static char path[64];

enum { FRONT = 24 };

/* 9 samples. */
static pc_loader *loader_of(int batch)
{
    pc_loader *loader = NULL;
    PC_SCOPE {
        loader = pc_loader_from_tensors(pc_zeros(PC_SHAPE(9, 2), PC_F32, PC_DEVICE_CPU), NULL, .batch = batch,
                                        .prefetch = -1);
    }
    assert_not_null_ok(loader);
    return loader;
}

static pc__fit fit_of(pc_dtype dtype)
{
    pc_seed(3);
    pc__fit fit = {.net = pc_sequential(pc_linear(2, 3), pc_linear(3, 1))};
    assert_ok(pc_module_to(fit.net, test_device(), dtype));
    fit.optimizer = pc_adam(fit.net);
    assert_not_null_ok(fit.optimizer);
    fit.train = loader_of(2);
    return fit;
}

static pc__fit fit_new(void)
{
    return fit_of(PC_F32);
}

static void fit_free(pc__fit *fit)
{
    pc_optimizer_free(fit->optimizer);
    pc_module_free(fit->net);
    pc_loader_free(fit->train);
}

typedef struct content {
    uint8_t *bytes;
    size_t n;
} content;

static content read_back(void)
{
    content c;
    assert_ok(pc__file_read(path, &c.bytes, &c.n));
    return c;
}

/* The file's own checksum, so that damage gets past it. */
static void seal(const content *c)
{
    uint64_t hash = 14695981039346656037ull, word;
    size_t i = FRONT;
    for (; i + 8 <= c->n; i += 8) {
        memcpy(&word, c->bytes + i, 8);
        hash = (hash ^ word) * 1099511628211ull;
        hash ^= hash >> 29;
    }
    for (; i < c->n; i++)
        hash = (hash ^ c->bytes[i]) * 1099511628211ull;
    memcpy(c->bytes + 16, &hash, 8);
}

static void same_state_same_bytes(void **state)
{
    (void)state;
    pc__fit fit = fit_new();
    memset(&fit.last, 0x5a, sizeof fit.last); /* what lies between fields is nobody's business */
    fit.last = (pc_epoch_result){.epoch = 1, .epochs = 4, .loss = 0.5, .has_test = true};
    fit.at = (pc__standing){.epoch = 1, .batch = 3, .score = {2.5, 3, 6}, .seconds = 1.5};
    pc_generator_set((pc_generator){77, 12});
    assert_ok(pc__checkpoint_save(path, &fit, "--a 1\n"));
    bool finished;
    assert_fails(pc__checkpoint_look(path, &finished), PC_ERR_FORMAT, "what its network is"); /* no run's */
    fit.best.watch = "a metric"; /* nor what pc_fit measures */
    assert_ok(pc__checkpoint_save(path, &fit, "--a 1\n"));
    assert_fails(pc__checkpoint_look(path, &finished), PC_ERR_FORMAT, "what its network is");
    fit.best.watch = NULL;
    assert_ok(pc__checkpoint_save(path, &fit, "--a 1\n"));
    content first = read_back();
    pc__fit other = fit_new();
    assert_ok(pc__checkpoint_load(path, &other, "--a 1\n"));
    assert_int_equal(other.at.batch, 3);
    assert_true(other.last.has_test);
    assert_int_equal(pc_generator_get().step, 12);
    assert_ok(pc__checkpoint_save(path, &other, "--a 1\n"));
    content second = read_back();
    assert_int_equal(first.n, second.n);
    assert_memory_equal(first.bytes, second.bytes, first.n);
    assert_fails(pc__checkpoint_load(path, &other, "--a 2\n"), PC_ERR_STATE, "--a 1");
    pc__free(first.bytes);
    pc__free(second.bytes);
    fit_free(&fit);
    fit_free(&other);
}

/* As files of version 6 are, with counts alone in front of numbers; of 5, also without the header's last field. */
static void make_older(content *c, int version)
{
    const size_t at = FRONT + offsetof(pc__checkpoint_header, ignored), behind = FRONT + sizeof(pc__checkpoint_header);
    int64_t groups;
    memcpy(&groups, c->bytes + FRONT + offsetof(pc__checkpoint_header, curve_count), sizeof groups);
    const size_t curve = (size_t)groups * sizeof *((pc__curve *)0)->groups;
    const uint8_t *from = c->bytes + behind + curve, *end = c->bytes + c->n;
    uint8_t *to = c->bytes + (version == 5 ? at : behind) + curve;
    memmove(to - curve, c->bytes + behind, curve);
    while (from < end) {
        const bool wide = strcmp((const char *)from, "float64") == 0;
        int64_t ndim, dim, count = 1;
        memcpy(&ndim, from + 16, sizeof ndim);
        for (int i = 0; i < ndim; i++) {
            memcpy(&dim, from + 24 + 8 * i, sizeof dim);
            count *= dim;
        }
        const size_t size = (size_t)count * (wide ? 8 : 4);
        memcpy(to, &count, sizeof count);
        memmove(to + sizeof count, from + 24 + 8 * PC_MAX_DIMS, size);
        from += 24 + 8 * PC_MAX_DIMS + size;
        to += sizeof count + size;
    }
    assert_true(from == end);
    c->n = (size_t)(to - c->bytes);
    memcpy(c->bytes, version == 5 ? "PCCKPT05" : "PCCKPT06", 8);
    const uint64_t length = c->n - FRONT;
    memcpy(c->bytes + 8, &length, sizeof length);
    seal(c);
    assert_ok(pc__file_write(path, c->bytes, c->n));
}

static void an_older_one(void **state)
{
    (void)state;
    pc__fit fit = fit_new(), other = fit_new();
    fit.at = (pc__standing){.epoch = 1, .batch = 3, .score = {2.5, 3, 6, 2}, .seconds = 1.5};
    assert_ok(pc__checkpoint_save(path, &fit, "--a 1\n"));
    assert_ok(pc__checkpoint_load(path, &other, "--a 1\n"));
    assert_int_equal(other.at.score.ignored, 2);
    for (int version = 5; version <= 6; version++) {
        assert_ok(pc__checkpoint_save(path, &fit, "--a 1\n"));
        content c = read_back();
        make_older(&c, version);
        PC_NO_GRAD {
            assert_ok(pc_fill(other.optimizer->parameters[0], 0));
        }
        assert_ok(pc__checkpoint_load(path, &other, "--a 1\n"));
        assert_same(fit.optimizer, other.optimizer);
        assert_int_equal(other.at.batch, 3);
        assert_int_equal(other.at.score.seen, 6);
        assert_int_equal(other.at.score.ignored, version == 5 ? 0 : 2);
        pc__free(c.bytes);
    }
    fit_free(&fit);
    fit_free(&other);
}

/* These do not say dtypes: that they end elsewhere is no damage, and what can be known is known before anything is changed. */
static void an_older_one_of_another_dtype(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        pc__fit fit = fit_of(wide ? PC_F64 : PC_F32), other = fit_of(wide ? PC_F32 : PC_F64);
        assert_ok(pc__checkpoint_save(path, &fit, ""));
        content c = read_back();
        make_older(&c, 6);
        assert_fails(pc__checkpoint_load(path, &other, ""), PC_ERR_STATE,
                     "the network, and the dtype, that it was made");
        pc__free(c.bytes);
        fit_free(&fit);
        fit_free(&other);
    }
}

static void damage_is_found(void **state)
{
    (void)state;
    pc__fit fit = fit_new();
    assert_ok(pc__checkpoint_save(path, &fit, ""));
    content c = read_back();
    for (size_t n = 0; n < c.n; n += n < 64 ? 1 : 97) {
        assert_ok(pc__file_write(path, c.bytes, n));
        assert_fails(pc__checkpoint_load(path, &fit, ""), PC_ERR_FORMAT, path);
    }
    for (size_t at = 0; at < c.n; at += at < 64 ? 1 : 41) {
        c.bytes[at] ^= 0x10;
        assert_ok(pc__file_write(path, c.bytes, c.n));
        assert_fails(pc__checkpoint_load(path, &fit, ""), PC_ERR_FORMAT, path);
        c.bytes[at] ^= 0x10;
    }
    pc__free(c.bytes);
    fit_free(&fit);
}

static void impossible_values_are_refused(void **state)
{
    (void)state;
#define AT(field) (FRONT + offsetof(pc__checkpoint_header, field))
    static const size_t integers[] = {AT(finished),      AT(epoch),      AT(batch),
                                      AT(correct),       AT(seen),       AT(last.epoch),
                                      AT(last.has_test), AT(best.epoch), AT(best.never_named),
                                      AT(step),          AT(parameters), AT(tensors),
                                      AT(kept),          AT(about),      AT(curve_width),
                                      AT(curve_count)};
    static const int64_t values[] = {-1, INT64_MIN};
    const double nan = 0.0 / 0.0, infinite = 1e308 * 10;
    pc__fit fit = fit_new();
    assert_ok(pc__checkpoint_save(path, &fit, ""));
    content c = read_back();
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        for (int k = 0; k < 2; k++) {
            int64_t before;
            uint8_t *field = c.bytes + integers[i];
            memcpy(&before, field, 8);
            memcpy(field, &values[k], 8);
            seal(&c);
            assert_ok(pc__file_write(path, c.bytes, c.n));
            assert_fails(pc__checkpoint_load(path, &fit, ""), PC_ERR_FORMAT, "no checkpoint");
            memcpy(field, &before, 8);
        }
    memcpy(c.bytes + AT(seconds), &nan, 8);
    seal(&c);
    assert_ok(pc__file_write(path, c.bytes, c.n));
    assert_fails(pc__checkpoint_load(path, &fit, ""), PC_ERR_FORMAT, "no training");
    memcpy(c.bytes + AT(seconds), &(double){0}, 8);
    memcpy(c.bytes + AT(lr), &infinite, 8);
    seal(&c);
    assert_ok(pc__file_write(path, c.bytes, c.n));
    assert_fails(pc__checkpoint_load(path, &fit, ""), PC_ERR_FORMAT, "no training");
    pc__free(c.bytes);
    fit_free(&fit);
}

/* Another network of the same length: its tensors are cut elsewhere. */
static void other_networks_are_refused(void **state)
{
    (void)state;
    pc__fit fit = fit_new(), other = {.net = pc_sequential(pc_linear(3, 2), pc_linear(2, 2))};
    other.optimizer = pc_adam(other.net);
    assert_ok(pc__checkpoint_save(path, &fit, ""));
    assert_fails(pc__checkpoint_load(path, &other, ""), PC_ERR_STATE,
                 "is of another network, which has other shapes: there 0.weight has [3, 2], and here [2, 3]");
    content c = read_back();
    make_older(&c, 6);
    assert_fails(pc__checkpoint_load(path, &other, ""), PC_ERR_STATE,
                 "is of another network, which has other shapes: there 0.bias has 3 numbers, and here 2");
    pc__free(c.bytes);
    pc__fit shorter = {.net = pc_linear(2, 3)};
    shorter.optimizer = pc_adam(shorter.net);
    assert_fails(pc__checkpoint_load(path, &shorter, ""), PC_ERR_STATE,
                 "is of another network: that has 4 parameters to train, and this one 2");
    fit_free(&shorter);
    fit_free(&other);
    fit_free(&fit);
}

/* By name, and nothing is changed by then, though the tensors in front fit. */
static void other_dtypes_are_refused(void **state)
{
    (void)state;
    static const pc_dtype dtypes[] = {PC_F16, PC_BF16, PC_F32, PC_F64};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            pc__fit fit = fit_of(dtypes[i]), other = fit_of(dtypes[k]);
            char words[128];
            snprintf(words, sizeof words, "has 0.weight in %s, and this network has it in %s; take the network in %s ",
                     pc_dtype_name(dtypes[i]), pc_dtype_name(dtypes[k]), pc_dtype_name(dtypes[i]));
            assert_ok(pc__checkpoint_save(path, &fit, ""));
            if (i == k)
                assert_ok(pc__checkpoint_load(path, &other, ""));
            else
                assert_fails(pc__checkpoint_load(path, &other, ""), PC_ERR_STATE, words);
            fit_free(&fit);
            fit_free(&other);
        }
    pc__fit fit = {.net = on_device(pc_sequential(pc_linear(2, 3), pc_linear(2, 3)))};
    pc__fit other = {.net = on_device(pc_sequential(pc_linear(2, 3), pc_linear(3, 2)))};
    fit.optimizer = pc_adam(fit.net);
    other.optimizer = pc_adam(other.net);
    PC_NO_GRAD {
        assert_ok(pc_fill(other.optimizer->parameters[0], 7));
    }
    assert_ok(pc__checkpoint_save(path, &fit, ""));
    assert_fails(pc__checkpoint_load(path, &other, ""), PC_ERR_STATE, "there 1.weight has [3, 2], and here [2, 3]");
    float values[6];
    assert_ok(pc_read(other.optimizer->parameters[0], values, sizeof values));
    for (int i = 0; i < 6; i++)
        assert_true(values[i] == 7);
    fit_free(&fit);
    fit_free(&other);
}

/* Of an optimiser of another kind, also where it keeps as much; inside an epoch of other batches, where between epochs these
 * do not matter. A file that does not say whose state it has is taken. */
static void other_ways_are_refused(void **state)
{
    (void)state;
    pc__fit fit = fit_new(), other = fit_new();
    fit.at = (pc__standing){.epoch = 1, .batch = 5, .score = {2.5, 3, 9}, .seconds = 1.5}; /* the last one is short */
    assert_ok(pc__checkpoint_save(path, &fit, "--a 1\n"));
    assert_ok(pc__checkpoint_load(path, &other, "--a 1\n"));
    pc_loader_free(other.train);
    other.train = loader_of(3);
    assert_fails(pc__checkpoint_load(path, &other, "--a 1\n"), PC_ERR_STATE, "behind 5 batches and 9 samples");
    fit.at = (pc__standing){.epoch = 1, .batch = 3, .score = {2.5, 3, 6}, .seconds = 1.5};
    assert_ok(pc__checkpoint_save(path, &fit, "--a 1\n"));
    assert_fails(pc__checkpoint_load(path, &other, "--a 1\n"), PC_ERR_STATE, "this run has batches of 3 of 9");
    fit.at = (pc__standing){.epoch = 2};
    assert_ok(pc__checkpoint_save(path, &fit, "--a 1\n"));
    assert_ok(pc__checkpoint_load(path, &other, "--a 1\n"));

    pc_optimizer_free(other.optimizer);
    other.optimizer = pc_adamw(other.net);
    assert_fails(pc__checkpoint_load(path, &other, "--a 1\n"), PC_ERR_STATE,
                 "the optimiser adam, and this run has adamw");
    content c = read_back();
    memset(c.bytes + FRONT + strlen("--a 1\n") + 1, 0, sizeof "adam");
    seal(&c);
    assert_ok(pc__file_write(path, c.bytes, c.n));
    assert_ok(pc__checkpoint_load(path, &other, "--a 1\n"));
    pc__free(c.bytes);

    char longest[1024];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_ok(pc__checkpoint_save(path, &fit, longest)); /* no room for it */
    assert_ok(pc__checkpoint_load(path, &other, longest));
    fit_free(&fit);
    fit_free(&other);
}

static int prepare(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/checkpoint", folder);
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* no temporary either */
    assert_no_leak();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_state_same_bytes),
        cmocka_unit_test(an_older_one),
        cmocka_unit_test(an_older_one_of_another_dtype),
        cmocka_unit_test(other_dtypes_are_refused),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(impossible_values_are_refused),
        cmocka_unit_test(other_networks_are_refused),
        cmocka_unit_test(other_ways_are_refused),
    };
    return cmocka_run_group_tests_name("train.checkpoint", tests, prepare, tidy);
}

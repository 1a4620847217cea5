/* Trainings of small GPTs: what is left in the folder, going on to the same bits, settings and texts that are wrong. */
#include "comma.h"
#include "device.h"
#include "gpt/run.h"
#include "io/file.h"

#include <paracord/gpt_train.h>
#include <paracord/weights.h>

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/paracord-gpt-train-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[64][160];
    static int next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    pc__text text = {0};
    for (int i = 0; i < 200; i++)
        pc__text_add(&text, "line %d: %s and then %s\n", i, i % 3 ? "the cat sat" : "a dog ran",
                     i % 7 ? "went home" : "slept");
    const pc_status status = pc__file_write(in_folder("text"), text.data, text.length);
    pc__text_free(&text);
    return status != PC_OK;
}

static int drop_folder(void **state)
{
    (void)state;
    static const char *const runs[] = {"a/", "b/", "c/", "d/", "far/", ""};
    static const char *const names[] = {"config.json",
                                        "model.safetensors",
                                        "vocab.json",
                                        "merges.txt",
                                        "checkpoint",
                                        "text",
                                        "short",
                                        "tokens.bin",
                                        "kept",
                                        "pytorch_model.bin",
                                        ""};
    for (int i = 0; i < PC__COUNT(runs); i++)
        for (int k = 0; k < PC__COUNT(names); k++) {
            char path[32];
            snprintf(path, sizeof path, "%s%s", runs[i], names[k]);
            (void)remove(in_folder(path));
        }
    return 0;
}

typedef struct listener {
    int64_t stop_at;
    int tests;
    int64_t steps;
    double last_loss;
} listener;

static void progress(void *context, const pc_gpt_progress *at)
{
    listener *l = context;
    l->steps = at->step;
    l->last_loss = at->loss;
}

static void tested(void *context, const pc_gpt_test *test)
{
    listener *l = context;
    l->tests++;
    assert_true(strlen(test->sample) > 0);
}

static bool stop(void *context)
{
    const listener *l = context;
    return l->steps == l->stop_at;
}

static pc_gpt_train_options small(const char *out, pc_gpt_train_callbacks *callbacks, listener *l)
{
    *callbacks = (pc_gpt_train_callbacks){.context = l, .progress = progress, .tested = tested, .stop = stop};
    return (pc_gpt_train_options){.data = in_folder("text"),
                                  .out = in_folder(out),
                                  .net = {.layers = 2, .heads = 2, .width = 16, .context = 24, .dropout = 0.1},
                                  .device = test_device_name(),
                                  .batch = 4,
                                  .threads = 1,
                                  .steps = 30,
                                  .test_every = 12,
                                  .test_batches = 2,
                                  .sample = 20,
                                  .seed = 5,
                                  .callbacks = callbacks};
}

static void same_files(const char *one, const char *other)
{
    uint8_t *a, *b;
    size_t n, m;
    assert_ok(pc__file_read(one, &a, &n));
    assert_ok(pc__file_read(other, &b, &m));
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    pc__free(a);
    pc__free(b);
}

/* Weights, moments and tests; the time that it took is another one, and where a device works later, losses of steps are read
 * in other groups. */
static void same_checkpoints(const char *one, const char *other)
{
    pc_weights *a = pc_weights_open(one), *b = pc_weights_open(other);
    assert_not_null_ok(a);
    assert_not_null_ok(b);
    assert_int_equal(pc_weights_count(a), pc_weights_count(b));
    for (int i = 0; i < pc_weights_count(a); i++)
        PC_SCOPE {
            pc_weights_entry entry;
            assert_ok(pc_weights_query(a, i, &entry));
            pc_tensor *x = pc_weights_read(a, entry.name, PC_DEVICE_CPU),
                      *y = pc_weights_read(b, entry.name, PC_DEVICE_CPU);
            if (strcmp(entry.name, "curve") == 0 && test_device().type != PC_CPU)
                break;
            if (pc_item(pc_all(pc_eq(x, y))) != 1)
                fail_msg("\"%s\" differs", entry.name);
        }
    assert_string_equal(pc_weights_note(a, "draws"), pc_weights_note(b, "draws"));
    assert_string_equal(pc_weights_note(a, "best"), pc_weights_note(b, "best"));
    pc_weights_free(a);
    pc_weights_free(b);
}

static void goes_on_to_the_same_bits(void **state)
{
    (void)state;
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    listener l = {.stop_at = -1};
    assert_ok(pc_gpt_train(small("a", &callbacks, &l), &summary));
    assert_int_equal(summary.steps_done, 30);
    assert_int_equal(l.tests, 3);
    assert_false(summary.interrupted);
    assert_true(summary.test_loss < 3.4 && summary.best_test_loss <= summary.test_loss);
    assert_true(summary.bytes > summary.parameters * 16);
    static const int64_t stops[] = {1, 12, 17};
    pc_gpt_train_options options = small("b", &callbacks, &l);
    for (int i = 0; i < 3; i++) {
        l = (listener){.stop_at = stops[i]};
        assert_ok(pc_gpt_train(options, &summary));
        assert_true(summary.interrupted);
        assert_int_equal(summary.steps_done, stops[i]);
        options.resume = false;
        assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE, "holds an unfinished training, of step ");
        options.resume = true;
    }
    l.stop_at = -1;
    assert_ok(pc_gpt_train(options, &summary));
    same_checkpoints(in_folder("a/checkpoint"), in_folder("b/checkpoint"));
    same_files(in_folder("a/model.safetensors"), in_folder("b/model.safetensors"));
    same_files(in_folder("a/vocab.json"), in_folder("b/vocab.json"));
    options.lr = 0.5;
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE,
                 "is of a training with lr=0.001, and this one has lr=0.5");
    options.lr = 0;
    options.steps = 5; /* fewer than are done */
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE,
                 "is of a training with steps=30, and this one has steps=5");
    options.steps = 30;
    options.held_out = 0.3; /* what was learnt from would be tested on, or the other way round */
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE, "and this one has tokens to learn from=");
    options.held_out = 0;
    options.data = in_folder("short"); /* as many tokens of the same letters */
    size_t n;
    uint8_t *text;
    assert_ok(pc__file_read(in_folder("text"), &text, &n));
    const uint8_t first = text[0];
    text[0] = text[n / 2];
    text[n / 2] = first;
    assert_int_not_equal(text[0], first);
    assert_ok(pc__file_write(options.data, text, n));
    pc__free(text);
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE, "and this one has fingerprint of the text=");
    options.data = in_folder("text");
    assert_ok(pc__file_read(in_folder("b/checkpoint"), &text, &n));
    assert_ok(pc__file_write(in_folder("b/checkpoint"), "no", 2));
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_FORMAT, "checkpoint");
    assert_ok(pc__file_write(in_folder("b/checkpoint"), text, n));
    pc__free(text);
}

static void the_folder_can_be_used(void **state)
{
    (void)state;
    pc_tokenizer *letters = pc_tokenizer_open(in_folder("a"));
    pc_module *gpt = pc_gpt_open(in_folder("a"), test_device());
    assert_not_null_ok(gpt);
    size_t n;
    int64_t tokens;
    char *text = pc_text_read(in_folder("text"), &n);
    const double loss = pc_gpt_evaluate(gpt, letters, text, n, &tokens);
    assert_int_equal(tokens, n - 1);
    assert_true(loss > 1 && loss < 3.4);
    assert_true(isnan(pc_gpt_evaluate(gpt, letters, "t", 1, NULL)));
    pc_error_clear();
    pc_text_free(text);
    pc_module_free(gpt);
    pc_tokenizer_free(letters);
}

/* The whole file with one bit of byte `at` turned. */
static void put_turned(const char *path, uint8_t *bytes, size_t n, size_t at)
{
    bytes[at] ^= 1;
    assert_ok(pc__file_write(path, bytes, n));
    bytes[at] ^= 1;
}

static void a_rotten_checkpoint(void **state)
{
    (void)state;
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    listener l = {.stop_at = -1};
    pc_gpt_train_options options = small("a", &callbacks, &l);
    options.resume = true;
    const char *path = in_folder("a/checkpoint");
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(path, &bytes, &n));
    const char *sum = strstr((char *)bytes + 8, "\"checksum\":\""), *seed = strstr((char *)bytes + 8, "\"seed\":\"");
    assert_non_null(sum);
    assert_non_null(seed);
    const size_t in_sum = (size_t)(sum - (char *)bytes);
    const size_t rotten[] = {in_sum + 12, (size_t)(seed - (char *)bytes) + 8, n / 2, n - 1};
    for (int i = 0; i < PC__COUNT(rotten); i++) {
        put_turned(path, bytes, n, rotten[i]);
        assert_fails(pc_gpt_train(options, &summary), PC_ERR_FORMAT, "its checksum is wrong");
        options.resume = false; /* nor does another training begin over it */
        assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE, "a/checkpoint cannot be read as a checkpoint");
        options.resume = true;
    }
    put_turned(path, bytes, n, in_sum + 1); /* another key: as files were before they had one */
    assert_ok(pc_gpt_train(options, &summary));
    assert_ok(pc__file_write(path, bytes, n));
    assert_ok(pc_gpt_train(options, &summary));
    pc__free(bytes);
}

/* Somebody's network beside a file of that name, as TensorFlow writes one; a run of paracord train; a safetensors file that is
 * no checkpoint. */
static void what_is_no_checkpoint_is_kept(void **state)
{
    (void)state;
    static const char *const others[] = {"model_checkpoint_path: \"model.ckpt-1000\"\n", "PCCKPT07", "",
                                         "\x02\0\0\0\0\0\0\0{}"};
    static const size_t lengths[] = {40, 8, 0, 10};
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    listener l = {.stop_at = -1};
    const pc_gpt_train_options options = small("d", &callbacks, &l);
    (void)mkdir(in_folder("d"), 0777);
    assert_ok(pc__file_write(in_folder("d/model.safetensors"), "mine", 4));
    for (int i = 0; i < PC__COUNT(others); i++) {
        assert_ok(pc__file_write(in_folder("d/checkpoint"), others[i], lengths[i]));
        assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE, "d/checkpoint cannot be read as a checkpoint");
    }
    assert_int_equal(access(in_folder("d/vocab.json"), F_OK), -1);
    assert_int_equal(remove(in_folder("d/checkpoint")), 0);
    assert_int_equal(remove(in_folder("d/model.safetensors")), 0);
}

/* What transformers takes for the end of a text; -1: nothing. */
static void ends_with_token(const char *run, long token)
{
    char path[160], begin[64], end[64];
    uint8_t *config;
    size_t n;
    snprintf(path, sizeof path, "%s/config.json", in_folder(run));
    assert_ok(pc__file_read(path, &config, &n));
    snprintf(begin, sizeof begin, token < 0 ? "\"bos_token_id\": null," : "\"bos_token_id\": %ld,", token);
    snprintf(end, sizeof end, token < 0 ? "\"eos_token_id\": null," : "\"eos_token_id\": %ld,", token);
    assert_non_null(strstr((char *)config, begin));
    assert_non_null(strstr((char *)config, end));
    pc__free(config);
}

static void from_another_network(void **state)
{
    (void)state;
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    listener l = {.stop_at = -1};
    pc_gpt_train_options options = small("c", &callbacks, &l);
    options.from = in_folder("a");
    options.steps = 2;
    options.batch = -1;
    options.precision = "bf16";
    assert_ok(pc_gpt_train(options, &summary));
    assert_true(summary.batch >= 64 && summary.loss < 3.4);
    options.net.context = 8;
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_ARGUMENT, "context 8, and that of the network in");
    options.net.context = 24;
    options.net.dropout = 0.3;
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_ARGUMENT, "dropout 0.3, and that of the network in");
    options.net.dropout = 0.1;
    options.from = NULL;
    options.tokens = "pairs";
    options.vocabulary = 300;
    options.batch = 2;
    assert_ok(pc_gpt_train(options, &summary));
    pc_tokenizer *pairs = pc_tokenizer_open(in_folder("c"));
    assert_int_equal(pc_tokenizer_size(pairs), 300);
    assert_true(pc_tokenizer_end(pairs) >= 0);
    ends_with_token("a", -1);
    ends_with_token("c", (long)pc_tokenizer_end(pairs));
    pc_tokenizer_free(pairs);
}

/* The same tokens in a file: the same weights. */
static void from_tokens(void **state)
{
    (void)state;
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    listener l = {.stop_at = -1};
    size_t n;
    char *text = pc_text_read(in_folder("text"), &n);
    pc_tokenizer *letters = pc_tokenizer_open(in_folder("a"));
    uint16_t *tokens = pc__alloc(n * sizeof *tokens);
    int32_t *list = pc__alloc(n * sizeof *list);
    PC_SCOPE {
        assert_ok(pc_read(pc_tokenizer_encode(letters, text, n), list, n * sizeof *list));
    }
    for (size_t i = 0; i < n; i++)
        tokens[i] = (uint16_t)list[i];
    assert_ok(pc__file_write(in_folder("tokens.bin"), tokens, n * sizeof *tokens));
    pc_gpt_train_options options = small("c", &callbacks, &l);
    options.data = in_folder("tokens.bin");
    options.tokens = in_folder("a");
    assert_ok(pc_gpt_train(options, &summary));
    assert_int_equal(l.tests, 3);
    same_files(in_folder("a/model.safetensors"), in_folder("c/model.safetensors"));
    options.resume = true; /* it is at its end */
    assert_ok(pc_gpt_train(options, &summary));
    options.resume = false;
    callbacks.tested = NULL; /* without words there are no samples */
    options.tokens = NULL;
    options.steps = 2;
    options.vocabulary = pc_tokenizer_size(letters);
    options.test_data = in_folder("tokens.bin");
    (void)remove(in_folder("c/vocab.json"));
    assert_ok(pc_gpt_train(options, &summary));
    assert_true(access(in_folder("c/vocab.json"), F_OK) != 0);
    options.vocabulary = 5;
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_RANGE, "beyond the vocabulary of 5");
    options.data = in_folder("text");
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_ARGUMENT, "which is for files of tokens");
    pc__free(tokens);
    pc__free(list);
    pc_tokenizer_free(letters);
    pc_text_free(text);
}

/* None at all is what a limit that is never reached and a decay that rounds away come to, and not the usual ones. */
static void without_clipping_and_decay(void **state)
{
    (void)state;
    static const double settings[][2] = {{-1, -1}, {1e9, 1e-30}, {0, 0}};
    static const char *const models[] = {"c/model.safetensors", "b/model.safetensors", "b/model.safetensors"};
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    listener l = {.stop_at = -1};
    size_t n[2];
    uint8_t *a, *b;
    for (int i = 0; i < 3; i++) {
        pc_gpt_train_options options = small(i ? "b" : "c", &callbacks, &l);
        options.steps = 4;
        options.clip = settings[i][0];
        options.weight_decay = settings[i][1];
        assert_ok(pc_gpt_train(options, &summary));
        assert_ok(pc__file_read(in_folder("c/model.safetensors"), &a, &n[0]));
        assert_ok(pc__file_read(in_folder(models[i]), &b, &n[1]));
        assert_int_equal(n[0], n[1]);
        assert_int_equal(memcmp(a, b, n[0]) == 0, i < 2);
        pc__free(a);
        pc__free(b);
    }
    pc_gpt_train_options options = small("c", &callbacks, &l);
    options.clip = NAN;
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_ARGUMENT, "clip nan");
}

/* A checkpoint goes on in programs of another locale, and its numbers are the same. */
/* What the last step made of the weights is seen by the test behind it, which keeps none of them. */
static void a_step_too_far(void **state)
{
    (void)state;
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    listener l = {.stop_at = -1};
    pc_gpt_train_options options = small("far", &callbacks, &l);
    options.lr = 9e5;
    options.steps = 40;
    options.test_every = 1;
    options.held_out = -1;
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_RANGE, "the loss of the test after step");
    pc_module *gpt = pc_gpt_open(in_folder("far"), PC_DEVICE_CPU);
    assert_not_null_ok(gpt);
    const float *numbers = pc_data(pc_module_parameter(gpt, "transformer.ln_f.bias"));
    assert_true(isfinite(numbers[0]));
    pc_module_free(gpt);
}

static void the_locale_changes_nothing(void **state)
{
    (void)state;
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    char place[64] = "";
    listener l = {.stop_at = 13};
    pc_gpt_train_options options = small("b", &callbacks, &l);
    const bool comma = comma_locale(folder, place, sizeof place);
    const pc_status status = comma ? pc_gpt_train(options, &summary) : PC_OK;
    comma_locale_end(place);
    if (!comma)
        skip();
    assert_ok(status);
    options.resume = true;
    l.stop_at = -1;
    assert_ok(pc_gpt_train(options, &summary));
    pc_weights *file = pc_weights_open(in_folder("b/checkpoint"));
    const double best = strtod(pc_weights_note(file, "best"), NULL);
    assert_close(best, summary.best_test_loss, 1e-12);
    assert_true(best <= summary.test_loss);
    pc_weights_free(file);
}

typedef struct beginner {
    pc_gpt_train_options other; /* tried in the same folder meanwhile */
    bool from_there;
    int begun;
} beginner;

/* What is there before the first step is what a kill would leave. */
static void look(void *context, const char *words)
{
    beginner *b = context;
    pc_gpt_train_summary summary;
    (void)words;
    assert_int_equal(access(in_folder("d/checkpoint"), F_OK), -1);
    assert_int_equal(access(in_folder("d/model.safetensors"), F_OK) == 0, b->from_there);
    assert_fails(pc_gpt_train(b->other, &summary), PC_ERR_STATE, "another training is writing to ");
    b->begun++;
}

static const char *joined(const char *in, const char *name)
{
    char path[32];
    snprintf(path, sizeof path, "%s%s", in, name);
    return in_folder(path);
}

static int reports;

static pc_status note_report(const char *path, const pc_gpt_run *run)
{
    assert_non_null(strstr(path, "d/report.html"));
    assert_false(run->running);
    assert_true(strlen(run->sample) > 0);
    assert_int_equal(run->tested_count, 1);
    assert_true(run->tokens_per_second > 0); /* no step is left, and it is not forgotten how fast those before were */
    reports++;
    return PC_OK;
}

static void a_folder_is_of_one_training(void **state)
{
    (void)state;
    pc_gpt_train_callbacks none = {0}, watched = {0};
    pc_gpt_train_summary summary;
    pc_gpt_train_options options = small("d", &watched, NULL);
    beginner b = {.other = options};
    options.steps = 3;
    watched = (pc_gpt_train_callbacks){.context = &b, .started = look};
    b.other.callbacks = &none;
    assert_ok(pc_gpt_train(options, &summary));
    same_files(in_folder("a/vocab.json"), in_folder("d/vocab.json"));
    options.tokens = "pairs"; /* other tokens: the network of these goes first */
    options.vocabulary = 290;
    assert_ok(pc_gpt_train(options, &summary));
    assert_int_equal(access(in_folder("d/begun"), F_OK), -1);
    assert_ok(pc__file_write(in_folder("d/begun"), "", 0)); /* killed between the first test and the checkpoint */
    assert_int_equal(remove(in_folder("d/checkpoint")), 0);
    assert_int_equal(rename(in_folder("d/model.safetensors"), in_folder("d/kept")), 0);
    assert_ok(pc__file_write(in_folder("d/model.safetensors"), "half", 4));
    options.resume = true;
    watched.started = NULL;
    assert_ok(pc_gpt_train(options, &summary));
    same_files(in_folder("d/kept"), in_folder("d/model.safetensors"));
    char *temporary = pc__file_temporary(in_folder("d/report.html"), 0); /* killed while it wrote its report */
    assert_ok(pc__file_write(temporary, "half", 4));
    options.report = note_report;
    assert_ok(pc_gpt_train(options, &summary));
    assert_int_equal(reports, 1);
    assert_true(summary.tokens_per_second > 0);
    assert_int_equal(access(temporary, F_OK), -1);
    pc__free(temporary);
    options = small("d", &watched, NULL);
    options.steps = 3;
    options.from = in_folder("d/."); /* it goes on in its own folder */
    b.from_there = true;
    watched = (pc_gpt_train_callbacks){.context = &b, .started = look};
    assert_ok(pc_gpt_train(options, &summary));
    assert_int_equal(b.begun, 3);
    assert_int_equal(remove(in_folder("d/checkpoint")), 0); /* pytorch_model.bin is a network, too */
    assert_int_equal(rename(in_folder("d/model.safetensors"), in_folder("d/pytorch_model.bin")), 0);
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE, "pytorch_model.bin is there and is no training's");
    static const char *const others[] = {"config.json",
                                         "merges.txt",
                                         "report.html",
                                         "vocab.json",
                                         "model.safetensors.index.json",
                                         "pytorch_model.bin.index.json"};
    assert_int_equal(remove(in_folder("d/pytorch_model.bin")), 0);
    options.from = NULL;
    for (int i = 0; i < PC__COUNT(others); i++)
        (void)remove(joined("d/", others[i]));
    for (int i = 0; i < PC__COUNT(others); i++) { /* nor are others' pages and tokens written over */
        assert_ok(pc__file_write(joined("d/", others[i]), "{}", 2));
        assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE, others[i]);
        assert_int_equal(remove(joined("d/", others[i])), 0);
    }
    assert_int_equal(access(in_folder("d/begun"), F_OK), -1);
    watched.started = NULL;
    assert_ok(pc_gpt_train(options, &summary));
}

static void wrong_settings(void **state)
{
    (void)state;
    pc_gpt_train_callbacks callbacks;
    pc_gpt_train_summary summary;
    listener l = {.stop_at = -1};
    pc_gpt_train_options options = small("c", &callbacks, &l), wrong = options;
    wrong.data = "/nowhere";
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_FILE, "/nowhere");
    assert_ok(pc__file_write(in_folder("short"), "ab", 2));
    wrong = options, wrong.data = in_folder("short");
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_RANGE, "is too short: 2 tokens to learn from and 0 to test on");
    assert_ok(pc__file_write(in_folder("short"), "", 0));
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_NOT_FOUND, "short: it is empty");
    wrong = options, wrong.precision = "f8";
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_ARGUMENT, "the precision \"f8\"");
    wrong = options, wrong.batch = -2;
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_ARGUMENT, "batch -2");
    wrong = options, wrong.batch = 1 << 28;
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_MEMORY, "stretches would fit");
    wrong = options, wrong.net.size = "huge";
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_ARGUMENT, "no size \"huge\"");
    wrong = options, wrong.vocabulary = 100;
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_ARGUMENT, "a vocabulary of 100 is for tokens that are learnt");
    assert_int_equal(remove(in_folder("c/checkpoint")), 0); /* a network that was put there */
    assert_fails(pc_gpt_train(options, &summary), PC_ERR_STATE, "c/model.safetensors is there and is no training's");
    static const char *const names[] = {"model.safetensors", "config.json", "vocab.json", "merges.txt"};
    for (int i = 0; i < PC__COUNT(names); i++)
        (void)remove(joined("c/", names[i]));
    wrong = options, wrong.tokens = "/nowhere";
    assert_fails(pc_gpt_train(wrong, &summary), PC_ERR_FILE, "/nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_to_the_same_bits),
        cmocka_unit_test(the_folder_can_be_used),
        cmocka_unit_test(a_rotten_checkpoint),
        cmocka_unit_test(what_is_no_checkpoint_is_kept),
        cmocka_unit_test(from_another_network),
        cmocka_unit_test(from_tokens),
        cmocka_unit_test(without_clipping_and_decay),
        cmocka_unit_test(a_step_too_far),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(a_folder_is_of_one_training),
        cmocka_unit_test(wrong_settings),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

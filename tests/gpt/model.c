/* GPT-2 against Hugging Face's: logits, loss and gradients, the likeliest tokens by kept keys and values; files. */
#include "device.h"
#include "gpt/cache.h"
#include "io/file.h"

#include <paracord/autograd.h>
#include <paracord/no_grad.h>
#include <paracord/random.h>
#include <paracord/weights.h>

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOLDEN PC_TEST_GOLDEN "/gpt2"

typedef struct answers {
    char *text;
    double tokens[18], logits[2 * 8 * 23], loss, greedy[16];
} answers;

/* The numbers behind `words`. */
static void numbers(const char *text, const char *words, double *out, int n)
{
    const char *at = strstr(text, words);
    if (!at)
        fail_msg("answers.txt has no \"%s\"", words);
    char *end;
    at += strlen(words);
    for (int i = 0; i < n; i++, at = end)
        out[i] = strtod(at, &end);
}

static answers *read_answers(void)
{
    static answers a;
    size_t n;
    assert_ok(pc__file_read(GOLDEN "/answers.txt", (uint8_t **)&a.text, &n));
    numbers(a.text, "tokens ", a.tokens, 18);
    numbers(a.text, "\nlogits ", a.logits, 2 * 8 * 23);
    numbers(a.text, "\nloss ", &a.loss, 1);
    numbers(a.text, "\ngreedy ", a.greedy, 16);
    return &a;
}

/* Of both rows all but the last, or all but the first. */
static pc_tensor *tokens_from(const answers *a, int first)
{
    int64_t t[16];
    for (int i = 0; i < 16; i++)
        t[i] = (int64_t)a->tokens[i / 8 * 9 + i % 8 + first];
    return pc_from_data(t, PC_SHAPE(2, 8), PC_I64, test_device());
}

static void as_hugging_face(void **state)
{
    (void)state;
    answers *a = read_answers();
    pc_module *gpt = pc_gpt_open(GOLDEN, test_device());
    assert_not_null_ok(gpt);
    PC_SCOPE {
        float logits[2 * 8 * 23];
        pc_tensor *out = pc_forward(gpt, tokens_from(a, 0)), *loss = pc_gpt_loss(out, tokens_from(a, 1));
        assert_not_null_ok(loss);
        assert_ok(pc_read(pc_detach(out), logits, sizeof logits));
        for (int i = 0; i < 2 * 8 * 23; i++)
            assert_close(logits[i], a->logits[i], 2e-5);
        assert_close(pc_item(loss), a->loss, 1e-5);
        assert_ok(pc_backward(loss));
        pc_parameter list[64];
        const int n = pc_module_parameter_list(gpt, list, 64);
        assert_int_equal(n, 2 + 2 * 12 + 2);
        for (int i = 0; i < n; i++) {
            char words[160];
            double want;
            snprintf(words, sizeof words, "\nnorm %.96s ", list[i].name);
            numbers(a->text, words, &want, 1);
            assert_close(pc_item(pc_norm(pc_grad(list[i].tensor), 2)), want, 1e-4 * want + 1e-6);
        }
    }
    pc_module_free(gpt);
    pc__free(a->text);
}

static void the_likeliest_tokens(void **state)
{
    (void)state;
    answers *a = read_answers();
    pc_module *gpt = pc_gpt_open(GOLDEN, test_device());
    pc__gpt_cache cache;
    float logits[23];
    int32_t tokens[16];
    for (int i = 0; i < 3; i++)
        tokens[i] = (int32_t)a->greedy[i];
    assert_ok(pc__gpt_cache_begin(&cache, gpt));
    for (int at = 3; at < 16; at++) {
        assert_ok(pc__gpt_cache_read(&cache, at == 3 ? tokens : tokens + at - 1, at == 3 ? 3 : 1, logits));
        int best = 0;
        for (int i = 1; i < 23; i++)
            best = logits[i] > logits[best] ? i : best;
        tokens[at] = best;
        assert_int_equal(best, (int)a->greedy[at]);
    }
    pc__gpt_cache_end(&cache);
    pc_module_free(gpt);
    pc__free(a->text);
}

/* One by one, all at once, and by the network's own function. */
static void kept_keys_change_nothing(void **state)
{
    (void)state;
    pc_module *gpt = pc_gpt_open(GOLDEN, test_device());
    const int32_t tokens[10] = {3, 22, 0, 7, 7, 15, 2, 9, 11, 1};
    float one[23], all[23], plain[10 * 23];
    pc__gpt_cache cache;
    assert_ok(pc__gpt_cache_begin(&cache, gpt));
    for (int i = 0; i < 10; i++)
        assert_ok(pc__gpt_cache_read(&cache, tokens + i, 1, one));
    pc__gpt_cache_forget(&cache);
    assert_ok(pc__gpt_cache_read(&cache, tokens, 10, all));
    PC_SCOPE {
        PC_NO_GRAD {
            assert_ok(pc_read(pc_forward(gpt, pc_from_data(tokens, PC_SHAPE(1, 10), PC_I32, test_device())), plain,
                              sizeof plain));
        }
    }
    for (int i = 0; i < 23; i++) {
        assert_close(one[i], plain[9 * 23 + i], 2e-5);
        assert_close(all[i], plain[9 * 23 + i], 2e-5);
    }
    pc__gpt_cache_end(&cache);
    pc_module_free(gpt);
}

/* The same numbers, from a folder of before safetensors, with the masks that were in them. */
static void older_folders(void **state)
{
    (void)state;
    pc_module *gpt = pc_gpt_open(GOLDEN, test_device()), *older = pc_gpt_open(GOLDEN "-older", test_device());
    pc_parameter a[64], b[64];
    assert_not_null_ok(gpt);
    assert_not_null_ok(older);
    const int n = pc_module_parameter_list(gpt, a, 64);
    assert_int_equal(pc_module_parameter_list(older, b, 64), n);
    PC_SCOPE {
        for (int i = 0; i < n; i++)
            assert_true(pc_item(pc_all(pc_eq(a[i].tensor, b[i].tensor))) == 1);
    }
    pc_module_free(gpt);
    pc_module_free(older);
}

/* Every second tensor of model.safetensors in a file of its own, and an index of both instead of it. */
static void in_two_files(const char *folder)
{
    char path[128];
    pc__text index = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    pc_weights *file = pc_weights_open(path);
    pc__text_add(&index, "{\"metadata\": {}, \"weight_map\": {");
    PC_SCOPE {
        pc_parameter half[2][64];
        for (int i = 0; i < pc_weights_count(file); i++) {
            pc_weights_entry entry;
            assert_ok(pc_weights_query(file, i, &entry));
            pc_parameter *to = &half[i % 2][i / 2];
            snprintf(to->name, sizeof to->name, "%s", entry.name);
            to->tensor = pc_weights_read(file, entry.name, PC_DEVICE_CPU);
            pc__text_add(&index, "%s\"%s\": \"part%d.safetensors\"", i ? ", " : "", entry.name, i % 2);
        }
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "%s/part%d.safetensors", folder, i);
            assert_ok(pc_weights_write(path, half[i], (pc_weights_count(file) + 1 - i) / 2, NULL));
        }
    }
    pc__text_add(&index, "}}");
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    assert_ok(pc__file_write(path, index.data, index.length));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    pc_weights_free(file);
    pc__text_free(&index);
}

static void files_come_back(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-gpt-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    pc_seed(3);
    pc_module *gpt =
        on_device(pc_gpt(.layers = 2, .heads = 2, .width = 8, .context = 5, .vocabulary = 7, .dropout = 0.25));
    assert_ok(pc_gpt_save(gpt, folder));
    pc_module *again = pc_gpt_open(folder, test_device());
    assert_not_null_ok(again);
    pc_gpt_options o;
    assert_ok(pc_gpt_query(again, &o));
    assert_int_equal(o.context, 5);
    assert_int_equal(o.vocabulary, 7);
    assert_true(o.dropout == 0.25);
    pc_parameter list[64], other[64];
    const int n = pc_module_parameter_list(gpt, list, 64);
    assert_int_equal(pc_module_parameter_list(again, other, 64), n);
    for (int i = 0; i < n; i++)
        PC_SCOPE {
            assert_string_equal(list[i].name, other[i].name);
            assert_true(pc_item(pc_all(pc_eq(list[i].tensor, other[i].tensor))) == 1);
        }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    pc_weights *file = pc_weights_open(path);
    pc_weights_entry entry;
    assert_ok(pc_weights_find(file, "transformer.h.1.attn.c_attn.weight", &entry));
    assert_int_equal(entry.shape.dim[0], 8);
    assert_int_equal(entry.shape.dim[1], 24);
    pc_weights_free(file);
    in_two_files(folder);
    pc_module *from_two = pc_gpt_open(folder, test_device());
    assert_not_null_ok(from_two);
    assert_int_equal(pc_module_parameter_list(from_two, other, 64), n);
    for (int i = 0; i < n; i++)
        PC_SCOPE
            assert_true(pc_item(pc_all(pc_eq(list[i].tensor, other[i].tensor))) == 1);
    pc_module_free(from_two);
    static const char *const files[] = {"model.safetensors.index.json", "part0.safetensors", "part1.safetensors"};
    for (int i = 0; i < PC__COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_fails(pc_gpt_open(folder, test_device()), PC_ERR_FILE, "model.safetensors");
    snprintf(path, sizeof path, "%s/%s", folder, files[0]);
    assert_ok(pc__file_write(path, "{}", 2));
    assert_fails(pc_gpt_open(folder, test_device()), PC_ERR_FORMAT,
                 "model.safetensors.index.json is no file of weights");
    unlink(path);
    snprintf(path, sizeof path, "%s/config.json", folder);
    const char *wrong[] = {"{\"model_type\": \"llama\"}", "{\"activation_function\": \"relu\"}",
                           "{\"tie_word_embeddings\": false}", "{\"layer_norm_epsilon\": 1e-6}"};
    for (int i = 0; i < 4; i++) {
        assert_ok(pc__file_write(path, wrong[i], strlen(wrong[i])));
        assert_fails(pc_gpt_open(folder, test_device()), PC_ERR_UNSUPPORTED, "config.json");
    }
    assert_ok(pc__file_write(path, "{\"n_layer\": 0}", 14));
    assert_fails(pc_gpt_open(folder, test_device()), PC_ERR_ARGUMENT, "0 layers");
    assert_ok(pc__file_write(path, "{\"n_layer\": }", 13));
    assert_fails(pc_gpt_open(folder, test_device()), PC_ERR_FORMAT, "cannot be understood");
    unlink(path);
    rmdir(folder);
    pc_module_free(gpt);
    pc_module_free(again);
}

/* Tokens that texts begin and end with are written as they were read. */
static void ends_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *read, *written;
    } ends[] = {{"\"bos_token_id\": 3, \"eos_token_id\": 4", "\"bos_token_id\": 3,\n  \"eos_token_id\": 4,"},
                {"\"bos_token_id\": null, \"eos_token_id\": 0", "\"bos_token_id\": null,\n  \"eos_token_id\": 0,"},
                {"\"bos_token_id\": [5, 6], \"eos_token_id\": 4", "\"eos_token_id\": 4,"},
                {"\"n_ctx\": 16", NULL}};
    char folder[] = "/tmp/paracord-gpt-XXXXXX", config[128], weights[128], text[256];
    assert_non_null(mkdtemp(folder));
    snprintf(config, sizeof config, "%s/config.json", folder);
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(symlink(GOLDEN "/model.safetensors", weights), 0);
        snprintf(text, sizeof text,
                 "{\"n_layer\": 2, \"n_head\": 3, \"n_embd\": 12, \"n_positions\": 16, \"vocab_size\": 23, %s}",
                 ends[i].read);
        assert_ok(pc__file_write(config, text, strlen(text)));
        pc_module *gpt = pc_gpt_open(folder, test_device());
        assert_not_null_ok(gpt);
        assert_int_equal(unlink(weights), 0);
        assert_ok(pc_gpt_save(gpt, folder));
        uint8_t *written;
        size_t n;
        assert_ok(pc__file_read(config, &written, &n));
        if (ends[i].written ? !strstr((char *)written, ends[i].written) : strstr((char *)written, "token_id") != NULL)
            fail_msg("%s", (char *)written);
        pc__free(written);
        pc_module_free(gpt);
        assert_int_equal(unlink(weights), 0);
    }
    unlink(config);
    rmdir(folder);
}

static void other_sizes_are_refused(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-gpt-XXXXXX", config[128], weights[128];
    assert_non_null(mkdtemp(folder));
    snprintf(config, sizeof config, "%s/config.json", folder);
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    assert_int_equal(symlink(GOLDEN "/model.safetensors", weights), 0);
    const char text[] = "{\"n_layer\": 2, \"n_head\": 3, \"n_embd\": 12, \"n_positions\": 8, \"vocab_size\": 23}";
    assert_ok(pc__file_write(config, text, sizeof text - 1));
    assert_fails(pc_gpt_open(folder, test_device()), PC_ERR_SHAPE,
                 "\"transformer.wpe.weight\" is F32 [16, 12], and config.json asks for [8, 12]");
    const char more[] = "{\"n_layer\": 3, \"n_head\": 3, \"n_embd\": 12, \"n_positions\": 16, \"vocab_size\": 23}";
    assert_ok(pc__file_write(config, more, sizeof more - 1));
    assert_fails(pc_gpt_open(folder, test_device()), PC_ERR_NOT_FOUND, "h.2.ln_1.weight");
    const char fewer[] = "{\"n_layer\": 1, \"n_head\": 3, \"n_embd\": 12, \"n_positions\": 16, \"vocab_size\": 23}";
    assert_ok(pc__file_write(config, fewer, sizeof fewer - 1));
    assert_fails(pc_gpt_open(folder, test_device()), PC_ERR_FORMAT,
                 "has a tensor \"transformer.h.1.ln_1.weight\", and config.json has 1 layers");
    unlink(config);
    unlink(weights);
    rmdir(folder);
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t millions;
    } known[] = {{"gpt2", 124}, {"nano", 7}};
    for (int i = 0; i < 2; i++) {
        pc_module *gpt = pc_gpt(.size = known[i].name);
        assert_int_equal(pc_module_parameter_elements(gpt) / 1000000, known[i].millions);
        pc_module_free(gpt);
    }
    pc_gpt_options o;
    assert_ok(pc_gpt_size("gpt2-xl", &o));
    assert_int_equal(o.layers, 48);
    assert_fails(pc_gpt_size("huge", &o), PC_ERR_ARGUMENT, "no size \"huge\" of GPT; there are nano, micro");
    assert_fails(pc_gpt(.heads = 3), PC_ERR_ARGUMENT, "3 heads, width 128");
    assert_fails(pc_gpt(.dropout = 1), PC_ERR_ARGUMENT, "dropout is 1");
    pc_module *gpt = on_device(pc_gpt(.layers = 1, .heads = 1, .width = 4, .context = 3, .vocabulary = 5)),
              *other = pc_linear(1, 1);
    pc_tensor *x = pc_zeros(PC_SHAPE(1, 4), PC_I64, test_device());
    assert_fails(pc_forward(gpt, x), PC_ERR_SHAPE, "tokens of shape [1, 4]");
    assert_fails(pc_gpt_query(other, &o), PC_ERR_ARGUMENT, "the module is a Linear");
    assert_true(pc_gpt_flops(gpt, 3) == 6.0 * (double)(pc_module_parameter_elements(gpt) - 12) + 12 * 4 * 3);
    pc_tensor_free(x);
    pc_module_free(gpt);
    pc_module_free(other);
}

/* A text that repeats is learnt by heart. */
static void learns(void **state)
{
    (void)state;
    if (emulated())
        skip(); /* it takes its time there */
    const char text[] = "to be or not to be, that is the question: to be or not to be, that is the question: ";
    pc_tokenizer *letters = pc_tokenizer_new_letters(text, sizeof text - 1);
    pc_corpus *corpus = pc_corpus_new(letters, text, sizeof text - 1, (pc_corpus_options){.held_out = -1});
    pc_seed(1);
    pc_module *gpt = on_device(
        pc_gpt(.layers = 1, .heads = 2, .width = 32, .context = 16, .vocabulary = pc_tokenizer_size(letters)));
    pc_optimizer *adamw = pc_adamw(gpt, .lr = 1e-2);
    pc_tensor *x = pc_zeros(PC_SHAPE(8, 16), PC_I64, test_device()),
              *y = pc_zeros(PC_SHAPE(8, 16), PC_I64, test_device());
    double loss = 0;
    for (int step = 0; step < 100; step++)
        PC_SCOPE {
            assert_ok(pc_corpus_draw(corpus, PC_CORPUS_TRAINING, 0, step, x, y));
            pc_tensor *l = pc_gpt_loss(pc_forward(gpt, x), y);
            assert_ok(pc_backward(l));
            assert_ok(pc_optimizer_step(adamw));
            loss = pc_item(l);
        }
    assert_true(loss < 0.5);
    char *written = pc_gpt_write(gpt, letters, "that is", (pc_gpt_write_options){.tokens = 12, .temperature = -1});
    assert_not_null_ok(written);
    assert_string_equal(written, " the questio");
    pc_text_free(written);
    pc_tensor_free(x);
    pc_tensor_free(y);
    pc_optimizer_free(adamw);
    pc_module_free(gpt);
    pc_corpus_free(corpus);
    pc_tokenizer_free(letters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_hugging_face),
        cmocka_unit_test(the_likeliest_tokens),
        cmocka_unit_test(kept_keys_change_nothing),
        cmocka_unit_test(older_folders),
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(ends_are_kept),
        cmocka_unit_test(other_sizes_are_refused),
        cmocka_unit_test(sizes),
        cmocka_unit_test(learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

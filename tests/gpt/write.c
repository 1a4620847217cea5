/* Texts by a GPT: how tokens are picked, seeds, callbacks, beyond the context; settings that are wrong. */
#include "base/base.h"
#include "device.h"
#include "gpt/choose.h"

#include <paracord/gpt_train.h>
#include <paracord/no_grad.h>
#include <paracord/random.h>

#include <math.h>

static const float logits[6] = {0, 2, 1, -INFINITY, NAN, 2};

/* How often each token is picked, of 1000 evenly spread numbers. */
static void shares(pc_gpt_write_options options, int *counts)
{
    pc__gpt_likely room[6];
    memset(counts, 0, 6 * sizeof *counts);
    for (int i = 0; i < 1000; i++)
        counts[pc__gpt_choose(logits, 6, &options, (i + 0.5) / 1000, room)]++;
}

static void picks(void **state)
{
    (void)state;
    int c[6];
    const double e = exp(1), sum = 1 + e + 2 * e * e;
    shares((pc_gpt_write_options){0}, c);
    assert_close(c[0], 1000 / sum, 1);
    assert_close(c[2], 1000 * e / sum, 1);
    assert_close(c[1], 1000 * e * e / sum, 1);
    assert_int_equal(c[3] + c[4], 0);
    shares((pc_gpt_write_options){.temperature = -1}, c);
    assert_int_equal(c[1], 1000);
    shares((pc_gpt_write_options){.temperature = 1e-3}, c);
    assert_int_equal(c[1] + c[5], 1000);
    shares((pc_gpt_write_options){.top_k = 1}, c);
    assert_int_equal(c[1], 1000);
    shares((pc_gpt_write_options){.top_k = 3}, c);
    assert_int_equal(c[0], 0);
    assert_true(c[2] > 100);
    shares((pc_gpt_write_options){.top_k = 100}, c);
    assert_true(c[0] > 0);
    shares((pc_gpt_write_options){.top_p = 0.39}, c);
    assert_int_equal(c[1], 1000);
    shares((pc_gpt_write_options){.top_p = 0.5}, c);
    assert_close(c[1], 500, 1);
    assert_close(c[5], 500, 1);
    shares((pc_gpt_write_options){.top_p = 1}, c);
    assert_true(c[0] > 0);
}

static void the_likeliest_of_many(void **state)
{
    (void)state;
    enum { N = 5000 };
    static float many[N];
    static pc__gpt_likely room[N];
    for (int i = 0; i < N; i++)
        many[i] = (float)((i * 7919) % 997) / 97; /* with equals */
    for (int k = 1; k < N; k = k * 3 + 1) {
        int above = 0;
        float least = 100;
        for (int i = 0; i < 200; i++) {
            const int t =
                pc__gpt_choose(many, N, &(pc_gpt_write_options){.top_k = k, .temperature = 100}, (i + 0.5) / 200, room);
            least = fminf(least, many[t]);
        }
        for (int i = 0; i < N; i++)
            above += many[i] > least;
        assert_true(above < k);
    }
}

typedef struct listener {
    char text[256];
    int tokens, most;
} listener;

static bool listen(void *context, const char *bytes, size_t count)
{
    listener *l = context;
    strncat(l->text, bytes, count);
    return ++l->tokens < l->most;
}

static void the_same_seed_gives_the_same_text(void **state)
{
    (void)state;
    pc_seed(2);
    pc_tokenizer *letters = pc_tokenizer_new_letters("abcdefgh", 8);
    pc_module *gpt = on_device(pc_gpt(.layers = 2, .heads = 2, .width = 16, .context = 10, .vocabulary = 8));
    const pc_gpt_write_options options = {.tokens = 60, .seed = 9};
    char *one = pc_gpt_write(gpt, letters, "abc", options), *two = pc_gpt_write(gpt, letters, "abc", options);
    assert_not_null_ok(one);
    assert_int_equal(strlen(one), 60);
    assert_string_equal(one, two);
    listener l = {.most = 7};
    pc_text_free(two);
    two = pc_gpt_write(gpt, letters, "abc",
                       (pc_gpt_write_options){.tokens = 60, .seed = 9, .told = listen, .context = &l});
    assert_int_equal(l.tokens, 7);
    assert_string_equal(l.text, two);
    assert_memory_equal(one, two, 7);
    pc_text_free(one);
    pc_text_free(two);
    one = pc_gpt_write(gpt, letters, "abcdefghabcdefgh", (pc_gpt_write_options){0}); /* more than the context */
    assert_int_equal(strlen(one), 200);
    pc_text_free(one);
    one = pc_gpt_write(gpt, letters, NULL, (pc_gpt_write_options){.tokens = 5});
    assert_int_equal(strlen(one), 5);
    assert_false(pc_failed());
    pc_text_free(one);
    assert_fails(pc_gpt_write(gpt, letters, "x", options), PC_ERR_NOT_FOUND, "no token for \"x\"");
    assert_fails(pc_gpt_write(gpt, letters, "a", (pc_gpt_write_options){.top_p = 2}), PC_ERR_ARGUMENT, "top_p 2");
    assert_fails(pc_gpt_write(gpt, letters, "a", (pc_gpt_write_options){.tokens = -2}), PC_ERR_ARGUMENT, "tokens -2");
    pc_tokenizer *more = pc_tokenizer_new_letters("abcdefghi", 9);
    assert_fails(pc_gpt_write(gpt, more, "a", options), PC_ERR_ARGUMENT,
                 "the tokenizer has 9 tokens and the network 8");
    pc_tokenizer_free(letters);
    pc_tokenizer_free(more);
    pc_module_free(gpt);
}

/* Weights, keys and values in 16 bits: another text, maybe, but one. */
static void in_16_bits(void **state)
{
    (void)state;
    pc_tokenizer *letters = pc_tokenizer_new_letters("abcdefgh", 8);
    pc_module *gpt = pc_gpt(.layers = 2, .heads = 2, .width = 16, .context = 10, .vocabulary = 8);
    assert_ok(pc_module_to(gpt, test_device(), PC_BF16));
    char *text = pc_gpt_write(gpt, letters, "abc", (pc_gpt_write_options){.tokens = 30});
    assert_not_null_ok(text);
    assert_int_equal(strlen(text), 30);
    pc_text_free(text);
    pc_module_free(gpt);
    pc_tokenizer_free(letters);
}

static const pc_gpt_write_options draws[] = {
    {.temperature = -1}, {0}, {.temperature = 0.8}, {.top_k = 2}, {.top_p = 0.5}, {.top_k = 3, .top_p = 0.5}};

static void a_network_that_answers_with_nan(void **state)
{
    (void)state;
    const float none[4] = {NAN, NAN, NAN, NAN};
    pc__gpt_likely room[4];
    int64_t tokens;
    pc_tokenizer *letters = pc_tokenizer_new_letters("abcd", 4);
    pc_module *gpt = on_device(pc_gpt(.layers = 1, .heads = 2, .width = 16, .context = 10, .vocabulary = 4));
    PC_NO_GRAD {
        assert_ok(pc_fill(pc_module_parameter(gpt, "transformer.ln_f.bias"), NAN));
    }
    for (int i = 0; i < PC__COUNT(draws); i++) {
        assert_int_equal(pc__gpt_choose(none, 4, &draws[i], 0.5, room), -1);
        assert_fails(pc_gpt_write(gpt, letters, "a", draws[i]), PC_ERR_RANGE, "the network's logits are NaN");
    }
    assert_true(isnan(pc_gpt_evaluate(gpt, letters, "abcdabcd", 8, &tokens)));
    assert_int_equal(pc_error_last()->status, PC_ERR_RANGE);
    assert_non_null(strstr(pc_error_last()->message, "the network's logits are NaN"));
    pc_error_clear();
    pc_tokenizer_free(letters);
    pc_module_free(gpt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(picks), cmocka_unit_test(the_likeliest_of_many),
                                       cmocka_unit_test(the_same_seed_gives_the_same_text),
                                       cmocka_unit_test(in_16_bits), cmocka_unit_test(a_network_that_answers_with_nan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

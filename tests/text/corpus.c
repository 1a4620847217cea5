/* Texts to learn from: parts, drawn and taken stretches, on the test's device. */
#include "device.h"

#include <paracord/text.h>

static pc_corpus *digits(pc_tokenizer **t, double held_out)
{
    static char text[1000];
    for (int i = 0; i < 1000; i++)
        text[i] = (char)('0' + i % 10);
    *t = pc_tokenizer_new_letters(text, 1000);
    return pc_corpus_new(*t, text, 1000, (pc_corpus_options){.held_out = held_out});
}

static void read_both(pc_tensor *x, pc_tensor *y, int64_t *a, int64_t *b, int64_t n)
{
    assert_ok(pc_read(x, a, (size_t)n * 8));
    assert_ok(pc_read(y, b, (size_t)n * 8));
}

static void stretches_and_what_follows(void **state)
{
    (void)state;
    pc_tokenizer *t;
    pc_corpus *c = digits(&t, 0);
    assert_not_null_ok(c);
    assert_int_equal(pc_corpus_size(c, PC_CORPUS_TRAINING), 900);
    assert_int_equal(pc_corpus_size(c, PC_CORPUS_TESTING), 100);
    pc_tensor *x = pc_zeros(PC_SHAPE(3, 7), PC_I64, test_device()),
              *y = pc_zeros(PC_SHAPE(3, 7), PC_I64, test_device());
    int64_t a[21], b[21], other[21];
    int changed = 0;
    for (int step = 0; step < 200; step++) {
        assert_ok(pc_corpus_draw(c, step % 2 ? PC_CORPUS_TESTING : PC_CORPUS_TRAINING, 5, step, x, y));
        read_both(x, y, a, b, 21);
        for (int i = 0; i < 21; i++) {
            assert_int_equal(b[i], (a[i] + 1) % 10);
            assert_true(i % 7 == 6 || a[i + 1] == b[i]);
        }
        changed += step && memcmp(a, other, sizeof a) != 0;
        memcpy(other, a, sizeof a);
    }
    assert_true(changed > 190);
    assert_ok(pc_corpus_draw(c, PC_CORPUS_TESTING, 5, 199, x, y)); /* the same again */
    read_both(x, y, a, b, 21);
    assert_memory_equal(a, other, sizeof a);
    assert_ok(pc_corpus_take(c, PC_CORPUS_TESTING, 4, x, y));
    read_both(x, y, a, b, 21);
    for (int i = 0; i < 21; i++)
        assert_int_equal(a[i], (4 + i) % 10);
    assert_ok(pc_corpus_take(c, PC_CORPUS_TESTING, 78, x, y));
    assert_fails(pc_corpus_take(c, PC_CORPUS_TESTING, 79, x, y), PC_ERR_RANGE, "go beyond the part's 100");
    assert_fails(pc_corpus_take(c, PC_CORPUS_TESTING, -1, x, y), PC_ERR_RANGE, "from token -1");
    assert_fails(pc_corpus_draw(c, (pc_corpus_part)7, 0, 0, x, y), PC_ERR_ARGUMENT, "no part 7");
    pc_tensor *wrong = pc_zeros(PC_SHAPE(3, 7), PC_I32, test_device()),
              *longer = pc_zeros(PC_SHAPE(1, 100), PC_I64, test_device());
    assert_fails(pc_corpus_draw(c, PC_CORPUS_TRAINING, 0, 0, x, wrong), PC_ERR_SHAPE, "y int32 [3, 7]");
    assert_fails(pc_corpus_draw(c, PC_CORPUS_TESTING, 0, 0, longer, longer), PC_ERR_RANGE,
                 "the testing part has 100 tokens");
    pc_tensor_free(x);
    pc_tensor_free(y);
    pc_tensor_free(wrong);
    pc_tensor_free(longer);
    pc_corpus_free(c);
    pc_tokenizer_free(t);
}

static void parts(void **state)
{
    (void)state;
    pc_tokenizer *t;
    pc_corpus *c = digits(&t, -1);
    assert_int_equal(pc_corpus_size(c, PC_CORPUS_TRAINING), 1000);
    assert_int_equal(pc_corpus_size(c, PC_CORPUS_TESTING), 0);
    pc_corpus_free(c);
    assert_fails(pc_corpus_new(t, "1", 1, (pc_corpus_options){.held_out = 1}), PC_ERR_ARGUMENT, "held_out is 1");
    assert_fails(pc_corpus_new(t, "x", 1, (pc_corpus_options){0}), PC_ERR_NOT_FOUND, "no token for \"x\"");
    pc_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stretches_and_what_follows), cmocka_unit_test(parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

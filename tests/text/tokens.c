/* Files of tokens, plain and with llm.c's header: the stretches of a corpus of the same tokens in memory, parts of their
 * own, loaders; files that are damaged, and that change while they are read. */
#include "device.h"
#include "io/file.h"

#include <paracord/samples.h>
#include <paracord/text.h>

#include <unistd.h>

static char path[] = "/tmp/paracord-tokens-XXXXXX", other[sizeof path + 2];

enum { TOKENS = 1000, HEADER = 1024 };

static void put32(uint8_t *at, int32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)((uint32_t)number >> 8 * i);
}

/* n tokens 0, 1, ... 9, 0, ... that begin with `first`; behind a header that says so many, unless that is below 0. */
static void write_tokens(const char *to, int n, int first, int said)
{
    static uint8_t bytes[HEADER + 4 * TOKENS];
    const int start = said < 0 ? 0 : HEADER;
    memset(bytes, 0, sizeof bytes);
    put32(bytes, 20240520), put32(bytes + 4, 1), put32(bytes + 8, said);
    for (int i = 0; i < n; i++) {
        bytes[start + 2 * i] = (uint8_t)((first + i) % 10);
        bytes[start + 2 * i + 1] = 0;
    }
    assert_ok(pc__file_write(to, bytes, (size_t)(start + 2 * n)));
}

static pc_tensor *room(int64_t rows, int64_t length)
{
    return pc_zeros(PC_SHAPE(rows, length), PC_I64, test_device());
}

static void same_stretches(pc_corpus *c, pc_corpus *like)
{
    PC_SCOPE {
        pc_tensor *x = room(3, 7), *y = room(3, 7);
        int64_t a[2][21], b[2][21];
        for (int step = 0; step < 50; step++) {
            const pc_corpus_part part = step % 2 ? PC_CORPUS_TESTING : PC_CORPUS_TRAINING;
            assert_ok(pc_corpus_draw(c, part, 5, step, x, y));
            assert_ok(pc_read(x, a[0], sizeof a[0]));
            assert_ok(pc_read(y, a[1], sizeof a[1]));
            assert_ok(pc_corpus_draw(like, part, 5, step, x, y));
            assert_ok(pc_read(x, b[0], sizeof b[0]));
            assert_ok(pc_read(y, b[1], sizeof b[1]));
            assert_memory_equal(a, b, sizeof a);
        }
    }
}

static void as_in_memory(void **state)
{
    (void)state;
    static char text[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        text[i] = (char)('0' + i % 10);
    pc_tokenizer *t = pc_tokenizer_new_letters(text, TOKENS);
    pc_corpus *like = pc_corpus_new(t, text, TOKENS, (pc_corpus_options){0});
    static const int said[] = {-1, TOKENS};
    for (int i = 0; i < 2; i++) {
        write_tokens(path, TOKENS, 0, said[i]);
        pc_corpus *c = pc_corpus_open(path, 10, (pc_corpus_options){0});
        assert_not_null_ok(c);
        assert_int_equal(pc_corpus_size(c, PC_CORPUS_TRAINING), 900);
        assert_int_equal(pc_corpus_size(c, PC_CORPUS_TESTING), 100);
        same_stretches(c, like);
        pc_corpus_free(c);
    }
    pc_corpus_free(like);
    assert_fails(pc_corpus_new(t, text, TOKENS, (pc_corpus_options){.testing = path}), PC_ERR_ARGUMENT,
                 "pc_corpus_open");
    pc_tokenizer_free(t);
}

static void a_file_to_test_on(void **state)
{
    (void)state;
    write_tokens(path, TOKENS, 0, -1);
    write_tokens(other, 50, 3, 50);
    pc_corpus *c = pc_corpus_open(path, 10, (pc_corpus_options){.testing = other});
    assert_int_equal(pc_corpus_size(c, PC_CORPUS_TRAINING), TOKENS);
    assert_int_equal(pc_corpus_size(c, PC_CORPUS_TESTING), 50);
    PC_SCOPE {
        pc_tensor *x = room(7, 7), *y = room(7, 7);
        int64_t a[49];
        assert_ok(pc_corpus_take(c, PC_CORPUS_TESTING, 0, x, y));
        assert_ok(pc_read(y, a, sizeof a));
        for (int i = 0; i < 49; i++)
            assert_int_equal(a[i], (4 + i) % 10);
    }
    pc_corpus_free(c);
    assert_fails(pc_corpus_open(path, 10, (pc_corpus_options){.testing = "/nowhere"}), PC_ERR_FILE, "/nowhere");
}

static void damaged(void **state)
{
    (void)state;
    static const struct {
        int n, said;
        const char *words;
    } files[] = {{900, TOKENS, "is truncated: its header says 1000 tokens, and it has 900"},
                 {TOKENS, 900, "is damaged: its header says 900 tokens, and it has 1000"},
                 {0, 5, "is truncated: its header says 5 tokens, and it has 0"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_tokens(path, files[i].n, 0, files[i].said);
        assert_fails(pc_corpus_open(path, 0, (pc_corpus_options){0}), PC_ERR_FORMAT, files[i].words);
    }
    uint8_t head[12] = {0};
    put32(head, 20240520), put32(head + 4, 1), put32(head + 8, -1);
    assert_ok(pc__file_write(path, head, sizeof head));
    assert_fails(pc_corpus_open(path, 0, (pc_corpus_options){0}), PC_ERR_FORMAT, "its header says -1 tokens");
    put32(head, 20240801), put32(head + 4, 7);
    assert_ok(pc__file_write(path, head, sizeof head));
    assert_fails(pc_corpus_open(path, 0, (pc_corpus_options){0}), PC_ERR_UNSUPPORTED, "version 7");
    assert_ok(pc__file_write(path, "odd", 3));
    assert_fails(pc_corpus_open(path, 0, (pc_corpus_options){0}), PC_ERR_FORMAT, "3 bytes");
    assert_fails(pc_corpus_open("/dev/null", 0, (pc_corpus_options){0}), PC_ERR_FILE, "/dev/null");
    assert_fails(pc_corpus_open(path, -1, (pc_corpus_options){0}), PC_ERR_ARGUMENT, "a vocabulary of -1");
    assert_fails(pc_corpus_open(path, 0, (pc_corpus_options){.held_out = 1}), PC_ERR_ARGUMENT, "held_out is 1");
}

static void beyond_the_vocabulary(void **state)
{
    (void)state;
    write_tokens(path, TOKENS, 0, -1);
    pc_corpus *c = pc_corpus_open(path, 9, (pc_corpus_options){.held_out = -1});
    PC_SCOPE {
        pc_tensor *x = room(1, 8), *y = room(1, 8);
        assert_ok(pc_corpus_take(c, PC_CORPUS_TRAINING, 20, x, y));
        assert_fails(pc_corpus_take(c, PC_CORPUS_TRAINING, 22, x, y), PC_ERR_RANGE,
                     "token number 29 is 9, beyond the vocabulary of 9");
    }
    pc_corpus_free(c);
}

/* It is told by a file that had another length when it was opened; nothing ends the process. */
static void changes_while_it_is_read(void **state)
{
    (void)state;
    static const off_t lengths[] = {100, 2 * TOKENS + 2, 0};
    for (int i = 0; i < 3; i++) {
        write_tokens(path, TOKENS, 0, -1);
        pc_corpus *c = pc_corpus_open(path, 10, (pc_corpus_options){.held_out = -1});
        pc_loader *loader = pc_loader_from_tokens(path, PC_OPTIONS(pc_token_options, .length = 9), .batch = 4,
                                                  .prefetch = -1, .resident = PC_RESIDENCE_NO, .device = test_device());
        assert_not_null_ok(loader);
        PC_SCOPE {
            pc_tensor *x = room(2, 8), *y = room(2, 8);
            pc_batch batch;
            assert_ok(pc_corpus_draw(c, PC_CORPUS_TRAINING, 0, 0, x, y));
            assert_true(pc_loader_next(loader, &batch));
            assert_int_equal(truncate(path, lengths[i]), 0);
            assert_fails(pc_corpus_draw(c, PC_CORPUS_TRAINING, 0, 1, x, y), PC_ERR_FILE,
                         "had 2000 bytes when it was opened, and has");
            assert_false(pc_loader_next(loader, &batch));
            assert_int_equal(pc_error_last()->status, PC_ERR_FILE);
            pc_error_clear();
        }
        pc_loader_free(loader);
        pc_corpus_free(c);
    }
}

static void loaders(void **state)
{
    (void)state;
    write_tokens(path, TOKENS, 0, TOKENS);
    pc_loader *loader = pc_loader_from_tokens(path, PC_OPTIONS(pc_token_options, .length = 9, .vocabulary = 10),
                                              .batch = 50, .shuffle = true, .device = test_device());
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_count(loader), 111);
    pc_batch batch;
    int64_t seen = 0, a[450], b[450];
    while (pc_loader_next(loader, &batch))
        PC_SCOPE {
            assert_ok(pc_read(batch.x, a, (size_t)batch.n * 72));
            assert_ok(pc_read(batch.y, b, (size_t)batch.n * 72));
            for (int64_t row = 0; row < batch.n; row++)
                for (int i = 0; i < 9; i++) {
                    assert_int_equal(a[9 * row + i], (9 * batch.sample[row] + i) % 10);
                    assert_int_equal(b[9 * row + i], (9 * batch.sample[row] + i + 1) % 10);
                }
            seen += batch.n;
        }
    assert_int_equal(seen, 111);
    pc_loader_free(loader);
    assert_fails(pc_loader_from_tokens(path, PC_OPTIONS(pc_token_options, .length = TOKENS), .batch = 1),
                 PC_ERR_NOT_FOUND, "a sample of 1000 needs one more than that");
    assert_fails(pc_loader_from_tokens(path, PC_OPTIONS(pc_token_options, .length = -1), .batch = 1), PC_ERR_ARGUMENT,
                 "samples of -1 tokens");
}

static int make(void **state)
{
    (void)state;
    const int file = mkstemp(path);
    snprintf(other, sizeof other, "%s.2", path);
    return file < 0 || close(file) != 0;
}

static int drop(void **state)
{
    (void)state;
    unlink(other);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(as_in_memory, nothing_left),
        cmocka_unit_test_teardown(a_file_to_test_on, nothing_left),
        cmocka_unit_test_teardown(damaged, nothing_left),
        cmocka_unit_test_teardown(beyond_the_vocabulary, nothing_left),
        cmocka_unit_test_teardown(changes_while_it_is_read, nothing_left),
        cmocka_unit_test_teardown(loaders, nothing_left),
    };
    return cmocka_run_group_tests(tests, make, drop);
}

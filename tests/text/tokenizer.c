/* Tokenizers: byte pairs as Hugging Face learns and uses them, letters of texts of any bytes, files that are wrong. */
#include "../data/pictures.h"
#include "io/file.h"

#include <paracord/text.h>

#define GOLDEN PC_TEST_GOLDEN "/bpe"

static char folder[] = "/tmp/paracord-text-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : 1;
}

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int drop_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"vocab.json", "merges.txt", "a/2", "a/1", "a/.x", "a", ""};
    for (int i = 0; i < 7; i++)
        (void)remove(in_folder(names[i]));
    return 0;
}

static void put(const char *name, const char *text)
{
    assert_ok(pc__file_write(in_folder(name), text, strlen(text)));
}

static void encodes_as(const pc_tokenizer *t, const char *text, size_t bytes, const int32_t *want, int64_t count)
{
    pc_tensor *tokens = pc_tokenizer_encode(t, text, bytes);
    assert_not_null_ok(tokens);
    const int32_t *got = pc_data(tokens);
    if (pc_tensor_count(tokens) != count || memcmp(got, want, (size_t)count * sizeof *want) != 0)
        fail_msg("\"%.60s\": other tokens", text);
    size_t n;
    char *back = pc_tokenizer_decode(t, got, count, &n);
    assert_int_equal(n, bytes);
    assert_memory_equal(back, text, bytes);
    pc_text_free(back);
    pc_tensor_free(tokens);
}

/* "hexadecimal bytes|tokens" */
static void check_line(const pc_tokenizer *t, char *line)
{
    char text[512];
    int32_t tokens[512];
    int64_t count = 0;
    size_t n = 0;
    char *bar = strchr(line, '|');
    assert_non_null(bar);
    for (unsigned byte; line + 2 * n < bar && sscanf(line + 2 * n, "%2x", &byte) == 1; n++)
        text[n] = (char)byte;
    for (char *at = bar + 1, *end; *at && *at != '\n'; at = end, count++)
        tokens[count] = (int32_t)strtol(at, &end, 10);
    encodes_as(t, text, n, tokens, count);
}

static void odd_texts_as_hugging_face(void **state)
{
    (void)state;
    pc_tokenizer *t = pc_tokenizer_open(GOLDEN);
    assert_not_null_ok(t);
    FILE *file = fopen(GOLDEN "/encoded.txt", "r");
    char line[4096];
    int lines = 0;
    while (fgets(line, sizeof line, file)) {
        check_line(t, line);
        lines++;
    }
    fclose(file);
    assert_int_equal(lines, 110);
    assert_int_equal(pc_tokenizer_end(t), -1);
    pc_tokenizer_free(t);
}

static void learns_the_merges_of_hugging_face(void **state)
{
    (void)state;
    size_t n, have, want;
    uint8_t *ours, *theirs;
    char *text = pc_text_read(GOLDEN "/text.txt", &n);
    pc_tokenizer *t = pc_tokenizer_new_pairs(text, n, 600);
    assert_not_null_ok(t);
    assert_int_equal(pc_tokenizer_end(t), pc_tokenizer_size(t) - 1);
    assert_ok(pc_tokenizer_save(t, folder));
    assert_ok(pc__file_read(in_folder("merges.txt"), &ours, &have));
    assert_ok(pc__file_read(GOLDEN "/merges.txt", &theirs, &want));
    assert_string_equal((const char *)ours, (const char *)theirs);
    pc_tokenizer *again = pc_tokenizer_open(folder), *other = pc_tokenizer_open(GOLDEN);
    assert_int_equal(pc_tokenizer_size(again), pc_tokenizer_size(t));
    assert_int_equal(pc_tokenizer_end(again), pc_tokenizer_end(t));
    pc_tensor *tokens = pc_tokenizer_encode(t, text, n);
    encodes_as(again, text, n, pc_data(tokens), pc_tensor_count(tokens));
    encodes_as(other, text, n, pc_data(tokens), pc_tensor_count(tokens));
    pc_tensor_free(tokens);
    pc_tokenizer_free(t);
    pc_tokenizer_free(again);
    pc_tokenizer_free(other);
    pc__free(ours);
    pc__free(theirs);
    pc_text_free(text);
}

static void bytes_of_any_kind(void **state)
{
    (void)state;
    pc_tokenizer *t = pc_tokenizer_open(GOLDEN);
    char all[1024];
    for (int i = 0; i < 1024; i++)
        all[i] = (char)(i * 37 + i / 256);
    for (size_t n = 0; n < 1024; n += 93) {
        pc_tensor *tokens = pc_tokenizer_encode(t, all, n);
        size_t have;
        char *back = pc_tokenizer_decode(t, pc_data(tokens), pc_tensor_count(tokens), &have);
        assert_int_equal(have, n);
        assert_memory_equal(back, all, n);
        pc_text_free(back);
        pc_tensor_free(tokens);
    }
    pc_tokenizer_free(t);
}

static void few_pairs(void **state)
{
    (void)state;
    pc_tokenizer *t = pc_tokenizer_new_pairs("ab ab ab", 8, 1000);
    assert_int_equal(pc_tokenizer_size(t), 256 + 2 + 1); /* "ab", " ab" */
    encodes_as(t, "ab ab", 5, (int32_t[]){256, 257}, 2);
    pc_tokenizer_free(t);
    t = pc_tokenizer_new_pairs("", 0, 257);
    assert_int_equal(pc_tokenizer_size(t), 257);
    pc_tokenizer_free(t);
    assert_fails(pc_tokenizer_new_pairs("x", 1, 256), PC_ERR_ARGUMENT, "a vocabulary of 256");
}

static void letters(void **state)
{
    (void)state;
    const char text[] = "b\u00e4a\xff\xc3 \U0001f600z\xc3";
    pc_tokenizer *t = pc_tokenizer_new_letters(text, sizeof text - 1);
    assert_int_equal(pc_tokenizer_size(t), 8); /* space, a, b, z, ae, face, c3, ff */
    encodes_as(t, text, sizeof text - 1, (int32_t[]){2, 4, 1, 7, 6, 0, 5, 3, 6}, 9);
    assert_ok(pc_tokenizer_save(t, folder));
    pc_tokenizer *again = pc_tokenizer_open(folder);
    assert_not_null_ok(again);
    encodes_as(again, text, sizeof text - 1, (int32_t[]){2, 4, 1, 7, 6, 0, 5, 3, 6}, 9);
    assert_fails(pc_tokenizer_encode(again, "abc", 3), PC_ERR_NOT_FOUND, "no token for \"c\" (U+0063), at byte 2");
    assert_fails(pc_tokenizer_encode(again, "\xfe", 1), PC_ERR_NOT_FOUND, "byte 254, which is no UTF-8");
    assert_fails(pc_tokenizer_decode(again, (int32_t[]){0, 8}, 2, NULL), PC_ERR_RANGE,
                 "token 1 is 8; the vocabulary has 0 to 7");
    assert_fails(pc_tokenizer_new_letters("", 0), PC_ERR_ARGUMENT, "empty");
    pc_tokenizer_free(t);
    pc_tokenizer_free(again);
}

/* Every byte comes back from the files as well: 0 ends texts of C, and others are no letters. */
static void every_letter_is_saved(void **state)
{
    (void)state;
    char all[512];
    for (int i = 0; i < 512; i++)
        all[i] = (char)i;
    for (int pairs = 0; pairs < 2; pairs++) {
        pc_tokenizer *t = pairs ? pc_tokenizer_new_pairs(all, 512, 300) : pc_tokenizer_new_letters(all, 512);
        assert_not_null_ok(t);
        assert_ok(pc_tokenizer_save(t, folder));
        pc_tokenizer *again = pc_tokenizer_open(folder);
        assert_not_null_ok(again);
        assert_int_equal(pc_tokenizer_size(again), pc_tokenizer_size(t));
        pc_tensor *tokens = pc_tokenizer_encode(t, all, 512);
        encodes_as(again, all, 512, pc_data(tokens), pc_tensor_count(tokens));
        pc_tensor_free(tokens);
        pc_tokenizer_free(t);
        pc_tokenizer_free(again);
    }
}

static void wrong_files(void **state)
{
    (void)state;
    static const struct {
        const char *words, *merges, *message;
    } wrong[] = {
        {"[]", NULL, "is no vocabulary"},
        {"{}", NULL, "is no vocabulary"},
        {"{\"a\": 0", NULL, "is no vocabulary"},
        {"{\"a\": 0, \"b\": 2}", NULL, "has 2 tokens and none with the number 1"},
        {"{\"a\": 0, \"b\": 0}", NULL, "two tokens have the number 0"},
        {"{\"a\": 0, \"b\": 99999999999}", NULL, "has a token 99999999999"},
        {"{\"ab\": 0}", NULL, "\"ab\" is no single letter"},
        {"{\"a\": 0}", "a b", "no token stands for the byte 0 alone"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        (void)remove(in_folder("merges.txt"));
        put("vocab.json", wrong[i].words);
        if (wrong[i].merges)
            put("merges.txt", wrong[i].merges);
        assert_fails(pc_tokenizer_open(folder), PC_ERR_FORMAT, wrong[i].message);
    }
    pc_tokenizer *t = pc_tokenizer_new_pairs("abab", 4, 300);
    assert_ok(pc_tokenizer_save(t, folder));
    put("merges.txt", "#version: 0.2\na b\na c\n");
    assert_fails(pc_tokenizer_open(folder), PC_ERR_FORMAT, "lacks a token of the merge in line 3, \"a c\"");
    put("merges.txt", "ab\n");
    assert_fails(pc_tokenizer_open(folder), PC_ERR_FORMAT, "line 1 is no merge of two tokens");
    assert_fails(pc_tokenizer_open("/nowhere"), PC_ERR_FILE, "/nowhere");
    pc_tokenizer_free(t);
}

static void folders_are_one_text(void **state)
{
    (void)state;
    size_t n;
    assert_int_equal(mkdir(in_folder("a"), 0777), 0);
    assert_fails(pc_text_read(in_folder("a"), &n), PC_ERR_NOT_FOUND, "there is no text in the folder");
    put("a/2", "two");
    put("a/1", "one");
    put("a/.x", "hidden");
    char *text = pc_text_read(in_folder("a"), &n);
    assert_string_equal(text, "one\ntwo"); /* words of two files are two */
    assert_int_equal(n, 7);
    pc_text_free(text);
    put("a/1", "one\n");
    text = pc_text_read(in_folder("a"), &n);
    assert_string_equal(text, "one\ntwo");
    pc_text_free(text);
    put("a/1", "");
    text = pc_text_read(in_folder("a"), &n);
    assert_string_equal(text, "two");
    pc_text_free(text);
    assert_ok(pc__file_write(in_folder("a/1"), "\0", 1));
    text = pc_text_read(in_folder("a"), &n);
    assert_string_equal(text, "two");
    pc_text_free(text);
    text = pc_text_read(in_folder("a/2"), &n);
    assert_string_equal(text, "two");
    pc_text_free(text);
}

/* Two links back into a folder would double its text with each level. */
static void a_link_back_ends_there(void **state)
{
    (void)state;
    test_path root = new_root();
    put_bytes(root.s, "poems/1", "one", 3);
    put_bytes(root.s, "poems/old/2", "two", 3);
    put_link(root.s, "poems/old/up", "..");
    put_link(root.s, "poems/old/far", "../..");
    put_link(root.s, "poems/self", ".");
    put_link(root.s, "poems/zero", "../other");
    put_link(root.s, "poems/nowhere", "gone");
    put_link(root.s, "poems/round", "round");
    put_bytes(root.s, "other/3", "three", 5);
    size_t n;
    char *text = pc_text_read(joined(root.s, "poems").s, &n);
    assert_string_equal(text, "one\ntwo\nthree\nthree");
    pc_text_free(text);
    remove_root(&root);
}

static void no_text_is_lost_in_silence(void **state)
{
    (void)state;
    test_path root = new_root();
    put_bytes(root.s, "poems/1", "one", 3);
    put_bad_link(root.s, "poems/odd");
    size_t n;
    assert_fails(pc_text_read(joined(root.s, "poems").s, &n), PC_ERR_FILE, "poems/odd");
    char name[200] = "deep";
    for (int i = 0; i < 40; i++)
        strcat(name, "/d");
    put_bytes(root.s, strcat(name, "/1"), "1", 1);
    char *text = pc_text_read(joined(root.s, "deep").s, &n);
    assert_string_equal(text, "1");
    pc_text_free(text);
    for (int i = 0; i < 30; i++)
        strcpy(name + strlen(name) - 1, "d/1");
    put_bytes(root.s, name, "1", 1);
    assert_fails(pc_text_read(joined(root.s, "deep").s, &n), PC_ERR_FILE, "folders deep");
    remove_root(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_texts_as_hugging_face),
        cmocka_unit_test(learns_the_merges_of_hugging_face),
        cmocka_unit_test(bytes_of_any_kind),
        cmocka_unit_test(few_pairs),
        cmocka_unit_test(letters),
        cmocka_unit_test(every_letter_is_saved),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(folders_are_one_text),
        cmocka_unit_test(a_link_back_ends_there),
        cmocka_unit_test(no_text_is_lost_in_silence),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}

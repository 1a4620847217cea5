/* tokenizer_file.c: vocab.json and merges.txt, as GPT-2's tokens are published. Bytes are written as letters that print. */
#include "io/file.h"
#include "io/json_read.h"
#include "text/tokenizer.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static bool prints(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

uint8_t pc__byte_in_order(int i)
{
    for (int pass = 0; pass < 2; pass++)
        for (int byte = 0; byte < 256; byte++)
            if (prints(byte) == (pass == 0) && i-- == 0)
                return (uint8_t)byte;
    return 0;
}

uint32_t pc__byte_letter(uint8_t byte)
{
    uint32_t letter = 256;
    if (prints(byte))
        return byte;
    for (int b = 0; b < byte; b++)
        letter += !prints(b);
    return letter;
}

int pc__letter_byte(uint32_t letter)
{
    if (letter < 256)
        return prints((int)letter) ? (int)letter : -1;
    return letter < 256 + 68 ? pc__byte_in_order((int)letter - 256 + 188) : -1;
}

/* --- reading --- */

/* The bytes that a word of the files stands for, in `out`: a letter that stands for none is itself. */
static void take_bytes(const uint8_t *word, size_t n, pc__text *out)
{
    int bytes;
    out->length = 0;
    pc__text_append(out, "", 0);
    for (size_t at = 0; at < n; at += (size_t)bytes) {
        const int byte = pc__letter_byte(pc__letter_at(word, n, at, &bytes));
        const char one = (char)byte;
        pc__text_append(out, byte >= 0 ? &one : (const char *)word + at, byte >= 0 ? 1 : (size_t)bytes);
    }
}

/* "<0xNN>": a byte that is no UTF-8, or 0, which ends texts of C. */
static bool take_stray(const pc__text *key, pc__text *out)
{
    unsigned byte;
    int end = 0;
    if (key->length != 6 || sscanf(key->data, "<0x%2x>%n", &byte, &end) != 1 || end != 6 || (byte > 0 && byte < 0x80))
        return false;
    const char one = (char)byte;
    out->length = 0;
    pc__text_append(out, &one, 1);
    return true;
}

/* A vocabulary as it stands in the file: texts, and their numbers. */
typedef struct vocabulary {
    const char *path;
    pc__token_list texts;
    int32_t *at; /* of number i: its place in texts, -1: none yet */
    int room;
    bool pairs;
} vocabulary;

static pc_status place(vocabulary *v, int64_t number)
{
    if (number > INT32_MAX / 16)
        return pc__fail(PC_ERR_FORMAT, "%s: the vocabulary has a token %lld", v->path, (long long)number);
    if (number >= v->room) {
        const int room = PC__MAX((int)number + 1, 2 * v->room);
        int32_t *moved = pc__realloc(v->at, (size_t)room * sizeof *moved);
        if (!moved)
            return PC_ERR_MEMORY;
        for (int i = v->room; i < room; i++)
            moved[i] = -1;
        v->at = moved, v->room = room;
    }
    if (v->at[number] >= 0)
        return pc__fail(PC_ERR_FORMAT, "%s: two tokens have the number %lld", v->path, (long long)number);
    v->at[number] = v->texts.count - 1;
    return PC_OK;
}

static pc_status take_entry(vocabulary *v, pc__json *in, pc__text *key, pc__text *bytes)
{
    int64_t number;
    if (!pc__json_key(in, key) || !pc__json_whole(in, &number))
        return PC_OK; /* told at the end */
    int length = 0;
    if (v->pairs) {
        take_bytes((const uint8_t *)key->data, key->length, bytes);
    } else if (!take_stray(key, bytes)) {
        bytes->length = 0;
        pc__text_append(bytes, key->data, key->length);
        (void)pc__letter_at((const uint8_t *)key->data, key->length, 0, &length);
        if ((size_t)length != key->length)
            return pc__fail(PC_ERR_FORMAT,
                            "%s: the token \"%.40s\" is no single letter, and there is no merges.txt beside it",
                            v->path, key->data);
    }
    if (bytes->failed)
        return PC_ERR_MEMORY;
    PC__TRY(pc__token_list_add(&v->texts, bytes->data, bytes->length));
    return place(v, number);
}

static pc_status take_vocabulary(vocabulary *v, const uint8_t *file, size_t n)
{
    pc__json in = pc__json_of(file, n);
    pc__text key = {0}, bytes = {0};
    pc_status status = PC_OK;
    for (pc__json_open(&in, '{'); status == PC_OK && pc__json_next(&in, '}');)
        status = take_entry(v, &in, &key, &bytes);
    pc__text_free(&key);
    pc__text_free(&bytes);
    PC__TRY(status);
    if (!pc__json_ended(&in) || !v->texts.count)
        return pc__fail(PC_ERR_FORMAT, "%s is no vocabulary: a JSON object of words and their numbers", v->path);
    for (int i = 0; i < v->texts.count; i++)
        if (i >= v->room || v->at[i] < 0)
            return pc__fail(PC_ERR_FORMAT, "%s: the vocabulary has %d tokens and none with the number %d", v->path,
                            v->texts.count, i);
    return PC_OK;
}

/* The tokens in the order of their numbers. */
static pc_tokenizer *in_order(const vocabulary *v)
{
    pc__token_list list = {0};
    for (int i = 0; i < v->texts.count; i++) {
        const int at = v->at[i];
        const size_t start = at ? v->texts.ends[at - 1] : 0;
        if (pc__token_list_add(&list, v->texts.bytes.data + start, v->texts.ends[at] - start) != PC_OK) {
            pc__token_list_free(&list);
            return NULL;
        }
    }
    return pc__tokenizer_of(&list, v->pairs);
}

typedef struct merge_reader {
    pc_tokenizer *t;
    const char *path;
    pc__words_map tokens; /* by their bytes; the number is the token's */
    pc__text left, right;
} merge_reader;

static pc_status take_merge(merge_reader *r, const uint8_t *line, size_t n, int number)
{
    const uint8_t *space = memchr(line, ' ', n);
    if (!space)
        return pc__fail(PC_ERR_FORMAT, "%s: line %d is no merge of two tokens", r->path, number);
    take_bytes(line, (size_t)(space - line), &r->left);
    take_bytes(space + 1, n - (size_t)(space - line) - 1, &r->right);
    if (r->left.failed || r->right.failed)
        return PC_ERR_MEMORY;
    const int a = pc__words_map_get(&r->tokens, r->left.data, r->left.length);
    const int b = pc__words_map_get(&r->tokens, r->right.data, r->right.length);
    pc__text_append(&r->left, r->right.data, r->right.length);
    const int both = r->left.failed ? -1 : pc__words_map_get(&r->tokens, r->left.data, r->left.length);
    if (a < 0 || b < 0 || both < 0)
        return pc__fail(PC_ERR_FORMAT, "%s: the vocabulary lacks a token of the merge in line %d, \"%.*s\"", r->path,
                        number, (int)PC__MIN(n, 60), (const char *)line);
    return pc__tokenizer_merge(r->t, a, b, both);
}

static pc_status take_merges(merge_reader *r, const uint8_t *file, size_t n)
{
    for (int32_t i = 0; i < r->t->size; i++) {
        const int put =
            pc__words_map_put(&r->tokens, r->t->bytes + r->t->starts[i], r->t->starts[i + 1] - r->t->starts[i]);
        if (put < 0)
            return PC_ERR_MEMORY;
        if (put != i)
            return pc__fail(PC_ERR_FORMAT, "%s: two tokens of its vocabulary stand for the same bytes", r->path);
    }
    int number = 1;
    for (size_t at = 0; at < n; number++) {
        const uint8_t *end = memchr(file + at, '\n', n - at);
        const size_t length = end ? (size_t)(end - file) - at : n - at;
        const size_t bare = length && file[at + length - 1] == '\r' ? length - 1 : length;
        if (bare && !(number == 1 && bare > 8 && memcmp(file + at, "#version", 8) == 0))
            PC__TRY(take_merge(r, file + at, bare, number));
        at += length + 1;
    }
    return PC_OK;
}

static pc_status read_merges(pc_tokenizer *t, const char *path)
{
    uint8_t *file;
    size_t n;
    PC__TRY(pc__file_read(path, &file, &n));
    merge_reader r = {.t = t, .path = path};
    const pc_status status = take_merges(&r, file, n);
    pc__words_map_free(&r.tokens);
    pc__text_free(&r.left);
    pc__text_free(&r.right);
    pc__free(file);
    return status;
}

static pc_tokenizer *read_both(const char *words, const char *merges)
{
    uint8_t *file;
    size_t n;
    if (pc__file_read(words, &file, &n) != PC_OK)
        return NULL;
    vocabulary v = {.path = words, .pairs = merges != NULL};
    pc_tokenizer *t = take_vocabulary(&v, file, n) == PC_OK ? in_order(&v) : NULL;
    pc__free(file);
    pc__token_list_free(&v.texts);
    pc__free(v.at);
    if (t && pc__tokenizer_index(t, words) == PC_OK && (!merges || read_merges(t, merges) == PC_OK))
        return t;
    pc_tokenizer_free(t);
    return NULL;
}

/* The first of these files that is in the folder. */
static bool there(const char *folder, int n, const char *name, const char *other, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%.*s%s", n, folder, name);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, PATH_MAX, "%.*s%s", n, folder, other);
    return access(path, F_OK) == 0;
}

pc_tokenizer *pc_tokenizer_open(const char *path)
{
    PC__NEED_OR(NULL, path);
    char words[PATH_MAX], merges[PATH_MAX];
    struct stat info;
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    const char *name = folder ? NULL : strrchr(path, '/');
    const int n = folder ? (int)strlen(path) : name ? (int)(name + 1 - path) : 0;
    if (strlen(path) + 32 > PATH_MAX)
        return pc__null(PC_ERR_FILE, "cannot read %.64s...: the name is too long", path);
    const bool pairs = folder ? there(path, n, "/merges.txt", "/vocab.bpe", merges)
                              : there(path, n, "merges.txt", "vocab.bpe", merges);
    if (!folder)
        snprintf(words, sizeof words, "%s", path);
    else if (!there(path, n, "/vocab.json", "/encoder.json", words))
        return pc__null(PC_ERR_FILE, "there is no tokenizer in %s: no vocab.json", path);
    return read_both(words, pairs ? merges : NULL);
}

/* --- writing --- */

static void write_token(const pc_tokenizer *t, int32_t token, pc__text *out)
{
    const uint8_t *bytes = t->bytes + t->starts[token];
    const size_t n = t->starts[token + 1] - t->starts[token];
    int length;
    if (t->pairs && token != t->end)
        for (size_t i = 0; i < n; i++)
            pc__utf8_put(out, pc__byte_letter(bytes[i]));
    else if (!t->pairs && n && (!*bytes || pc__letter_at(bytes, n, 0, &length) >= PC__STRAY))
        pc__text_add(out, "<0x%02X>", *bytes);
    else
        pc__text_append(out, (const char *)bytes, n);
}

static pc_status write_words(const pc_tokenizer *t, const char *path)
{
    pc__text out = {0}, word = {0};
    for (int32_t i = 0; i < t->size; i++) {
        word.length = 0;
        write_token(t, i, &word);
        pc__text_add(&out, "%s", i ? ", " : "{");
        if (!word.failed)
            pc__json_string(&out, word.data);
        pc__text_add(&out, ": %d", (int)i);
    }
    pc__text_add(&out, "}\n");
    const pc_status status = out.failed || word.failed ? PC_ERR_MEMORY : pc__file_write(path, out.data, out.length);
    pc__text_free(&out);
    pc__text_free(&word);
    return status;
}

static pc_status write_merges(const pc_tokenizer *t, const char *path)
{
    pc__text out = {0};
    pc__text_add(&out, "#version: 0.2\n");
    for (int i = 0; i < t->merges.count; i++) {
        write_token(t, (int32_t)(t->merges.keys[i] >> 32), &out);
        pc__text_add(&out, " ");
        write_token(t, (int32_t)(uint32_t)t->merges.keys[i], &out);
        pc__text_add(&out, "\n");
    }
    const pc_status status = out.failed ? PC_ERR_MEMORY : pc__file_write(path, out.data, out.length);
    pc__text_free(&out);
    return status;
}

pc_status pc_tokenizer_save(const pc_tokenizer *tokenizer, const char *folder)
{
    PC__NEED(tokenizer);
    PC__NEED(folder);
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/vocab.json", folder) >= (int)sizeof path)
        return pc__fail(PC_ERR_FILE, "cannot write into %.64s...: the name is too long", folder);
    PC__TRY(pc__folder_make(folder));
    PC__TRY(write_words(tokenizer, path));
    snprintf(path, sizeof path, "%s/merges.txt", folder);
    if (!tokenizer->pairs)
        return access(path, F_OK) == 0 && unlink(path) != 0 ? pc__fail(PC_ERR_FILE, "cannot remove %s", path) : PC_OK;
    return write_merges(tokenizer, path);
}

/* only_env.c: PARACORD_ONLY=op=row,op=-row puts rows in front of the others, and does without rows. Who set it asked for
 * lines on standard error. */
#include "cuda/attention/rows.h"
#include "cuda/conv/rows.h"
#include "cuda/matmul/rows.h"

static pc__rows *const tables[] = {&pc__conv_rows[PC__CONV_FORWARD],
                                   &pc__conv_rows[PC__CONV_INPUT],
                                   &pc__conv_rows[PC__CONV_WEIGHTS],
                                   &pc__linear_rows,
                                   &pc__linear_backward_rows,
                                   &pc__matmul_rows,
                                   &pc__attention_rows,
                                   &pc__attention_backward_rows};

enum { WORDS = 400 };

static void add(char words[WORDS], const char *word)
{
    const size_t n = strlen(words);
    snprintf(words + n, WORDS - n, "%s%s", n ? ", " : "", word);
}

static bool is(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

static void tell_ops(const char *word, size_t length)
{
    char words[WORDS] = "";
    for (int t = 0; t < PC__COUNT(tables); t++)
        add(words, tables[t]->op);
    fprintf(stderr, "paracord: PARACORD_ONLY does not know \"%.*s\"; write op=row with an op of these: %s\n",
            (int)length, word, words);
}

static void tell_rows(const pc__rows *rows, const char *word, size_t length)
{
    char words[WORDS] = "";
    for (int i = 0; i < rows->count; i++)
        add(words, rows->row[i].name);
    fprintf(stderr, "paracord: PARACORD_ONLY: %s has no row \"%.*s\" on cuda; its rows are %s\n", rows->op, (int)length,
            word, words);
}

/* "op=row" or "op=-row", in so many characters. */
static void take(const char *word, size_t length)
{
    const char *equals = memchr(word, '=', length), *name = equals ? equals + 1 : word + length;
    const bool without = name < word + length && *name == '-';
    name += without;
    const size_t op = equals ? (size_t)(equals - word) : length, rest = (size_t)(word + length - name);
    pc__rows *rows = NULL;
    for (int t = 0; t < PC__COUNT(tables); t++)
        if (is(tables[t]->op, word, op))
            rows = tables[t];
    if (!rows) {
        tell_ops(word, length);
        return;
    }
    for (int i = 0; i < rows->count; i++)
        if (is(rows->row[i].name, name, rest)) {
            if (without)
                rows->without |= 1u << i;
            else
                rows->only = &rows->row[i];
            return;
        }
    tell_rows(rows, name, rest);
}

void pc__rows_only(const char *said)
{
    static const char between[] = ", ";
    for (said = said ? said + strspn(said, between) : ""; *said; said += strspn(said, between)) {
        const size_t length = strcspn(said, between);
        take(said, length);
        said += length;
    }
}

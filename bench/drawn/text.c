/* text.c: the words of a case's line. */
#include "drawn/drawn.h"

#include <stdlib.h>
#include <string.h>

pc_status words_read(words *w, const char *line)
{
    w->count = 0;
    if (strlen(line) >= sizeof w->line)
        return pc_fail(PC_ERR_ARGUMENT, "a case has %d characters at most, not %zu", LINE_ROOM - 1, strlen(line));
    strcpy(w->line, line);
    char *rest = NULL;
    for (char *word = strtok_r(w->line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        if (w->count == WORDS_MOST)
            return pc_fail(PC_ERR_ARGUMENT, "a case has %d words at most", WORDS_MOST);
        w->word[w->count++] = word;
    }
    return w->count ? PC_OK : pc_fail(PC_ERR_ARGUMENT, "a case needs words: op or net comes first");
}

const char *word_of(const words *w, const char *key)
{
    const size_t n = strlen(key);
    for (int i = 0; i < w->count; i++)
        if (strncmp(w->word[i], key, n) == 0 && w->word[i][n] == '=')
            return w->word[i] + n + 1;
    return NULL;
}

int number_of(const words *w, const char *key, int otherwise)
{
    const char *text = word_of(w, key);
    return text ? (int)strtol(text, NULL, 10) : otherwise;
}

/* TF32 is how float32 is multiplied. */
pc_status dtype_of(const char *name, pc_dtype *dtype)
{
    static const struct {
        const char *name;
        pc_dtype dtype;
    } list[] = {{"f32", PC_F32}, {"tf32", PC_F32}, {"f16", PC_F16}, {"bf16", PC_BF16}, {"f64", PC_F64}};
    for (size_t i = 0; name && i < sizeof list / sizeof *list; i++)
        if (strcmp(name, list[i].name) == 0) {
            *dtype = list[i].dtype;
            return PC_OK;
        }
    return pc_fail(PC_ERR_ARGUMENT, "dtype '%s': there are f32, tf32, f16, bf16 and f64", name ? name : "");
}

pc_status activation_of(const char *name, pc_activation_kind *kind)
{
    static const char *const names[] = {"none", "relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0) {
            *kind = (pc_activation_kind)i;
            return PC_OK;
        }
    return pc_fail(PC_ERR_ARGUMENT, "activation '%s': there are none, relu, sigmoid, tanh, gelu, gelu_tanh and silu",
                   name);
}

pc_shape numbers_between(const char *text, char separator, const char **end)
{
    pc_shape numbers = PC_SHAPE_SCALAR;
    while (*text >= '0' && *text <= '9' && numbers.ndim < PC_MAX_DIMS) {
        char *after;
        numbers.dim[numbers.ndim++] = strtoll(text, &after, 10);
        text = *after == separator ? after + 1 : after;
    }
    if (end)
        *end = text;
    return numbers;
}

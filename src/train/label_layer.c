/* label_layer.c: notes in the name of a layer. */
#include "train/label_layer.h"

#include "train/metrics_line.h"

#include <stdio.h>
#include <stdlib.h>

static const char prefix[] = "prepare.", classes_mark[] = ".classes.", by_mark[] = ".by.", shorter_mark[] = ".shorter-";

static bool plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Append `word` in the letters that names may have; false, and nothing changed, where it does not fit. */
static bool append(char name[PC__KERAS_NAME_MAX], const char *before, const char *word)
{
    char made[4 * PC_CLASS_NAME_MAX];
    size_t used = (size_t)snprintf(made, sizeof made, "%s", before), at = strlen(name);
    for (; *word && used + 4 < sizeof made; word++)
        if (plain(*word))
            made[used++] = *word;
        else
            used += (size_t)snprintf(made + used, 4, "-%02X", (unsigned char)*word);
    if (*word || at + used >= PC__KERAS_NAME_MAX)
        return false;
    memcpy(name + at, made, used);
    name[at + used] = 0;
    return true;
}

/* The numbers as one word, with letters that every locale prints. */
static bool append_numbers(char name[PC__KERAS_NAME_MAX], const pc_preparation *p)
{
    pc__text text = {0};
    pc__json_number(&text, p->rescale);
    for (int i = 0; i < 2 * PC_PREPARATION_CHANNELS; i++) {
        pc__text_add(&text, "_");
        pc__json_number(&text, i < PC_PREPARATION_CHANNELS ? p->mean[i] : p->std[i - PC_PREPARATION_CHANNELS]);
    }
    const bool good = !text.failed && append(name, by_mark, text.data);
    pc__text_free(&text);
    return good;
}

static void print(const pc_preparation *p, bool numbers, const char *const *classes, int count,
                  char name[PC__KERAS_NAME_MAX])
{
    snprintf(name, PC__KERAS_NAME_MAX, "%s%s%s", prefix, p->resize == PC_RESIZE_AREA ? "area" : "nearest",
             p->no_exif ? ".stored" : "");
    if (p->shorter)
        snprintf(name + strlen(name), PC__KERAS_NAME_MAX - strlen(name), "%s%d", shorter_mark, p->shorter);
    if (numbers && !append_numbers(name, p))
        name[0] = 0;
    size_t without = strlen(name);
    for (int i = 0; i < count; i++)
        if (!append(name, i ? "." : classes_mark, classes[i])) {
            name[without] = 0;
            return;
        }
}

void pc__label_layer_print(const pc_preparation *p, const char *const *classes, int count,
                           char name[PC__KERAS_NAME_MAX])
{
    print(p, false, classes, count, name);
}

void pc__label_model_print(const pc_preparation *p, const char *const *classes, int count,
                           char name[PC__KERAS_NAME_MAX])
{
    print(p, true, classes, count, name);
}

bool pc__label_layer_read(const char *name, pc_preparation *p)
{
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *classes = strstr(name, classes_mark), *stored = strstr(name, ".stored"),
               *shorter = strstr(name, shorter_mark);
    p->resize = strncmp(name + sizeof prefix - 1, "area", 4) == 0 ? PC_RESIZE_AREA : PC_RESIZE_NEAREST;
    p->no_exif = stored && (!classes || stored < classes);
    p->shorter = shorter && (!classes || shorter < classes) ? atoi(shorter + sizeof shorter_mark - 1) : 0;
    p->shorter = p->shorter < 0 || p->shorter > PC__MODEL_SIDE_MAX ? 0 : p->shorter;
    return true;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The word at `at` up to the next dot, and where it ends. */
static const char *take(const char *at, char *word, size_t room)
{
    size_t used = 0;
    for (; *at && *at != '.'; at++) {
        char c = *at;
        if (c == '-' && hex(at[1]) >= 0 && hex(at[2]) >= 0) {
            c = (char)(hex(at[1]) * 16 + hex(at[2]));
            at += 2;
        }
        if (used + 1 < room)
            word[used++] = c;
    }
    if (room)
        word[used] = 0;
    return at;
}

int pc__label_layer_classes(const char *name, char (*names)[PC_CLASS_NAME_MAX], int room)
{
    const char *at = strncmp(name, prefix, sizeof prefix - 1) == 0 ? strstr(name, classes_mark) : NULL;
    int count = 0;
    if (!at)
        return 0;
    at += sizeof classes_mark - 2; /* at the dot before the first name */
    while (*at == '.') {
        at = take(at + 1, count < room ? names[count] : NULL, count < room ? sizeof *names : 0);
        count++;
    }
    return count;
}

bool pc__label_model_read(const char *name, pc_preparation *p)
{
    pc_preparation read = *p;
    const char *classes = strstr(name, classes_mark), *by = strstr(name, by_mark);
    if (!pc__label_layer_read(name, &read) || !by || (classes && classes < by))
        return false;
    char numbers[400], *at = numbers;
    double values[1 + 2 * PC_PREPARATION_CHANNELS];
    (void)take(by + sizeof by_mark - 1, numbers, sizeof numbers);
    pc__plain_numbers plainly = pc__plain_numbers_begin();
    bool good = true;
    for (int i = 0; i < PC__COUNT(values) && good; i++) {
        char *end;
        values[i] = strtod(at, &end);
        good = end != at && *end == (i + 1 < PC__COUNT(values) ? '_' : 0);
        at = end + 1;
    }
    pc__plain_numbers_end(plainly);
    if (!good)
        return false;
    read.rescale = values[0];
    memcpy(read.mean, values + 1, sizeof read.mean);
    memcpy(read.std, values + 1 + PC_PREPARATION_CHANNELS, sizeof read.std);
    if (pc__preparation_check(&read) != PC_OK) {
        pc_error_clear();
        return false;
    }
    *p = read;
    return true;
}

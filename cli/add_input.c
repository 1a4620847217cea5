/* add_input.c: numbers from the command line and from .npy files. */
#include "add_input.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <paracord/ops.h>

bool cli_add_is_file(const char *text)
{
    size_t n = strlen(text);
    return n > 4 && strcmp(text + n - 4, ".npy") == 0;
}

pc_tensor *cli_add_file(const cli_command *command, const char *path)
{
    pc_tensor *t = pc_npy_load(path, PC_DEVICE_CPU);
    if (!t) {
        cli_failed(command);
        return NULL;
    }
    pc_dtype dtype = pc_tensor_dtype(t);
    if (dtype == PC_I32 || dtype == PC_I64 || dtype == PC_F32 || dtype == PC_F64)
        return t;
    cli_error(command,
              "%s holds %s; add takes int32, int64, float32 and float64: numpy.save(path, a.astype(\"float32\"))", path,
              pc_dtype_name(dtype));
    pc_tensor_free(t);
    return NULL;
}

/* A number as it was typed. As an integer too where it is one of int64: a double has no more than 53 bits of it. */
typedef struct number {
    double value;
    int64_t whole;       /* where `exact` */
    bool exact, rounded; /* rounded: digits that no double has */
} number;

typedef struct extent {
    bool whole, exact, rounded; /* the first two: all of them; the last: one of them */
    double most;
} extent;

static const double float64_whole = 9007199254740992;

static bool has_digits(const char *text, const char *end, double value)
{
    char digits[330];
    const int n = snprintf(digits, sizeof digits, "%.0f", fabs(value));
    text += strcspn(text, "123456789"); /* behind the sign and zeros */
    return end - text == n && strncmp(text, digits, (size_t)n) == 0;
}

static bool read_number(const char *text, char **end, number *to)
{
    char *end_of_digits;
    errno = 0;
    to->whole = strtoll(text, &end_of_digits, 10);
    const bool fits = errno == 0;
    to->value = strtod(text, end);
    if (*end == text || (**end && **end != ',') || !isfinite(to->value))
        return false;
    const bool small = fabs(to->value) <= float64_whole, digits = *end == end_of_digits;
    to->exact = digits ? fits : small && to->value == rint(to->value);
    to->rounded = digits && !small && !has_digits(text, *end, to->value);
    if (to->exact && !digits) /* 1e3, 2.0 */
        to->whole = (int64_t)to->value;
    return true;
}

/* The numbers of "1,2,3" in `numbers`, which has room for as many as there are commas and one more, or is NULL; how
 * many, or -1. `e` grows to what they are. */
static int64_t read_numbers(const char *text, number *numbers, extent *e)
{
    int64_t n = 0;
    for (const char *at = text;; at++) {
        char *end;
        number one;
        if (!read_number(at, &end, &one))
            return -1;
        e->whole &= one.value == rint(one.value);
        e->exact &= one.exact;
        e->rounded |= one.rounded;
        e->most = fmax(e->most, fabs(one.value));
        if (numbers)
            numbers[n] = one;
        n++;
        at = end;
        if (!*at)
            return n;
    }
}

const char *cli_add_dtype(const cli_command *command, const char *const text[2], pc_dtype beside)
{
    static const double half_int32 = 1073741823, half_int64 = 4611686018427387904, float32_whole = 16777216;
    extent e = {.whole = true, .exact = true};
    for (int i = 0; i < 2; i++)
        if (!cli_add_is_file(text[i]))
            (void)read_numbers(text[i], NULL, &e); /* what is no number is told where it becomes one */
    if (e.exact && e.most <= half_int32)
        return "int32";
    if (e.exact && e.most < half_int64)
        return "int64";
    if (!e.whole || !e.rounded)
        return e.most <= float32_whole && beside != PC_F64 ? "float32" : "float64";
    cli_error(command,
              "%s + %s: the sums may be too great for int64, and float64 rounds such numbers; --dtype float64 takes "
              "them so",
              text[0], text[1]);
    return NULL;
}

static pc_tensor *make(const cli_command *command, const number *numbers, int64_t n, pc_dtype dtype)
{
    const bool whole = dtype == PC_I32 || dtype == PC_I64;
    pc_tensor *t = NULL;
    PC_SCOPE {
        pc_tensor *wide = pc_zeros(PC_SHAPE(n), whole ? PC_I64 : PC_F64, PC_DEVICE_CPU);
        void *to = wide ? pc_data(wide) : NULL;
        for (int64_t i = 0; to && i < n; i++)
            if (whole)
                ((int64_t *)to)[i] = numbers[i].whole;
            else
                ((double *)to)[i] = numbers[i].value;
        t = to ? pc_keep(pc_cast(wide, dtype)) : NULL;
    }
    if (!t)
        cli_failed(command);
    return t;
}

/* What the numbers become; false where they are no int32. */
static bool choose(const char *dtype, const extent *e, pc_dtype *to)
{
    *to = strcmp(dtype, "int32") == 0     ? PC_I32
          : strcmp(dtype, "int64") == 0   ? PC_I64
          : strcmp(dtype, "float32") == 0 ? PC_F32
                                          : PC_F64;
    return *to != PC_I32 || (e->exact && e->most <= 2147483647);
}

pc_tensor *cli_add_text(const cli_command *command, const char *text, const char *dtype)
{
    int64_t room = 1;
    for (const char *c = text; *c; c++)
        room += *c == ',';
    number *numbers = malloc((size_t)room * sizeof *numbers);
    extent e = {.whole = true, .exact = true};
    int64_t n = numbers ? read_numbers(text, numbers, &e) : 0;
    pc_dtype to;
    pc_tensor *t = NULL;
    if (!numbers)
        cli_error(command, "not enough memory for %lld numbers", (long long)room);
    else if (n < 0)
        cli_error(command, "%s: must be numbers with commas between them (1,2,3), or the path of a .npy file", text);
    else if (!choose(dtype, &e, &to))
        cli_error(command, "%s: int32 takes whole numbers up to 2147483647; use --dtype float32 or float64", text);
    else
        t = make(command, numbers, n, to);
    free(numbers);
    return t;
}

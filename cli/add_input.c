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
    bool digits;         /* without a point and an exponent: whoever types so means this number and no other */
} number;

/* The numbers of one side. */
typedef struct side {
    number *numbers;            /* NULL where n is 0 or less */
    int64_t n;                  /* -1: not all of them are numbers, -2: no memory for them */
    bool whole, exact, rounded; /* the first two: all of them; the last: one of them */
    double most;                /* that was typed */
} side;

static const double float64_whole = 9007199254740992;

static bool has_digits(const char *text, const char *end, double value)
{
    char digits[330];
    const int n = snprintf(digits, sizeof digits, "%.0f", fabs(value));
    text += strcspn(text, "123456789"); /* behind the sign and zeros */
    return end - text == n && strncmp(text, digits, (size_t)n) == 0;
}

static bool is_hexadecimal(const char *text)
{
    text += strspn(text, " \t\n\v\f\r");
    text += *text == '-' || *text == '+';
    return text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

static bool read_number(const char *text, char **end, number *to)
{
    char *end_of_digits;
    errno = 0;
    to->whole = strtoll(text, &end_of_digits, is_hexadecimal(text) ? 16 : 10);
    const bool fits = errno == 0;
    to->value = strtod(text, end);
    if (*end == text || (**end && **end != ',') || !isfinite(to->value))
        return false;
    const bool small = fabs(to->value) < float64_whole; /* what is rounded to it was another number, perhaps */
    to->digits = *end == end_of_digits;
    to->exact = to->digits ? fits : small && to->value == rint(to->value);
    to->rounded =
        to->digits && !small &&
        (fits ? fabs(to->value) >= 0x1p63 || (int64_t)to->value != to->whole : !has_digits(text, *end, to->value));
    if (to->exact && !to->digits) /* 1e3, 2.0 */
        to->whole = (int64_t)to->value;
    return true;
}

static void put_number(side *s, number one)
{
    s->whole &= one.value == rint(one.value);
    s->exact &= one.exact;
    s->rounded |= one.rounded;
    s->most = fmax(s->most, fabs(one.value));
    s->numbers[s->n++] = one;
}

/* Those of "1,2,3". */
static side read_side(const char *text)
{
    size_t room = 1;
    for (const char *c = text; *c; c++)
        room += *c == ',';
    side s = {.numbers = malloc(room * sizeof *s.numbers), .whole = true, .exact = true};
    char *end = NULL;
    for (const char *at = text; s.numbers && (at == text || *end); at = end + 1) {
        number one;
        if (!read_number(at, &end, &one)) {
            free(s.numbers);
            s.numbers = NULL;
            s.n = -1;
            return s;
        }
        put_number(&s, one);
    }
    s.n = s.numbers ? s.n : -2;
    return s;
}

/* Those of a file with integers, if it has as many as the other side. */
static side side_of_file(pc_tensor *file, int64_t n)
{
    side s = {.whole = true, .exact = true};
    const void *data = n > 0 && pc_tensor_count(file) == n ? pc_data(file) : NULL;
    s.numbers = data ? malloc((size_t)n * sizeof *s.numbers) : NULL;
    for (int64_t i = 0; s.numbers && i < n; i++) {
        const int64_t whole =
            pc_tensor_dtype(file) == PC_I64 ? ((const int64_t *)data)[i] : (int64_t)((const int32_t *)data)[i];
        put_number(&s, (number){.value = (double)whole, .whole = whole, .exact = true, .digits = true});
    }
    s.most = 0;
    return s;
}

/* Whether int64, or int32, has each sum. What has no partner is told where the shapes are compared. */
static bool sums_fit(const side *a, const side *b, bool int32)
{
    int64_t sum;
    bool fit = true;
    for (int64_t i = 0; i < a->n && i < b->n; i++)
        fit = fit && !__builtin_add_overflow(a->numbers[i].whole, b->numbers[i].whole, &sum) &&
              (!int32 || sum == (int32_t)sum);
    return fit;
}

/* Whether float64 rounds a sum of two integers, or one of them. */
static bool sums_are_rounded(const side *a, const side *b)
{
    bool rounded = a->rounded || b->rounded;
    for (int64_t i = 0; i < a->n && i < b->n; i++) {
        const double x = a->numbers[i].value, y = b->numbers[i].value, sum = x + y, part = sum - x;
        if (a->numbers[i].digits && b->numbers[i].digits) /* Knuth's TwoSum: what the sum lacks */
            rounded = rounded || (x - (sum - part)) + (y - part) != 0;
    }
    return rounded;
}

/* NULL: none has the numbers and their sums. */
static const char *type_of_sums(const side *a, const side *b, const pc_tensor *beside)
{
    static const double half_int32 = 1073741823, float32_whole = 16777216;
    const pc_dtype file = beside ? pc_tensor_dtype(beside) : PC_I32;
    const bool real = file == PC_F32 || file == PC_F64; /* so are the sums, whatever is typed */
    const double most = fmax(a->most, b->most);
    if (a->exact && b->exact && (real || sums_fit(a, b, false)))
        return most <= half_int32 && (file != PC_I32 || sums_fit(a, b, true)) ? "int32" : "int64";
    if (real || !a->whole || !b->whole || (!beside && !sums_are_rounded(a, b)))
        return most <= float32_whole && file != PC_F64 ? "float32" : "float64";
    return NULL;
}

const char *cli_add_dtype(const cli_command *command, const char *const text[2], pc_tensor *const files[2])
{
    side sides[2];
    for (int i = 0; i < 2; i++)
        sides[i] = files[i] ? (side){.whole = true, .exact = true} : read_side(text[i]);
    pc_tensor *beside = files[0] ? files[0] : files[1];
    const pc_dtype dtype = beside ? pc_tensor_dtype(beside) : PC_F32;
    const bool read = sides[0].n >= 0 && sides[1].n >= 0;
    if (read && (dtype == PC_I32 || dtype == PC_I64))
        sides[!files[0]] = side_of_file(beside, sides[!!files[0]].n);
    const char *name = read ? type_of_sums(&sides[0], &sides[1], beside)
                            : "float64"; /* what is no number is told where it becomes one */
    if (!name)
        cli_error(
            command,
            "%s + %s: the sums may be too great for int64, and float64 rounds such numbers; --dtype float64 takes "
            "them so, --dtype int64 lets sums go round",
            text[0], text[1]);
    free(sides[0].numbers);
    free(sides[1].numbers);
    return name;
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

static pc_dtype dtype_of(const char *name)
{
    return strcmp(name, "int32") == 0     ? PC_I32
           : strcmp(name, "int64") == 0   ? PC_I64
           : strcmp(name, "float32") == 0 ? PC_F32
                                          : PC_F64;
}

pc_tensor *cli_add_text(const cli_command *command, const char *text, const char *dtype)
{
    side s = read_side(text);
    const pc_dtype to = dtype_of(dtype);
    pc_tensor *t = NULL;
    if (s.n == -2)
        cli_error(command, "not enough memory for the numbers %s", text);
    else if (s.n < 0)
        cli_error(command, "%s: must be numbers with commas between them (1,2,3), or the path of a .npy file", text);
    else if (to == PC_I32 && (!s.exact || s.most > 2147483647))
        cli_error(command, "%s: int32 takes whole numbers up to 2147483647; use --dtype int64, float32 or float64",
                  text);
    else if (to == PC_I64 && !s.exact)
        cli_error(command,
                  "%s: int64 takes whole numbers up to 9223372036854775807, from 9007199254740992 on without point and "
                  "exponent; use --dtype float32 or float64",
                  text);
    else
        t = make(command, s.numbers, s.n, to);
    free(s.numbers);
    return t;
}

/* add_input.c: numbers from the command line and from .npy files. */
#include "add_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <paracord/ops.h>

static bool is_file(const char *text)
{
    size_t n = strlen(text);
    return n > 4 && strcmp(text + n - 4, ".npy") == 0;
}

static pc_tensor *from_file(const cli_command *command, const char *path)
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

typedef struct extent {
    bool whole;
    double most;
} extent;

/* The numbers of "1,2,3" in `values`, which has room for as many as there are commas and one more, or is NULL; how many, or -1.
 * `e` grows to what they are. */
static int64_t read_numbers(const char *text, double *values, extent *e)
{
    int64_t n = 0;
    for (const char *at = text;; at++) {
        char *end;
        double value = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(value))
            return -1;
        e->whole &= value == rint(value);
        e->most = fmax(e->most, fabs(value));
        if (values)
            values[n] = value;
        n++;
        at = end;
        if (!*at)
            return n;
    }
}

const char *cli_add_dtype(const char *const text[2])
{
    static const double half_int32 = 1073741823, float32_whole = 16777216, float64_whole = 9007199254740992;
    extent e = {.whole = true};
    for (int i = 0; i < 2; i++)
        if (!is_file(text[i]))
            (void)read_numbers(text[i], NULL, &e); /* what is no number is told where it becomes one */
    if (e.whole && e.most <= half_int32)
        return "int32";
    if (e.whole && e.most <= float64_whole)
        return "int64";
    return e.most <= float32_whole ? "float32" : "float64";
}

static pc_tensor *make(const cli_command *command, const double *values, int64_t n, pc_dtype dtype)
{
    pc_tensor *t = NULL;
    PC_SCOPE {
        t = pc_keep(pc_cast(pc_from_data(values, PC_SHAPE(n), PC_F64, PC_DEVICE_CPU), dtype));
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
    return *to != PC_I32 || (e->whole && e->most <= 2147483647);
}

static pc_tensor *from_text(const cli_command *command, const char *text, const char *dtype)
{
    int64_t room = 1;
    for (const char *c = text; *c; c++)
        room += *c == ',';
    double *values = malloc((size_t)room * sizeof *values);
    extent e = {.whole = true};
    int64_t n = values ? read_numbers(text, values, &e) : 0;
    pc_dtype to;
    pc_tensor *t = NULL;
    if (!values)
        cli_error(command, "not enough memory for %lld numbers", (long long)room);
    else if (n < 0)
        cli_error(command, "%s: must be numbers with commas between them (1,2,3), or the path of a .npy file", text);
    else if (!choose(dtype, &e, &to))
        cli_error(command, "%s: int32 takes whole numbers up to 2147483647; use --dtype float32 or float64", text);
    else
        t = make(command, values, n, to);
    free(values);
    return t;
}

pc_tensor *cli_add_input(const cli_command *command, const char *text, const char *dtype)
{
    return is_file(text) ? from_file(command, text) : from_text(command, text, dtype);
}

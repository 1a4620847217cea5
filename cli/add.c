/* add.c: paracord add, c = a + b, the first program of every course. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <paracord/ops.h>

#include "add_input.h"
#include "ladder.h"
#include "program.h"
#include "text.h"

typedef struct add_settings {
    const char *device, *dtype, *out;
    int size;
    bool json, pinned, ladder;
} add_settings;

/* What the program does with numbers of one type: a = 1, 2, ... and b = n + 1, n + 2, ...; the plain loop; printing. */
typedef struct kind {
    const char *name;
    pc_dtype dtype;
    void (*fill)(void *a, void *b, int64_t n);
    void (*plain)(const void *a, const void *b, void *c, int64_t n);
    void (*print)(const void *c, int64_t i, int digits, bool json);
    int digits; /* to print of a number with a fraction */
} kind;

/* JSON has no word for what is no number. */
static void print_real(double x, int digits, bool json)
{
    if (json && !isfinite(x))
        fputs("null", stdout);
    else
        printf("%.*g", digits, x);
}

#define KIND(T, WIDE, PRINT)                                                                                           \
    static void fill_##T(void *a, void *b, int64_t n)                                                                  \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            ((T *)a)[i] = (T)(WIDE)(i + 1);                                                                            \
            ((T *)b)[i] = (T)(WIDE)(n + 1 + i);                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void plain_##T(const void *a, const void *b, void *c, int64_t n)                                            \
    {                                                                                                                  \
        const T *x = a, *y = b;                                                                                        \
        T *z = c;                                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                                                \
            z[i] = (T)((WIDE)x[i] + (WIDE)y[i]); /* int32 goes round, as on the device */                              \
    }                                                                                                                  \
    static void print_##T(const void *c, int64_t i, int digits, bool json)                                             \
    {                                                                                                                  \
        (void)digits, (void)json;                                                                                      \
        PRINT(((const T *)c)[i]);                                                                                      \
    }
#define WHOLE(x) printf("%lld", (long long)(x))
#define REAL(x) print_real((double)(x), digits, json)
KIND(int32_t, uint32_t, WHOLE)
KIND(int64_t, uint64_t, WHOLE)
KIND(float, float, REAL)
KIND(double, double, REAL)

/* In the order in which the wider one takes a narrower one's numbers, as PyTorch promotes them. */
static const kind kinds[] = {{"int32", PC_I32, fill_int32_t, plain_int32_t, print_int32_t, 0},
                             {"int64", PC_I64, fill_int64_t, plain_int64_t, print_int64_t, 0},
                             {"float32", PC_F32, fill_float, plain_float, print_float, 10},
                             {"float64", PC_F64, fill_double, plain_double, print_double, 15}};

static const kind *kind_of(const char *name)
{
    const kind *k = kinds;
    while (strcmp(k->name, name) != 0)
        k++;
    return k;
}

typedef struct addition {
    cli_program p;
    const kind *kind;
    int64_t n;
    pc_tensor *given[2]; /* the user's arrays, or NULL */
    pc_tensor *host[3];  /* a, b, c */
    pc_tensor *a, *b, *c;
} addition;

static bool add(void *context)
{
    addition *s = context;
    pc_tensor_free(s->c);
    s->c = pc_add(s->a, s->b);
    return s->c != NULL;
}

static bool add_on_the_host(void *context)
{
    addition *s = context;
    pc_tensor *c = pc_add(s->host[0], s->host[1]);
    pc_tensor_free(c);
    return c != NULL;
}

/* Files first: their type has a say in what typed numbers become. */
static bool read_given(addition *s, const cli_call *call, const char *dtype)
{
    const char *const *text = call->line->values;
    for (int i = 0; i < 2; i++)
        if (cli_add_is_file(text[i]) && !(s->given[i] = cli_add_file(call->command, text[i])))
            return false;
    if (!dtype && !(dtype = cli_add_dtype(call->command, text, s->given)))
        return false;
    for (int i = 0; i < 2; i++)
        if (!s->given[i] && !(s->given[i] = cli_add_text(call->command, text[i], dtype)))
            return false;
    return true;
}

/* The user's arrays: one shape, and the type that takes both. False: an error, told. */
static bool take_given(addition *s, const cli_call *call, const char *dtype)
{
    const char *const *text = call->line->values;
    if (call->line->count != 2) {
        cli_error(call->command, "%s: one array is missing; give two, or none", text[0]);
        return false;
    }
    if (!read_given(s, call, dtype))
        return false;
    pc_shape a = pc_tensor_shape(s->given[0]), b = pc_tensor_shape(s->given[1]);
    if (a.ndim != b.ndim || memcmp(a.dim, b.dim, (size_t)a.ndim * sizeof a.dim[0]) != 0) {
        cli_error(call->command,
                  "%s and %s are of different shapes: %lld and %lld elements; add takes arrays of one shape", text[0],
                  text[1], (long long)pc_tensor_count(s->given[0]), (long long)pc_tensor_count(s->given[1]));
        return false;
    }
    s->n = pc_tensor_count(s->given[0]);
    for (s->kind = kinds + sizeof kinds / sizeof kinds[0] - 1; s->kind > kinds; s->kind--)
        if (s->kind->dtype == pc_tensor_dtype(s->given[0]) || s->kind->dtype == pc_tensor_dtype(s->given[1]))
            break;
    return true;
}

static bool fill_given(addition *s)
{
    bool fine = true;
    for (int i = 0; i < 2 && fine; i++)
        PC_SCOPE {
            fine = pc_copy(s->host[i], pc_reshape(s->given[i], PC_SHAPE(s->n))) == PC_OK;
        }
    return fine;
}

static bool prepare(addition *s, bool pinned)
{
    for (int i = 0; i < 3; i++) {
        s->host[i] = cli_program_host(&s->p, PC_SHAPE(s->n), s->kind->dtype, pinned);
        if (!s->host[i])
            return false;
    }
    if (s->given[0])
        return fill_given(s);
    void *a = pc_map(s->host[0], PC_MAP_WRITE), *b = pc_map(s->host[1], PC_MAP_WRITE);
    if (!a || !b)
        return false;
    s->kind->fill(a, b, s->n);
    return pc_unmap(s->host[0]) == PC_OK && pc_unmap(s->host[1]) == PC_OK;
}

/* Device memory for all three: c's goes back to the cache, where the sum finds it. */
static bool make_room(addition *s)
{
    s->a = cli_program_room(&s->p, s->host[0]);
    s->b = cli_program_room(&s->p, s->host[1]);
    pc_tensor *c = cli_program_room(&s->p, s->host[2]);
    pc_tensor_free(c);
    return s->a && s->b && c;
}

static bool work(addition *s, bool pinned)
{
    return prepare(s, pinned) && make_room(s) && cli_program_copy(&s->p, s->a, s->host[0]) &&
           cli_program_copy(&s->p, s->b, s->host[1]) && cli_program_first(&s->p, add, s) &&
           (s->p.local || cli_program_copy(&s->p, s->host[2], s->c)) &&
           cli_program_steady(s->p.device, add, s, &s->p.compute) &&
           (s->p.local || cli_program_steady(PC_DEVICE_CPU, add_on_the_host, s, &s->p.cpu));
}

/* The plain loop, and how many elements are not its: -1 when that could not be found out. */
static int64_t check(addition *s)
{
    const size_t size = pc_dtype_size(s->kind->dtype);
    pc_tensor *plain = pc_zeros(PC_SHAPE(s->n), s->kind->dtype, PC_DEVICE_CPU), *mine = s->p.local ? s->c : s->host[2];
    const void *a = pc_data(s->host[0]), *b = pc_data(s->host[1]);
    const char *got = pc_data(mine);
    char *want = plain ? pc_data(plain) : NULL;
    if (!a || !b || !got || !want)
        return -1;
    const double start = cli_now();
    s->kind->plain(a, b, want, s->n);
    s->p.plain = cli_now() - start;
    const bool equal = memcmp(got, want, (size_t)s->n * size) == 0;
    int64_t wrong = 0;
    for (int64_t i = 0; i < s->n && !equal; i++)
        wrong += memcmp(got + (size_t)i * size, want + (size_t)i * size, size) != 0;
    pc_tensor_free(plain);
    return wrong;
}

enum { SHOWN = 6, SHOWN_OF_GIVEN = 32 };

static void print_sums(const addition *s, bool json)
{
    const void *values = pc_data(s->p.local ? s->c : s->host[2]);
    const bool all = s->n <= (s->given[0] ? SHOWN_OF_GIVEN : SHOWN);
    for (int64_t i = 0; values && i < s->n; i++) {
        if (i == SHOWN / 2 && !all) { /* the first and the last */
            if (!json)
                puts("...");
            i = s->n - SHOWN / 2;
        }
        if (json)
            fputs(i ? ", " : "", stdout);
        else
            printf("c[%lld]=", (long long)i);
        s->kind->print(values, i, json ? 17 : s->kind->digits, json);
        if (!json)
            putchar('\n');
    }
}

static int report(addition *s)
{
    char n[32];
    const int64_t wrong = check(s);
    if (wrong < 0)
        return cli_failed(s->p.command);
    if (s->p.json) {
        printf("{\"program\": \"add\", \"size\": %lld, \"dtype\": \"%s\", \"ends\": [", (long long)s->n, s->kind->name);
        print_sums(s, true);
        printf("], \"wrong\": %lld, ", (long long)wrong);
        cli_program_report(&s->p);
        puts("}");
    } else {
        print_sums(s, false);
        printf("%s element%s of %s, all compared with a plain loop: %s\n\n", cli_thousands(s->n, n),
               s->n == 1 ? "" : "s", s->kind->name, wrong ? "WRONG" : "equal");
        cli_program_report(&s->p);
    }
    return cli_program_verdict(&s->p, wrong, s->n);
}

/* The sums as a .npy file, in the shape of the arrays that were given. */
static bool save(const addition *s, const char *path)
{
    bool fine = false;
    PC_SCOPE {
        pc_tensor *sums = s->p.local ? s->c : s->host[2];
        pc_shape shape = s->given[0] ? pc_tensor_shape(s->given[0]) : PC_SHAPE(s->n);
        sums = pc_reshape(sums, shape);
        fine = sums && pc_npy_save(sums, path) == PC_OK;
    }
    return fine;
}

static int add_arrays(addition *s, const add_settings *settings)
{
    const double bytes = (double)s->n * (double)pc_dtype_size(s->kind->dtype);
    s->p.work = 3 * bytes;
    s->p.unit = "B";
    if (!cli_program_fits(&s->p, 5 * bytes, "take a smaller --size"))
        return CLI_FAILED;
    if (!work(s, settings->pinned) || (settings->out && !save(s, settings->out)))
        return cli_failed(s->p.command);
    return report(s);
}

static int run(const cli_call *call)
{
    const add_settings *settings = call->settings;
    const bool given = call->line->count > 0;
    addition s = {.kind = kind_of(settings->dtype ? settings->dtype : "int32"), .n = settings->size};
    if (!cli_program_open(&s.p, call, settings->device, settings->json))
        return CLI_FAILED;
    if (settings->ladder)
        return cli_ladder_add(&s.p, settings->size);
    const bool ready = !given || take_given(&s, call, settings->dtype);
    const int status = ready ? add_arrays(&s, settings) : CLI_FAILED;
    for (int i = 0; i < 3; i++)
        pc_tensor_free(s.host[i]);
    for (int i = 0; i < 2; i++)
        pc_tensor_free(s.given[i]);
    pc_tensor_free(s.a);
    pc_tensor_free(s.b);
    pc_tensor_free(s.c);
    return status;
}

#define AT(member) offsetof(add_settings, member)

static const cli_choice dtypes[] = {{"int32", NULL}, {"int64", NULL}, {"float32", NULL}, {"float64", NULL}, {0}};

static const cli_option options[] = {
    {"size", 's', CLI_INT, AT(size), "6", "N",
     .help = "Elements of each array; --ladder takes a fitting number for 6 or fewer", .min = 0, .max = 2147483647},
    {"dtype", 't', CLI_CHOICE, AT(dtype), NULL, "TYPE",
     .help = "What the elements are; otherwise int32, of .npy files their own, of numbers with a fraction float32 "
             "(beside a file of float64 that), of great ones int64 and float64",
     .choices = dtypes},
    {"out", 'o', CLI_PATH, AT(out), NULL, "FILE", .help = "Write the sums as a .npy file"},
    {"ladder", 0, CLI_FLAG, AT(ladder), NULL, NULL,
     .help = "Climb from the simplest kernel to the library's, a rung at a time, in float32"},
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = CLI_DEVICE_HELP, .choices = cli_program_devices,
     .group = "Running"},
    {"pinned", 0, CLI_FLAG, AT(pinned), NULL, NULL, .help = CLI_PINNED_HELP},
    {"json", 0, CLI_FLAG, AT(json), NULL, NULL, .help = "Print JSON, for programs"},
    {0},
};

static const cli_argument arguments[] = {
    {"A", "Numbers (1,2,3) or a .npy file, instead of 1, 2, 3, ...", 0, 1, .complete = CLI_FILES},
    {"B", "As many more", 0, 1, .complete = CLI_FILES},
    {0},
};

static const cli_example examples[] = {
    {"paracord add", "Six sums, and what it took to get them"},
    {"paracord add 1,2,3 10,20,30", "Sums of your own numbers"},
    {"paracord add a.npy b.npy --out c.npy --device cuda", "Of NumPy's arrays"},
    {"paracord add --size 100000000 --device cuda", "So many that a GPU is worth its copies, or not"},
    {"paracord add --ladder", "How an addition becomes as fast as memory"},
    {0},
};

const cli_command cli_add = {
    .name = "add",
    .summary = "Add two arrays, and see where the time goes",
    .description = "Adds a = 1, 2, 3, ... and b = N + 1, N + 2, ..., or two arrays of yours, on any device, compares "
                   "every sum with a plain "
                   "loop, and prints how long it took to make room, copy in, compute (the first call apart from "
                   "later ones) and copy out; and how much faster than a plain loop and than the CPU's cores that is, "
                   "counting the computing only, and with the copies.",
    .group = "First programs on a GPU",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(add_settings),
    .run = run,
};

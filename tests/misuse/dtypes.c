/* dtypes.c: the functions of tensors where nothing is wrong, with every dtype: what they take, what they give, whether that
 * has a gradient, and which ops they queue. `dtypes --print NAME...` prints a line for each; without arguments the lines of
 * golden/dtypes.txt are compared, on the device of PARACORD_TEST_DEVICE. docs/ops.md is made of them (house/ops). */
#include "autograd/tape.h"
#include "tensor/tensor.h"

#include "nonsense.h"
#include "sane.h"

#include <paracord/trace.h>

static struct {
    bool ok;
    pc_dtype dtype; /* of what was given back */
    bool gradient;  /* it requires one, and a backward pass has been through */
    const char *view;
} answer;

#define BEGIN() pc_trace_mark("call")

static void go_back(const pc_tensor *t)
{
    pc_tensor *y = (pc_tensor *)t, *ones = pc_ones(pc_tensor_shape(y), pc_tensor_dtype(y), pc_tensor_device(y));
    pc_trace_mark("gradient");
    answer.gradient = pc_backward_with(y, ones) == PC_OK;
}

static void end_object(const void *object)
{
    pc_trace_mark("end");
    const pc_tensor *t = object;
    answer.ok = t && !pc_failed() && pc_device_synchronize(pc_tensor_device(t)) == PC_OK;
    answer.dtype = pc_tensor_dtype(t);
    answer.view = answer.ok && t->node ? t->node->op->name : "";
    if (answer.ok && given.learns && pc_requires_grad(t) && !pc_is_leaf(t))
        go_back(t);
    pc_trace_mark("end");
}

static void end_status(pc_status status)
{
    pc_trace_mark("end");
    answer.ok = status == PC_OK && pc_device_synchronize(test_device()) == PC_OK;
    answer.dtype = given.dtype;
    pc_trace_mark("end");
}

static void end(void)
{
}

#include "misuse_calls.h"

static const struct place *find(const char *function)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i].at == SANE && strcmp(places[i].function, function) == 0)
            return &places[i];
    return NULL;
}

static void call(const struct place *place, pc_dtype dtype, bool learns)
{
    given.dtype = dtype, given.any = true, given.learns = learns;
    memset(&answer, 0, sizeof answer);
    pc_error_clear();
    PC_SCOPE {
        place->call(SANE, 0);
    }
    pc_error_clear();
    (void)!pc_device_synchronize(test_device());
    pc_error_clear();
}

/* --- which ops: by a timeline of one call --- */

/* Sorted: in which order the arguments of a call are made is the compiler's choice. */
typedef struct names {
    char list[32][48];
    int count;
} names;

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void add(names *n, const char *name, size_t length)
{
    char word[sizeof *n->list];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->list[i], word) == 0)
            return;
    if (n->count < 32)
        memcpy(n->list[n->count++], word, sizeof word);
    qsort(n->list, (size_t)n->count, sizeof *n->list, by_name);
}

static size_t print_names(char *to, size_t room, const names *n)
{
    size_t length = (size_t)snprintf(to, room, " |");
    for (int i = 0; i < n->count; i++)
        length += (size_t)snprintf(to + length, room - length, " %s", n->list[i]);
    return length;
}

static void read_ops(const char *path, names *forward, names *backward)
{
    char line[1024];
    names *into = NULL;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *name = strstr(line, "\"name\":\"");
        if (!name)
            continue;
        name += strlen("\"name\":\"");
        const size_t n = strcspn(name, "\"");
        if (strstr(line, "\"cat\":\"mark\""))
            into = n == 4 ? forward : n == 8 ? backward : NULL;
        else if (into && strstr(line, "\"cat\":\"op\""))
            add(into, name, n);
    }
    if (file)
        fclose(file);
}

/* Of a call on the CPU, where ops are done, and so noted, in their order. */
static void ops_of(const struct place *place, pc_dtype dtype, bool learns, names *forward, names *backward)
{
    char path[] = "/tmp/paracord-dtypes-XXXXXX";
    const int file = mkstemp(path);
    if (file < 0 || pc_trace_start(path) != PC_OK)
        return;
    call(place, dtype, learns);
    if (!forward->count && answer.view && answer.view[0])
        add(forward, answer.view, strlen(answer.view));
    if (pc_trace_stop() == PC_OK)
        read_ops(path, forward, backward);
    close(file);
    unlink(path);
}

/* --- the lines: NAME | DTYPES | GRADIENT, on any device, | OPS | OPS OF THE GRADIENT --- */

static void tell(const char *function, char *line, size_t room, bool with_ops)
{
    const struct place *place = find(function);
    size_t n = (size_t)snprintf(line, room, "%s |", function);
    if (!place) {
        snprintf(line + n, room - n, " has no call");
        return;
    }
    pc_dtype taken = PC_DTYPE_COUNT;
    for (pc_dtype dtype = 0; dtype < PC_DTYPE_COUNT; dtype++) {
        call(place, dtype, false);
        if (!answer.ok)
            continue;
        taken = dtype;
        n += (size_t)snprintf(line + n, room - n, " %s", pc_dtype_name(dtype));
        if (answer.dtype != dtype)
            n += (size_t)snprintf(line + n, room - n, ">%s", pc_dtype_name(answer.dtype));
    }
    call(place, PC_F64, true);
    const bool gradient = answer.gradient;
    n += (size_t)snprintf(line + n, room - n, " | %s", gradient ? "yes" : "no");
    if (!with_ops || taken == PC_DTYPE_COUNT)
        return;
    names forward = {.count = 0}, backward = {.count = 0};
    ops_of(place, taken, gradient, &forward, &backward);
    n += print_names(line + n, room - n, &forward);
    print_names(line + n, room - n, &backward);
}

static int print(int count, char **functions)
{
    char line[2048];
    for (int i = 0; i < count; i++) {
        tell(functions[i], line, sizeof line, true);
        printf("%s\n", line);
    }
    return 0;
}

static int compare(void)
{
    char want[2048], got[2048];
    int lines = 0, other = 0;
    FILE *file = fopen(PC_TEST_GOLDEN "/dtypes.txt", "r");
    while (file && fgets(want, sizeof want, file)) {
        want[strcspn(want, "\n")] = 0;
        char name[128] = "";
        snprintf(name, sizeof name, "%.*s", (int)strcspn(want, " "), want);
        const bool on_the_cpu = test_device().type == PC_CPU;
        tell(name, got, sizeof got, on_the_cpu);
        const size_t n = on_the_cpu ? sizeof want : strlen(got);
        lines++;
        if (strncmp(got, want, n) == 0)
            continue;
        other++;
        fprintf(stderr, "want %s\ngot  %s\n", want, got);
    }
    if (file)
        fclose(file);
    if (other)
        fprintf(stderr, "tools/ops --write with this program writes golden/dtypes.txt and docs/ops.md anew\n");
    printf("%d functions, of which %d are otherwise\n", lines, other);
    return lines < 150 || other;
}

/* What the calls are given is left behind: _exit leaves it unlooked at. */
int main(int argc, char **argv)
{
    const bool prints = argc > 1 && strcmp(argv[1], "--print") == 0;
    pc_threads_set(1);
    const int status = prints ? print(argc - 2, argv + 2) : compare();
    fflush(NULL);
    _exit(status);
}

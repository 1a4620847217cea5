/* levels.c: open copies of the library, each for itself, as Python does, and print of each which SIMD level it runs and
 * why no wider one; then the files of levels that the process has open. Without arguments: the widest level of the
 * processor. */
#include <dlfcn.h>
#include <errno.h>
#include <paracord.h>
#include <string.h>

/* A function of the opened library, by the name of one of the headers. */
#define OF(library, name) ((__typeof__(&name))dlsym(library, #name))

static const char *widest(void)
{
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512cd");
    return v4 ? "v4" : v3 ? "v3" : "base";
}

static void log_line(void *context, pc_log_level level, const char *line)
{
    (void)context, (void)level;
    printf("log %s\n", line);
}

/* The sum of a product of ones, which is right at any level. */
static bool computes(void *library)
{
    pc_tensor *a = OF(library, pc_ones)((pc_shape){2, {64, 64}}, PC_F32, PC_DEVICE_CPU);
    pc_tensor *b = OF(library, pc_matmul)(a, a), *sum = OF(library, pc_sum)(b);
    const double got = OF(library, pc_item)(sum);
    OF(library, pc_tensor_free)(sum);
    OF(library, pc_tensor_free)(b);
    OF(library, pc_tensor_free)(a);
    return got == 64.0 * 64 * 64;
}

/* What goes wrong in a kernel is told by its place in the program, from whatever file the kernel is. */
static bool has_a_place(void *library)
{
    pc_tensor *x = OF(library, pc_ones)((pc_shape){1, {4}}, PC_F32, PC_DEVICE_CPU);
    pc_tensor *index = OF(library, pc_full)((pc_shape){1, {2}}, 9, PC_I64, PC_DEVICE_CPU);
    pc_tensor *none = OF(library, pc_index_select)(x, 0, index);
    const char *place = OF(library, pc_error_place)();
    const bool fine = !none && strstr(place, "has_a_place");
    if (!fine)
        printf("the place of an error in a kernel is \"%s\"\n", place);
    OF(library, pc_error_clear)();
    OF(library, pc_tensor_free)(index);
    OF(library, pc_tensor_free)(x);
    return fine;
}

static bool tell(const char *path)
{
    char why[512];
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), false;
    OF(library, pc_log_set)(log_line, NULL, PC_LOG_WARNING);
    errno = 42;
    const char *level = OF(library, pc_cpu_level)();
    const bool quiet = errno == 42 && !OF(library, pc_failed)();
    printf("level %s %s\n", level, OF(library, pc_cpu_level_why)(why, sizeof why));
    if (!quiet)
        printf("choosing a level leaves errno or an error behind\n");
    return quiet && computes(library) && has_a_place(library);
}

int main(int argc, char **argv)
{
    char line[4096], last[4096] = "";
    if (argc == 1)
        return printf("%s\n", widest()) < 0;
    for (int i = 1; i < argc; i++)
        if (!tell(argv[i]))
            return 1;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        const char *name = strstr(line, "libparacord-cpu-");
        if (name && strcmp(name, last))
            printf("open %s", strcpy(last, name));
    }
    return maps ? fclose(maps) : 1;
}

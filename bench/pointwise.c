/* pointwise: element-by-element ops, dense, broadcast and transposed, and softmax by rows.
 * Usage: pointwise [device, cpu unless given] [rows of 1024, 1024 unless given] [dtype: float32 or bfloat16]
 * One JSON line an op: microseconds of a call, the median of several goes of ten. bench/peers/pointwise.py runs it
 * beside PyTorch.
 */
#include <paracord.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GOES = 21, CALLS = 10 };

static pc_tensor *x, *y, *turned, *positive;

static pc_tensor *add(void)
{
    return pc_add(x, y);
}

static pc_tensor *add_row(void)
{
    return pc_add(y, pc_slice(x, 0, 0, 1, 1));
}

static pc_tensor *add_transposed(void)
{
    return pc_add(y, pc_transpose(turned, 0, 1));
}

static pc_tensor *exp_transposed(void)
{
    return pc_exp(pc_transpose(x, 0, 1));
}

static pc_tensor *mul_scalar(void)
{
    return pc_mul_scalar(x, 2);
}

static pc_tensor *logarithm(void)
{
    return pc_log(positive);
}

static pc_tensor *softmax(void)
{
    return pc_softmax(x, 1);
}

#define OF_X(name)                                                                                                     \
    static pc_tensor *name##_of_x(void)                                                                                \
    {                                                                                                                  \
        return pc_##name(x);                                                                                           \
    }
OF_X(exp)
OF_X(tanh)
OF_X(sigmoid)
OF_X(erf)
OF_X(gelu)
OF_X(gelu_tanh)
OF_X(silu)

static const struct {
    const char *name;
    pc_tensor *(*call)(void);
} ops[] = {{"add", add},
           {"mul_scalar", mul_scalar},
           {"add_row", add_row},
           {"add_transposed", add_transposed},
           {"exp", exp_of_x},
           {"exp_transposed", exp_transposed},
           {"log", logarithm},
           {"tanh", tanh_of_x},
           {"sigmoid", sigmoid_of_x},
           {"erf", erf_of_x},
           {"gelu", gelu_of_x},
           {"gelu_tanh", gelu_tanh_of_x},
           {"silu", silu_of_x},
           {"softmax", softmax}};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

static double seconds(pc_device device, pc_tensor *(*call)(void))
{
    double times[GOES];
    for (int i = -2; i < GOES; i++) {
        const double start = pc_device_synchronize(device) == PC_OK ? now() : 0;
        for (int k = 0; k < CALLS; k++)
            PC_SCOPE {
                (void)!call();
            }
        const double end = pc_device_synchronize(device) == PC_OK ? now() : 0;
        if (i >= 0)
            times[i] = (end - start) / CALLS;
    }
    qsort(times, GOES, sizeof *times, compare);
    return times[GOES / 2];
}

int main(int argc, char **argv)
{
    const pc_device device = pc_device_pick(argc > 1 ? argv[1] : "cpu");
    const int64_t rows = argc > 2 ? atoll(argv[2]) : 1024;
    const pc_dtype dtype = argc > 3 && strcmp(argv[3], "bfloat16") == 0 ? PC_BF16 : PC_F32;
    PC_SCOPE {
        x = pc_cast(pc_randn(PC_SHAPE(rows, 1024), PC_F32, device), dtype);
        y = pc_cast(pc_randn(PC_SHAPE(rows, 1024), PC_F32, device), dtype);
        turned = pc_cast(pc_randn(PC_SHAPE(1024, rows), PC_F32, device), dtype);
        positive = pc_exp(x);
        for (size_t i = 0; i < sizeof ops / sizeof *ops && !pc_failed(); i++)
            printf("{\"bench\": \"pointwise.%s.%s\", \"value\": %.6g, \"unit\": \"us\"}\n", ops[i].name,
                   pc_dtype_name(dtype), 1e6 * seconds(device, ops[i].call));
    }
    return pc_failed() ? pc_report(stderr) : 0;
}

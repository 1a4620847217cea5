/* device.h: what there is to compute on.
 *
 *     pc_device dev = pc_device_pick("auto");          // cuda:0 where there is one, else cpu
 *     char why[256];
 *     if (!pc_device_count(PC_CUDA, why, sizeof why))
 *         printf("no GPU: %s\n", why);
 *
 * A device is a small value. `cpu` has no number; `cuda:1`, `sim:0` do; `cuda` alone means the current one.
 */
#ifndef PARACORD_DEVICE_H
#define PARACORD_DEVICE_H

#include <paracord/error.h>

PC_BEGIN

typedef enum pc_device_type { PC_CPU, PC_SIM, PC_CUDA, PC_DEVICE_TYPES } pc_device_type;

typedef struct pc_device {
    int16_t type;  /* pc_device_type; -1 for "no such device", which every call refuses with the first error */
    int16_t index; /* 0 for cpu */
} pc_device;

#ifdef __cplusplus
#define PC_DEVICE_CPU (pc_device{PC_CPU, 0})
#else
#define PC_DEVICE_CPU ((pc_device){PC_CPU, 0})
#endif

#define PC_DEVICE_NAME_MAX 16

/* Parse "cpu", "cuda", "cuda:1", "sim:0" or "auto" (the fastest there is) and check that the device is there.
 * PC_ERR_ARGUMENT for other text, PC_ERR_DEVICE when it is not there; both messages name the valid ones. */
PC_API PC_MUST_USE pc_status pc_device_parse(const char *text, pc_device *device);

/* The same as a value: on failure the error is recorded and a device of type -1 comes back, which flows through
 * factories as NULL tensors do through ops. */
PC_API pc_device pc_device_pick(const char *text);

/* The device as text ("cuda:0") in `name`, and `name`. */
PC_API char *pc_device_name(pc_device device, char name[PC_DEVICE_NAME_MAX]);

/* True when both are the same device. */
PC_API bool pc_device_equal(pc_device a, pc_device b);

/* How many devices of a type there are. With 0, the reason is written to why[0..n-1] (why may be NULL with n = 0). */
PC_API int pc_device_count(pc_device_type type, char *why, size_t n);

/* Why there is no device of a type, in why[0..n-1]; "" when there is one. Returns why. */
PC_API char *pc_device_unavailable_reason(pc_device_type type, char *why, size_t n);

/* True when at least one device of the type is there. */
PC_API bool pc_device_available(pc_device_type type);

/* The calling thread's current device: where "cuda" without a number points. Starts as the fastest there is. */
PC_API pc_device pc_device_current(void);
PC_API PC_MUST_USE pc_status pc_device_set_current(pc_device device);

/* The SIMD level of the CPU's kernels: "base", "v3" (AVX2), "v4" (AVX-512); the widest that this machine has, or that
 * the environment variable PARACORD_SIMD asks for. Of the shared library v3 and v4 are files beside it,
 * libparacord-cpu-v3.so and libparacord-cpu-v4.so; where one cannot be opened, it is the next narrower level. Static
 * storage. Any thread; the level is chosen when this is asked or the CPU first computes, and stays. */
PC_API const char *pc_cpu_level(void);

/* Why pc_cpu_level is narrower than this machine or PARACORD_SIMD would have it, in why[0..n-1]: a level's file is
 * missing or does not fit, and what to do; "" where none is. It is logged too (PC_LOG_WARNING), when the level is
 * chosen. Returns why. */
PC_API char *pc_cpu_level_why(char *why, size_t n);

/* How the calling thread's products of float32 (matmul, linear, conv2d) are computed where a device can choose, which
 * is cuda: in float32, which is how threads start; or with their factors rounded to TF32 (10 bits of fraction, relative
 * error some 5e-4) and added in float32, several times as fast. Set returns what it was. A recorded product keeps what
 * it was recorded with. */
typedef enum pc_precision { PC_PRECISION_F32, PC_PRECISION_TF32 } pc_precision;
PC_API pc_precision pc_matmul_precision_set(pc_precision precision);
PC_API pc_precision pc_matmul_precision_get(void);

/* Who does the calling thread's convolutions, attention and matrix products where there is a choice, which is cuda. Set
 * returns what it was. The environment variable PARACORD_CHOICE says own, rule, measured or cudnn for threads that have not set it.
 * Each way gives the same bits every time; one differs from the other in the last ones, and measured convolutions of
 * float32 may go by Fourier's method, which shows a NaN in more places than have it. A recording keeps what it was
 * recorded with; what it is the first to meet is planned, or timed, when it ends. */
typedef enum pc_choice {
    PC_CHOICE_OWN,      /* convolutions and attention by the library's own kernels, products by the rule */
    PC_CHOICE_RULE,     /* a rule of the shape says who is the fastest, cuDNN among them: how threads start */
    PC_CHOICE_MEASURED, /* whoever was the fastest when the shape first came, timed then (for which the host waits), and
                           from then on the same, in later processes too ($XDG_CACHE_HOME/paracord/choices); a
                           16-bit convolution may round in front of its bias then, as PyTorch's do */
    PC_CHOICE_CUDNN     /* convolutions and attention by cuDNN wherever it can, products by the rule */
} pc_choice;
PC_API pc_choice pc_choice_set(pc_choice choice);
PC_API pc_choice pc_choice_get(void);

/* All devices of this machine as text, "cpu, cuda:0, cuda:1", cut at n bytes. Returns text. */
PC_API char *pc_device_list(char *text, size_t n);

PC_END
#endif

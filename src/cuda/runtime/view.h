/* view.h: what kernels see of tensors. Plain C that .cu files include too: they cannot read the library's own headers,
 * whose atomics are C's. */
#ifndef PC__CUDA_VIEW_H
#define PC__CUDA_VIEW_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PC__VIEW_DIMS 8

/* As pc_dtype; a test holds them together. */
enum {
    PC__CUDA_BOOL,
    PC__CUDA_U8,
    PC__CUDA_I32,
    PC__CUDA_I64,
    PC__CUDA_F16,
    PC__CUDA_BF16,
    PC__CUDA_F32,
    PC__CUDA_F64
};

typedef struct pc__view {
    void *data; /* of the first element */
    int dtype, ndim;
    int64_t shape[PC__VIEW_DIMS], strides[PC__VIEW_DIMS]; /* in elements */
    int64_t count;
    int dense; /* C order without gaps */
} pc__view;

/* What a kernel found wrong while it ran: the first one wins (atomicCAS on `kind`); in mapped host memory, one for each
 * piece of work. Reported when its stream is next waited for. */
typedef struct pc__cuda_fault {
    int kind; /* 0: nothing; else one of pc__cuda_fault_kind */
    int pad;
    long long where, value, limit; /* element `where` has `value`, which must be from 0 to limit - 1 */
} pc__cuda_fault;

/* cast.cu: the compute capability, 90 for 9.0, that the code in use on the current device was compiled for; 0: unknown.
 */
int pc__cuda_code_version(void);

enum pc__cuda_fault_kind { PC__FAULT_NONE, PC__FAULT_INDEX, PC__FAULT_LABEL };

#ifdef __cplusplus
}
#endif
#endif

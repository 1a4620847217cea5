/* own.cu: the kernels of ops/registered.h on CUDA, as a program has them: functions of the host that launch kernels into the
 * stream they are given. */
#include <paracord/op.h>

#include <cuda_runtime.h>

namespace
{

enum { BLOCK = 128 };

struct blend_attributes {
    double a, b;
};

template <class T>
__global__ void blend(const T *__restrict__ x, const T *__restrict__ z, T *__restrict__ y, long long n, double a,
                      double b)
{
    const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = static_cast<T>(a * x[i] + b * x[i] * z[i]);
}

__global__ void ends(const double *x, long long row, long long last, double *first, double *end, long long n)
{
    const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
    if (i < n) {
        first[i] = 2 * x[i * row];
        end[i] = 3 * x[i * row + last];
    }
}

__global__ void numbered(float *to, long long n, float from)
{
    const long long i = static_cast<long long>(blockIdx.x) * BLOCK + threadIdx.x;
    if (i < n)
        to[i] = from + static_cast<float>(i);
}

unsigned blocks(int64_t n)
{
    return static_cast<unsigned>((n + BLOCK - 1) / BLOCK);
}

pc_status launched()
{
    return cudaGetLastError() == cudaSuccess ? PC_OK : PC_ERR_BACKEND;
}

} // namespace

extern "C" __attribute__((visibility("default"))) pc_status own_blend(const pc_op_run *run)
{
    const blend_attributes s = *static_cast<const blend_attributes *>(run->attributes);
    const long long n = run->out[0].count;
    const cudaStream_t stream = static_cast<cudaStream_t>(run->stream);
    if (n == 0)
        return PC_OK;
    if (run->out[0].dtype == PC_F32)
        blend<float><<<blocks(n), BLOCK, 0, stream>>>(static_cast<const float *>(run->in[0].data),
                                                      static_cast<const float *>(run->in[1].data),
                                                      static_cast<float *>(run->out[0].data), n, s.a, s.b);
    else
        blend<double><<<blocks(n), BLOCK, 0, stream>>>(static_cast<const double *>(run->in[0].data),
                                                       static_cast<const double *>(run->in[1].data),
                                                       static_cast<double *>(run->out[0].data), n, s.a, s.b);
    return launched();
}

extern "C" __attribute__((visibility("default"))) pc_status own_ends(const pc_op_run *run)
{
    const pc_op_view &x = run->in[0];
    const long long n = x.shape[0];
    const cudaStream_t stream = static_cast<cudaStream_t>(run->stream);
    if (n == 0)
        return PC_OK;
    ends<<<blocks(n), BLOCK, 0, stream>>>(static_cast<const double *>(x.data), x.strides[0],
                                          (x.shape[1] - 1) * x.strides[1], static_cast<double *>(run->out[0].data),
                                          static_cast<double *>(run->out[1].data), n);
    return launched();
}

extern "C" __attribute__((visibility("default"))) pc_status own_numbered(const pc_op_run *run)
{
    const long long n = run->out[0].count;
    const cudaStream_t stream = static_cast<cudaStream_t>(run->stream);
    if (n == 0)
        return PC_OK;
    numbered<<<blocks(n), BLOCK, 0, stream>>>(static_cast<float *>(run->out[0].data), n,
                                              *static_cast<const float *>(run->attributes));
    return launched();
}

/* Channels padded and cut off again (cuda/conv/stage.cu), number by number: rows of every length, few and many of them, and
 * such as do not lie on 16 bytes. */
#include "cuda/conv/stage.h"
#include "cuda/runtime/start.h"

#include <cstdio>
#include <cstring>
#include <vector>

extern "C" cudaError_t pc__cuda_start(const cudaLaunchConfig_t *how, const void *kernel, void **list)
{
    return cudaLaunchKernelExC(how, kernel, list);
}

extern "C" void pc__cuda_started(cudaStream_t)
{
}

namespace
{

template <class T> bool is_right(int from, int to, int rows, int aside)
{
    const size_t in_bytes = sizeof(T) * (size_t)(from * rows + aside), out_bytes = sizeof(T) * (size_t)(to * rows);
    std::vector<T> in((size_t)(from * rows + aside)), out((size_t)(to * rows));
    void *source, *target;
    if (cudaMalloc(&source, in_bytes) != cudaSuccess || cudaMalloc(&target, out_bytes) != cudaSuccess)
        return false;
    for (size_t i = 0; i < in.size(); i++)
        in[i] = static_cast<T>(i + 1);
    cudaMemcpyAsync(source, in.data(), in_bytes, cudaMemcpyHostToDevice, nullptr);
    pc__cuda_conv_rows(nullptr, static_cast<T *>(source) + aside, from, target, to, rows, sizeof(T), 0);
    cudaMemcpyAsync(out.data(), target, out_bytes, cudaMemcpyDeviceToHost, nullptr);
    bool right = cudaGetLastError() == cudaSuccess;
    for (int i = 0; i < rows * to; i++) {
        const int row = i / to, column = i % to;
        right = right && out[(size_t)i] == (column < from ? in[(size_t)(row * from + column + aside)] : T(0));
    }
    cudaFree(source);
    cudaFree(target);
    if (!right)
        printf("wrong: %d rows of %d numbers as %d, %d bytes each, %d aside\n", rows, from, to, (int)sizeof(T), aside);
    return right;
}

} // namespace

int main()
{
    static const int sizes[][3] = {{1, 8, 3},     {7, 8, 100},   {8, 7, 100},    {217, 224, 77}, {224, 217, 77},
                                   {3, 4, 20000}, {4, 3, 20000}, {900, 904, 17}, {904, 900, 17}, {11, 16, 1}};
    bool right = true;
    for (const int(&s)[3] : sizes)
        for (int aside = 0; aside < 2; aside++) {
            right = is_right<uint16_t>(s[0], s[1], s[2], aside) && right;
            right = is_right<uint32_t>(s[0], s[1], s[2], aside) && right;
        }
    return right ? 0 : 1;
}

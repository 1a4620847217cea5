/* language.h: what CUDA C++ has and C++ lacks, for kernels that `translate` wrote: words, indices, launches, and what
 * the threads of a block do together. Functions of numbers are in numbers.h. */
#ifndef PC_EMULATOR_LANGUAGE_H
#define PC_EMULATOR_LANGUAGE_H

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <math.h>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ahead.h"
#include "block.h"
#include "numbers.h"
#include "ptx.h"

/* CUDA's headers, which are written for this compiler too, have defined these. */
#undef __launch_bounds__
#undef __grid_constant__
#undef __shared__
#undef __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static /* blocks run one after the other, on one thread of the CPU at a time */
#define __noinline__ __attribute__((noinline))
#define __CUDA_ARCH__ 900

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

#define __syncthreads emulator::meet_block
#define __syncthreads_or emulator::meet_block_any
#define __cvta_generic_to_shared emulator::shared_address

inline void __threadfence()
{
}
inline void __threadfence_system()
{
}
inline void __syncwarp(unsigned mask = emulator::ALL_LANES)
{
    emulator::meet_warp(mask, nullptr);
}

template <class T> inline T atomicAdd(T *place, std::common_type_t<T> value)
{
    T before = *place;
    *place = before + value;
    return before;
}

inline unsigned atomicInc(unsigned *place, unsigned last)
{
    unsigned before = *place;
    *place = before >= last ? 0 : before + 1;
    return before;
}

template <class T> inline T atomicCAS(T *place, std::common_type_t<T> expected, std::common_type_t<T> value)
{
    T before = *place;
    if (before == expected)
        *place = value;
    return before;
}

template <class T> inline T __ldcg(const T *place)
{
    emulator::note_read(place, sizeof *place);
    return *place;
}

template <class T> inline void __stcg(T *place, T value)
{
    *place = value;
}

namespace emulator
{

template <class T> struct offer {
    T value;
    int from;
};

/* Each lane's offer becomes the value of the lane that it names; of one that is not there, all bits set. */
template <class T> void exchange(slot *slots, unsigned lanes)
{
    offer<T> offers[LANES];
    for (int i = 0; i < LANES; i++)
        memcpy(&offers[i], slots[i].bytes, sizeof offers[i]);
    for (int i = 0; i < LANES; i++)
        if (lanes >> i & 1) {
            memset(slots[i].bytes, 0xff, sizeof(T));
            if (lanes >> offers[i].from & 1)
                memcpy(slots[i].bytes, &offers[offers[i].from].value, sizeof(T));
        }
}

inline void vote(slot *slots, unsigned lanes)
{
    unsigned votes = 0;
    for (int i = 0; i < LANES; i++)
        if (lanes >> i & 1 && slots[i].bytes[0])
            votes |= 1u << i;
    for (slot *s = slots; s < slots + LANES; s++)
        memcpy(s->bytes, &votes, sizeof votes);
}

/* A launch on `queue`: done at once, or kept where it is being captured. */
struct shape {
    dim3 grid, block;
    size_t shared = 0;
    cudaStream_t queue = nullptr;
    bool early = false; /* the kernel may start before the one in front is done */
};
void submit_kernel(const shape &how, std::function<void()> body);

template <class F, class... A> void launch(const shape &how, F kernel, A... arguments)
{
    submit_kernel(how, [=] { kernel(arguments...); });
}

/* A kernel by the addresses of its arguments. */
template <class INDICES, class... P> struct call;
template <size_t... I, class... P> struct call<std::index_sequence<I...>, P...> {
    static void now(void (*kernel)(), void *const *list)
    {
        reinterpret_cast<void (*)(P...)>(kernel)(*static_cast<P *>(list[I])...);
    }
};

/* Arguments, of so many bytes each, are copied: there are hundreds of kernels of types of their own, which share this. */
cudaError_t launch_list(const cudaLaunchConfig_t &how, void (*kernel)(), void (*now)(void (*)(), void *const *),
                        std::initializer_list<size_t> bytes, void *const *list);

template <class... P> cudaError_t launch_as(const cudaLaunchConfig_t &how, void (*kernel)(P...), void *const *list)
{
    return launch_list(how, reinterpret_cast<void (*)()>(kernel), call<std::index_sequence_for<P...>, P...>::now,
                       {sizeof(P)...}, list);
}

template <class T> inline T from_lane(unsigned mask, T value, unsigned lane)
{
    static_assert(sizeof(offer<T>) <= sizeof(slot), "a slot is too small");
    offer<T> mine = {value, lane};
    memcpy(own_slot().bytes, &mine, sizeof mine);
    meet_warp(mask, exchange<T>);
    T theirs;
    memcpy(&theirs, own_slot().bytes, sizeof theirs);
    return theirs;
}

} // namespace emulator

template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int other)
{
    return emulator::from_lane(mask, value, emulator::thread_in_block() % emulator::LANES ^ other);
}

/* Within groups of `width` neighbours. */
template <class T> inline T __shfl_sync(unsigned mask, T value, int lane, int width = emulator::LANES)
{
    const unsigned own = emulator::thread_in_block() % emulator::LANES;
    return emulator::from_lane(mask, value, own / width * width + lane % width);
}

template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned far)
{
    const unsigned own = emulator::thread_in_block() % emulator::LANES;
    return emulator::from_lane(mask, value, own < far ? own : own - far);
}

inline unsigned __ballot_sync(unsigned mask, int mine)
{
    emulator::own_slot().bytes[0] = mine != 0;
    emulator::meet_warp(mask, emulator::vote);
    unsigned votes;
    memcpy(&votes, emulator::own_slot().bytes, sizeof votes);
    return votes;
}

namespace emulator
{
template <class KERNEL> cudaError_t set_attribute(const KERNEL &, cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(static_cast<const void *>(nullptr), attribute, value);
}
} // namespace emulator

/* The runtime's functions of a kernel take any kernel here, of whose machine code there is none. */
#define cudaFuncSetAttribute(...) emulator::set_attribute(__VA_ARGS__)
#define cudaFuncGetAttributes(attributes, ...) cudaFuncGetAttributes(attributes, static_cast<const void *>(nullptr))

#endif

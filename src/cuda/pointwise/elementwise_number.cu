/* elementwise_number.cu: functions of two inputs with a number for one of them. */
#include "cuda/pointwise/elementwise.h"
#include "cuda/shared/functions.cuh"

namespace
{

/* Whole numbers come below zero, too. */
template <class T> T whole(double number)
{
    return static_cast<T>(static_cast<int64_t>(number));
}

template <template <class> class F, class T> void run_with(const pc__cuda_launch *l, int function, pc::math<T> number)
{
    pc::with_number<F, T> f;
    f.number = number;
    f.first = function & PC__NUMBER_FIRST;
    run(l, f);
}

template <template <class> class F> void of_floats(const pc__cuda_launch *l, int function, int dtype, double number)
{
    switch (dtype) {
    case PC__CUDA_F16:
        return run_with<F, pc::f16>(l, function, static_cast<float>(number));
    case PC__CUDA_BF16:
        return run_with<F, pc::bf16>(l, function, static_cast<float>(number));
    case PC__CUDA_F32:
        return run_with<F, float>(l, function, static_cast<float>(number));
    default:
        return run_with<F, double>(l, function, number);
    }
}

template <template <class> class F, class I32, class I64>
void of_integers_as(const pc__cuda_launch *l, int function, int dtype, double number)
{
    switch (dtype) {
    case PC__CUDA_U8:
        return run_with<F, uint8_t>(l, function, whole<uint8_t>(number));
    case PC__CUDA_I32:
        return run_with<F, I32>(l, function, whole<I32>(number));
    default:
        return run_with<F, I64>(l, function, whole<I64>(number));
    }
}

template <template <class> class F> void of_integers(const pc__cuda_launch *l, int function, int dtype, double number)
{
    of_integers_as<F, uint32_t, uint64_t>(l, function, dtype, number);
}

bool is_integer(int dtype)
{
    return dtype == PC__CUDA_U8 || dtype == PC__CUDA_I32 || dtype == PC__CUDA_I64;
}

template <template <class> class F> void of_numbers(const pc__cuda_launch *l, int function, int dtype, double number)
{
    is_integer(dtype) ? of_integers<F>(l, function, dtype, number) : of_floats<F>(l, function, dtype, number);
}

template <template <class> class F> void of_ordered(const pc__cuda_launch *l, int function, int dtype, double number)
{
    is_integer(dtype) ? of_integers_as<F, int32_t, int64_t>(l, function, dtype, number)
                      : of_floats<F>(l, function, dtype, number);
}

} // namespace

#define RUN_FLOATS of_floats
#define RUN_INTEGERS of_integers
#define RUN_ORDERED of_ordered
#define RUN_NUMBERS of_numbers
#define RUN_ALL of_numbers /* a bool and a number are numbers */

void pc__cuda_pointwise_number(const pc__cuda_launch *l, int function, int dtype, double number)
{
    switch (function & ~(PC__NUMBER_SECOND | PC__NUMBER_FIRST)) {
#define PC__FUNCTION(name, dtypes, cost, saves, autocast, f, derivative)
#define PC__UNARY(name, dtypes, cost, flags, f)
#define PC__BINARY(name, dtypes, cost, flags, f)                                                                       \
    case PC__POINTWISE_##name:                                                                                         \
        return RUN_##dtypes<pc::of_##name>(l, function, dtype, number);
#include "ops/pointwise.def"
    }
}

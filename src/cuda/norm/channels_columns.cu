/* channels_columns.cu: batch_norm of matrices of few rows and many columns in one kernel: a block has neighbouring columns, and
 * each of its threads keeps some rows of these in registers. */
#include "cuda/norm/channels.cuh"

namespace
{

/* A thread has W columns beside each other: 16-bit numbers by two, where rows begin at an even one. A block has ROWS rows of its
 * columns at once: few rows are each thread's own. */
template <int ROWS> constexpr int columns_of = ROWS == 1 ? 256 : 32;
template <int W, int ROWS> constexpr int threads_of = ROWS *columns_of<ROWS> / W;

/* Blocks that a multiprocessor's registers are to hold where a thread has so many words of numbers. */
template <int W, int ROWS> constexpr int blocks_of(int words)
{
    return ROWS == 1 ? 1 : W == 1 ? (words <= 32 ? 2 : 1) : words <= 16 ? 4 : words <= 48 ? 3 : 2;
}

/* Of so many numbers, or pairs of 16-bit ones: others are kept converted. */
template <class T, int W> constexpr int words_of(int count)
{
    return count * (int)(W > 1 ? 1 : sizeof(pc::math<T>) / 4);
}

/* Numbers of a word stay one, so that registers have room for all: the compiler would convert them once, to two. */
template <class T, int W, int EACH> __device__ __forceinline__ void keep_words(vector<T, W> (&x)[EACH])
{
    if constexpr (W > 1) {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            unsigned word, kept;
            memcpy(&word, &x[k], sizeof word);
            asm volatile("mov.b32 %0, %1;" : "=r"(kept) : "r"(word));
            memcpy(&x[k], &kept, sizeof kept);
        }
    }
}

/* The sum for each column over the rows of the block, in all of the threads that have it. */
template <class M, int W, int ROWS>
__device__ __forceinline__ numbers<M, W> over_rows(const numbers<M, W> &value, M (&room)[ROWS][columns_of<ROWS>])
{
    if constexpr (ROWS == 1)
        return value;
    constexpr int ACROSS = columns_of<ROWS> / W;
    const int row = threadIdx.x / ACROSS, column = threadIdx.x % ACROSS * W;
    put<M, W>(room[row], column, value);
    __syncthreads();
    numbers<M, W> sum = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const vector<M, W> some = raw_at<M, W>(room[r], column);
#pragma unroll
        for (int j = 0; j < W; j++)
            sum.at[j] += some.at[j];
    }
    return sum;
}

struct spot {
    long long channel, at; /* at: of the thread's first row */
    int row, rows;
};

template <int W, int ROWS> __device__ __forceinline__ spot spot_of(const pc__cuda_channels &c)
{
    constexpr int ACROSS = columns_of<ROWS> / W;
    const long long channel = ((long long)blockIdx.x * ACROSS + threadIdx.x % ACROSS) * W;
    const int row = threadIdx.x / ACROSS;
    return {channel, row * c.channels + channel, row, channel < c.channels ? (int)c.inner : 0};
}

template <class T, int W, int ROWS, int EACH>
__global__ void __launch_bounds__(threads_of<W, ROWS>, blocks_of<W, ROWS>(words_of<T, W>(EACH)))
    forward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ alignas(16) M room[2][ROWS][columns_of<ROWS>];
    const spot s = spot_of<W, ROWS>(c);
    const long long step = ROWS * c.channels;
    const T *from = static_cast<const T *>(c.x) + s.at;
    vector<T, W> x[EACH] = {};
    numbers<M, W> weight, bias, mean = {}, variance = {}, by;
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * ROWS + s.row < s.rows)
            x[k] = raw_at<T, W>(from, k * step);
#pragma unroll
    for (int j = 0; j < W; j++) {
        weight.at[j] = s.rows ? parameters<T, 1>(c.weight, s.channel + j, 1).at[0] : M(1);
        bias.at[j] = s.rows ? parameters<T, 1>(c.bias, s.channel + j, 0).at[0] : M(0);
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
#pragma unroll
        for (int j = 0; j < W; j++)
            mean.at[j] += M(x[k].at[j]);
    mean = over_rows<M, W, ROWS>(mean, room[0]);
    keep_words(x);
#pragma unroll
    for (int j = 0; j < W; j++)
        mean.at[j] /= M(c.inner);
#pragma unroll
    for (int k = 0; k < EACH; k++)
#pragma unroll
        for (int j = 0; j < W; j++) {
            const M off = M(x[k].at[j]) - mean.at[j];
            variance.at[j] += k * ROWS + s.row < s.rows ? off * off : M(0);
        }
    variance = over_rows<M, W, ROWS>(variance, room[1]);
    keep_words(x);
#pragma unroll
    for (int j = 0; j < W; j++) {
        variance.at[j] /= M(c.inner);
        by.at[j] = inverse_root_of(variance.at[j] + M(c.eps)) * weight.at[j];
    }
    if (s.rows && s.row == 0) {
        put<M, W>(c.found_mean, s.channel, mean);
        put<M, W>(c.found_variance, s.channel, variance);
    }
    T *to = static_cast<T *>(c.out) + s.at;
    const T *rest = c.rest ? static_cast<const T *>(c.rest) + s.at : NULL;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * ROWS + s.row < s.rows) {
            vector<T, W> y, other = {};
            if (rest)
                other = raw_at<T, W>(rest, k * step);
#pragma unroll
            for (int j = 0; j < W; j++)
                y.at[j] = finished<T>(c, normalised(M(x[k].at[j]) - mean.at[j], by.at[j], bias.at[j]), M(other.at[j]));
            *reinterpret_cast<vector<T, W> *>(to + k * step) = y;
        }
}

template <class T, int W, int ROWS, int EACH>
__global__ void __launch_bounds__(threads_of<W, ROWS>, blocks_of<W, ROWS>(words_of<T, W>(2 * EACH)))
    backward(pc__cuda_channels c)
{
    typedef pc::math<T> M;
    __shared__ alignas(16) M room[2][ROWS][columns_of<ROWS>];
    const spot s = spot_of<W, ROWS>(c);
    const long long step = ROWS * c.channels;
    const T *from = static_cast<const T *>(c.x) + s.at, *gradient = static_cast<const T *>(c.dy) + s.at;
    vector<T, W> x[EACH] = {}, g[EACH] = {};
    numbers<M, W> mean, rstd, by, bias, sum = {}, along = {};
    pc::wait_for_earlier();
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * ROWS + s.row < s.rows) {
            x[k] = raw_at<T, W>(from, k * step);
            g[k] = raw_at<T, W>(gradient, k * step);
        }
#pragma unroll
    for (int j = 0; j < W; j++) {
        const long long i = s.rows ? s.channel + j : 0;
        mean.at[j] = parameters<T, 1>(c.mean, i, 0).at[0];
        rstd.at[j] = rstd_of<T>(c, i);
        by.at[j] = rstd.at[j] * parameters<T, 1>(c.weight, i, 1).at[0];
        bias.at[j] = c.relu ? parameters<T, 1>(c.bias, i, 0).at[0] : M(0);
    }
    const auto own = [&](int k, int j) {
        const M off = M(x[k].at[j]) - mean.at[j], given = M(g[k].at[j]);
        return c.relu && k * ROWS + s.row < s.rows ? masked(c, given, normalised(off, by.at[j], bias.at[j])) : given;
    };
#pragma unroll
    for (int k = 0; k < EACH; k++)
#pragma unroll
        for (int j = 0; j < W; j++) {
            const M one = own(k, j);
            sum.at[j] += one;
            along.at[j] += one * (M(x[k].at[j]) - mean.at[j]);
        }
    sum = over_rows<M, W, ROWS>(sum, room[0]);
    along = over_rows<M, W, ROWS>(along, room[1]);
    keep_words(x);
    keep_words(g);
    if (s.rows && s.row == 0)
        for (int j = 0; j < W; j++) {
            put_gradient<T>(c.dweight, s.channel + j, along.at[j] * rstd.at[j]);
            put_gradient<T>(c.dbias, s.channel + j, sum.at[j]);
        }
    if (!c.out)
        return;
    numbers<M, W> first = {}, second = {};
#pragma unroll
    for (int j = 0; j < W && !c.stored; j++) {
        first.at[j] = by.at[j] * (sum.at[j] / M(c.inner));
        second.at[j] = by.at[j] * rstd.at[j] * rstd.at[j] * (along.at[j] / M(c.inner));
    }
    T *to = static_cast<T *>(c.out) + s.at;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (k * ROWS + s.row < s.rows) {
            vector<T, W> dx;
#pragma unroll
            for (int j = 0; j < W; j++)
                dx.at[j] = T(own(k, j) * by.at[j] - first.at[j] - (M(x[k].at[j]) - mean.at[j]) * second.at[j]);
            *reinterpret_cast<vector<T, W> *>(to + k * step) = dx;
        }
}

template <class T, int W, int ROWS, int EACH> void launch(const pc__cuda_channels &c)
{
    constexpr int BOTH = PC__NORM_COLUMN_ROWS_BOTH / PC__NORM_COLUMN_TOGETHER, THREADS = threads_of<W, ROWS>;
    const unsigned blocks = (unsigned)((c.channels + columns_of<ROWS> - 1) / columns_of<ROWS>);
    if constexpr (EACH <= BOTH) {
        if (c.backward) {
            (void)pc::start(backward<T, W, ROWS, EACH>, blocks, THREADS, c.queue, c.early, c);
            return;
        }
    }
    if constexpr (EACH <= BOTH || sizeof(T) < sizeof(double))
        (void)pc::start(forward<T, W, ROWS, EACH>, blocks, THREADS, c.queue, c.early, c);
}

template <class T, int W> void launch_rows(const pc__cuda_channels &c)
{
    enum { MANY = 16384 /* columns, whose threads fill a large GPU */ };
    constexpr int ROWS = PC__NORM_COLUMN_TOGETHER, MOST = PC__NORM_COLUMN_ROWS / ROWS;
    if (c.inner <= 4)
        launch<T, W, 1, 4>(c);
    else if (c.inner <= 16 && c.channels > MANY)
        launch<T, W, 1, 16>(c);
    else if (c.inner <= MOST / 8 * ROWS)
        launch<T, W, ROWS, MOST / 8>(c);
    else if (c.inner <= MOST / 4 * ROWS)
        launch<T, W, ROWS, MOST / 4>(c);
    else if (c.inner <= MOST / 2 * ROWS)
        launch<T, W, ROWS, MOST / 2>(c);
    else if (c.inner <= MOST * 3 / 4 * ROWS)
        launch<T, W, ROWS, MOST * 3 / 4>(c);
    else
        launch<T, W, ROWS, MOST>(c);
}

} // namespace

void pc__cuda_channel_columns(const pc__cuda_channels *c)
{
    with_number(c->dtype, [&](auto number) {
        typedef decltype(number) T;
        constexpr int PAIR = sizeof(T) == 2 ? 2 : 1;
        const uintptr_t all = (uintptr_t)c->x | (uintptr_t)c->dy | (uintptr_t)c->rest | (uintptr_t)c->out;
        if (c->channels % PAIR == 0 && all % (PAIR * sizeof(T)) == 0)
            launch_rows<T, PAIR>(*c);
        else
            launch_rows<T, 1>(*c);
    });
}

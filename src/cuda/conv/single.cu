/* single.cu: the gradient of pictures of one channel. As a product it would have one column, and read each number of the
 * gradient for every tap. Here a thread reads all outputs of a few places once, and makes what each tap takes of them, in
 * registers: one number for each place and tap. Those of a region lie in shared memory, where each pixel of x gathers its own. */
#include "cuda/conv/single.h"

#include "cuda/conv/order.cuh"
#include "cuda/shared/dependent_launch.cuh"
#include "cuda/shared/dtype.cuh"
#include "cuda/shared/load.cuh"

namespace
{

constexpr int THREADS = 256, FOUR = 4, TAPS_FEW = 9, TAPS_SOME = 25, TAPS_MOST = 49;
constexpr size_t WEIGHTS_MOST = (size_t)48 << 10; /* bytes: each block reads all */

/* Places of a thread whose sums for so many taps fit into registers. */
template <int TAPS> constexpr int PLACES = TAPS <= TAPS_FEW ? 4 : 2;

struct operands {
    const void *weight, *y, *dy;
    void *dx;
};

/* Tiles of x, and the most rows and columns of y that touch one. */
struct tiling {
    int height, width, down, across; /* pixels of a tile, tiles of a picture */
    int rows, columns;
};

__host__ __device__ inline int over(int a, int b)
{
    return (a + b - 1) / b;
}

/* From the first window to the last that lies on pixels from `at` on, of `size` of them. */
struct range {
    int first, count;
};

__host__ __device__ inline range windows_on(int at, int size, int kernel, int stride, int padding, int windows)
{
    const int low = at + padding - (kernel - 1), high = (at + size - 1 + padding) / stride;
    const int first = low > 0 ? over(low, stride) : 0, last = high < windows ? high : windows - 1;
    return {first, last >= first ? last - first + 1 : 0};
}

__host__ __device__ inline int most_windows(int size, int kernel, int stride, int windows)
{
    const int most = (size + kernel - 2) / stride + 1;
    return most < windows ? most : windows;
}

/* Outputs from `first` on of a place, zeros behind the last one. WHOLE: in fours that lie so in memory. */
template <class T, bool WHOLE>
__device__ __forceinline__ void take_four(const pc__cuda_conv &s, const T *dy, const T *y, long long at, int step,
                                          int first, bool there, float (&to)[FOUR])
{
    vector<T, FOUR> value = {}, saved = {};
    if (WHOLE && there) {
        value = *(const vector<T, FOUR> *)(dy + at + first);
        if (y)
            saved = *(const vector<T, FOUR> *)(y + at + first);
    }
#pragma unroll
    for (int j = 0; j < FOUR; j++) {
        if (!WHOLE && there && first + j < s.o) {
            value.at[j] = dy[at + (long long)(first + j) * step];
            if (y)
                saved.at[j] = y[at + (long long)(first + j) * step];
        }
        to[j] = (float)value.at[j];
        if (y)
            to[j] = activation_gradient(s.activation, to[j], (float)saved.at[j]);
    }
}

/* weights[four of outputs][TAPS][of the four], zeros where there are none. */
template <class T, int TAPS> __device__ inline void take_weights(const pc__cuda_conv &s, const T *from, float *weights)
{
    const int area = s.kh * s.kw;
    for (int i = threadIdx.x; i < over(s.o, FOUR) * TAPS * FOUR; i += THREADS) {
        const int four = i / (TAPS * FOUR), rest = i - four * TAPS * FOUR, tap = rest / FOUR,
                  o = four * FOUR + rest % FOUR;
        weights[i] = tap < area && o < s.o ? (float)from[o * area + tap] : 0.0f;
    }
}

template <class T, int TAPS, bool WHOLE>
__global__ void __launch_bounds__(THREADS, 2)
    single_input(const __grid_constant__ pc__cuda_conv s, const __grid_constant__ tiling t, const operands d)
{
    constexpr int MANY = PLACES<TAPS>;
    extern __shared__ __align__(16) float shared[];
    float *weights = shared, *taken = shared + over(s.o, FOUR) * TAPS * FOUR; /* [tap][place of the region] */
    const int line = blockIdx.x / t.across, column = (blockIdx.x - line * t.across) * t.width;
    const int image = line / t.down, row = (line - image * t.down) * t.height;
    const int height = min(t.height, s.h - row), width = min(t.width, s.w - column);
    const range down = windows_on(row, height, s.kh, s.sh, s.ph, s.yh);
    const range right = windows_on(column, width, s.kw, s.sw, s.pw, s.yw);
    const int places = down.count * right.count, step = channel_step(s), area = s.kh * s.kw;
    const T *dy = (const T *)d.dy, *y = (const T *)d.y;
    long long at[MANY];
#pragma unroll
    for (int i = 0; i < MANY; i++) {
        const int place = threadIdx.x + i * THREADS, r = place / max(right.count, 1);
        const int pixel = (down.first + r) * s.yw + right.first + place - r * right.count;
        at[i] = picture_at(s, image) + (s.planes ? pixel : (long long)pixel * s.o);
    }
    float sum[MANY][TAPS] = {};
    pc::wait_for_earlier();
    take_weights<T, TAPS>(s, (const T *)d.weight, weights);
    __syncthreads();
#pragma unroll 2
    for (int first = 0; first < s.o; first += FOUR) {
        float value[MANY][FOUR];
#pragma unroll
        for (int i = 0; i < MANY; i++)
            take_four<T, WHOLE>(s, dy, y, at[i], step, first, (int)threadIdx.x + i * THREADS < places, value[i]);
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            const vector<float, FOUR> w = *(const vector<float, FOUR> *)(weights + (first * TAPS + k * FOUR));
#pragma unroll
            for (int i = 0; i < MANY; i++)
#pragma unroll
                for (int j = 0; j < FOUR; j++)
                    sum[i][k] = fmaf(value[i][j], w.at[j], sum[i][k]);
        }
    }
#pragma unroll
    for (int i = 0; i < MANY; i++)
#pragma unroll
        for (int k = 0; k < TAPS; k++)
            if (k < area && (int)threadIdx.x + i * THREADS < places)
                taken[k * places + threadIdx.x + i * THREADS] = sum[i][k];
    __syncthreads();
    for (int pixel = threadIdx.x; pixel < height * width; pixel += THREADS) {
        const int r = pixel / width, top = row + r + s.ph, left = column + pixel - r * width + s.pw;
        float all = 0;
        for (int a = top % s.sh; a < s.kh && a <= top; a += s.sh)
            for (int b = left % s.sw; b < s.kw && b <= left; b += s.sw) {
                const int i = (top - a) / s.sh - down.first, j = (left - b) / s.sw - right.first;
                if (i < down.count && j < right.count) /* none is in front of the first */
                    all += taken[(a * s.kw + b) * places + i * right.count + j];
            }
        ((T *)d.dx)[((long long)image * s.h + row + r) * s.w + column + pixel - r * width] = T(all);
    }
}

template <int TAPS> size_t bytes_of(const pc__cuda_conv *s, const tiling &t)
{
    return ((size_t)over(s->o, FOUR) * TAPS * FOUR + (size_t)s->kh * s->kw * t.rows * t.columns) * sizeof(float);
}

/* The one with fewest tiles whose windows are no more than `places`. */
tiling tiling_of(const pc__cuda_conv *s, int places)
{
    tiling best = {};
    for (int across = 1; across <= s->w && (across <= 8 || best.height == 0); across++) {
        tiling t = {0, over(s->w, across), 0, 0, 0, 0};
        t.across = over(s->w, t.width);
        t.columns = most_windows(t.width, s->kw, s->sw, s->yw);
        for (int down = 1; down <= s->h && t.height == 0; down++) {
            t.rows = most_windows(over(s->h, down), s->kh, s->sh, s->yh);
            if ((long long)t.rows * t.columns <= places)
                t.height = over(s->h, down), t.down = over(s->h, t.height);
        }
        if (t.height && (best.height == 0 || (long long)t.down * t.across < (long long)best.down * best.across))
            best = t;
    }
    return best;
}

/* Bytes of the weights, and no less than any tiling takes. */
struct room {
    size_t weights, block;
};

template <int TAPS> room room_of(const pc__cuda_conv *s)
{
    const size_t weights = (size_t)over(s->o, FOUR) * TAPS * FOUR * sizeof(float);
    return {weights, weights + (size_t)TAPS * PLACES<TAPS> * THREADS * sizeof(float)};
}

bool has_room(const pc__cuda_conv *s)
{
    const int taps = s->kh * s->kw;
    const room r = taps <= TAPS_FEW    ? room_of<TAPS_FEW>(s)
                   : taps <= TAPS_SOME ? room_of<TAPS_SOME>(s)
                                       : room_of<TAPS_MOST>(s);
    return r.weights <= WEIGHTS_MOST && r.block <= (size_t)s->block_room;
}

template <class T, int TAPS, bool WHOLE> void launch(cudaStream_t queue, const pc__cuda_conv *s, const operands &d)
{
    const tiling t = tiling_of(s, PLACES<TAPS> * THREADS);
    const size_t shared = bytes_of<TAPS>(s, t);
    (void)pc::start_grid(single_input<T, TAPS, WHOLE>, dim3((unsigned)(s->n * t.down * t.across)), dim3(THREADS),
                         shared, queue, s->early, *s, t, d);
}

template <class T, int TAPS> void launch_taps(cudaStream_t queue, const pc__cuda_conv *s, const operands &d)
{
    const size_t fours = FOUR * sizeof(T);
    if (!s->planes && s->o % FOUR == 0 && ((uintptr_t)d.dy | (uintptr_t)d.y) % fours == 0)
        launch<T, TAPS, true>(queue, s, d);
    else
        launch<T, TAPS, false>(queue, s, d);
}

} // namespace

bool pc__cuda_conv_single_fits(const pc__cuda_conv *s)
{
    const long long pixels = (long long)s->h * s->w, area = (long long)s->kh * s->kw;
    return s->c == 1 && s->pool == 1 && s->dtype != PC__CUDA_F64 && s->n > 0 && s->o > 0 && area > 0 &&
           area <= TAPS_MOST && s->yh > 0 && s->yw > 0 && pixels > 0 && s->n * pixels < 1 << 30 && s->ph < 1 << 24 &&
           s->pw < 1 << 24 && has_room(s);
}

void pc__cuda_conv_single_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                                const void *dy, void *dx)
{
    const operands d = {weight, needs_y(*s) ? y : NULL, dy, dx};
    with_number(s->dtype, [&](auto number) {
        if constexpr (sizeof(number) < sizeof(double)) {
            const int taps = s->kh * s->kw;
            if (taps <= TAPS_FEW)
                launch_taps<decltype(number), TAPS_FEW>(queue, s, d);
            else if (taps <= TAPS_SOME)
                launch_taps<decltype(number), TAPS_SOME>(queue, s, d);
            else
                launch_taps<decltype(number), TAPS_MOST>(queue, s, d);
        }
    });
}

/* direct.cu: the forward convolution of few channels, and the gradient of its input. A thread makes 2 x 4 pixels by OC
 * channels in registers, from eight neighbours of each row of the kernel and weights that are the same for all lanes:
 * 8 x OC multiplications for each tap and channel. The gradient of the input is the same loop over the gradient of the
 * results with the kernel turned around; a stride s makes s x s classes of pixels, by the taps that reach them. */
#include "cuda/conv/direct.cuh"

namespace
{

constexpr int ROWS = 2; /* of a thread's pixels */

struct operands {
    const void *x, *weight, *bias, *y, *dy;
    const uint8_t *argmax;
    void *result;
    uint8_t *places;
};

struct plan {
    cut c;
    tile t;
    int inner, outputs, each, chunks; /* channels that go in, that come out; of these at once */
    int step;                         /* rows of the tile from one row of results to the next */
    int top, left;                    /* of the tile, for the first results */
    int weights;                      /* floats of weights and biases */
    int whole;                        /* what goes in lies in fours on 16 bytes */
};

/* Rows or columns of x in a class: from `first` on, `stride` apart. Taps reach them, from the results on that lie `start`
 * behind their own number. */
struct axis {
    int first, start, taps;
};

__host__ __device__ inline axis axis_of(int rest, int stride, int padding, int kernel)
{
    const int first = ((rest - padding) % stride + stride) % stride, taps = taps_of(rest, kernel, stride);
    return {first, (first + padding - rest) / stride - (taps - 1), taps};
}

__host__ __device__ inline int lowest_start(int stride, int padding, int kernel)
{
    int lowest = axis_of(0, stride, padding, kernel).start;
    for (int rest = 1; rest < stride; rest++) {
        const int start = axis_of(rest, stride, padding, kernel).start;
        lowest = start < lowest ? start : lowest;
    }
    return lowest;
}

/* Where a tap of a row or column of the kernel goes: those of a phase or class side by side, back to front for a
 * gradient. */
__device__ inline int place_of(int tap, int kernel, int stride, bool back)
{
    const int rest = tap % stride, number = tap / stride;
    return taps_before(rest, kernel, stride) + (back ? taps_of(rest, kernel, stride) - 1 - number : number);
}

/* [chunk][inner][row][column][OC], and the biases behind. These two are once for all OC. */
__device__ __noinline__ void take_weights(const pc__cuda_conv &s, const plan &p, const operands &d, bool back,
                                          float *to)
{
    const int kh = s.kh, kw = s.kw, sh = s.sh, sw = s.sw, outputs = s.o, channels = s.c, each = p.each, inner = p.inner;
    const int area = kh * kw, all = p.weights, biases = all - p.chunks * each, pitch = pitch_of(each);
    const void *const from = d.weight, *const bias = back ? NULL : d.bias;
    for (int i = threadIdx.x; i < all; i += blockDim.x)
        to[i] = 0;
    __syncthreads();
    as_type(s.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        for (int i = threadIdx.x; i < outputs * channels * area; i += blockDim.x) {
            const int pair = i / area, tap = i - pair * area, o = pair / channels, c = pair - o * channels;
            const int row = tap / kw, column = tap - row * kw, out = back ? c : o, in = back ? o : c;
            const int down = back ? place_of(row, kh, sh, true) : row, right = place_of(column, kw, sw, back);
            const int chunk = out / each, at = ((chunk * inner + in) * kh + down) * kw + right;
            to[at * pitch + out - chunk * each] = (float)((const T *)from)[i];
        }
        for (int i = threadIdx.x; bias && i < outputs; i += blockDim.x)
            to[biases + i] = (float)((const T *)bias)[i];
    });
}

/* The pictures that go in. */
__device__ __noinline__ void load_tile(const pc__cuda_conv &s, const plan &p, const operands &d, bool back,
                                       long long image, int row, int column, float *to)
{
    const int deep = (int)min((long long)p.c.deep, s.n - image);
    as_type(s.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        if (back)
            load_gradients<T>(s, d.y, d.argmax, d.dy, p.t, p.inner, p.whole, image, deep, deep, row + p.top,
                              column + p.left, to);
        else
            load(pictures<T>{(const T *)d.x, s.h, s.w, s.c, are_planes(s.x_planes, s.c)}, p.t, p.inner, p.whole, image,
                 deep, deep, row * p.step + p.top, column * p.t.phases + p.left, to);
    });
}

/* W taps of a row of the kernel; `from` is the first pixel under the first of them, its second row `down` on. */
template <int OC, int W>
__device__ inline void add_taps(const float *from, int down, const float *weight, float (&sum)[ROWS][FOUR][OC])
{
    constexpr int N = W == 1 ? FOUR : 2 * FOUR;
    float x[ROWS][N];
    take<N>(from, x[0]);
    take<N>(from + down, x[1]);
#pragma unroll
    for (int q = 0; q < W; q++) {
        float w[OC];
        take<OC>(weight + q * pitch_of(OC), w);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < FOUR; j++)
#pragma unroll
                for (int k = 0; k < OC; k++)
                    sum[i][j][k] = fmaf(x[i][q + j], w[k], sum[i][j][k]);
    }
}

/* `rows` rows of the kernel with as many taps in each phase, over all channels that go in; distances: of the weights of
 * a row and of a channel. */
template <int OC, bool BACK>
__device__ inline void add_up(const pc__cuda_conv &s, const plan &p, const float *from, const float *weight, int rows,
                              int taps, float (&sum)[ROWS][FOUR][OC])
{
    const int down = p.step * p.t.row, phases = BACK ? 1 : min(s.sw, s.kw), across = s.kw * pitch_of(OC);
    for (int in = 0; in < p.inner; in++, from += p.t.channel, weight += s.kh * across)
        for (int r = 0; r < rows; r++) {
            const float *w = weight + r * across;
            for (int phase = 0; phase < phases; phase++) {
                const float *x = from + r * p.t.row + phase * p.t.pitch;
                int left = BACK ? taps : taps_of(phase, s.kw, s.sw);
                while (left > 0) {
                    const int now = at_once(left);
                    if (now == 5)
                        add_taps<OC, 5>(x, down, w, sum);
                    else if (now == 4)
                        add_taps<OC, 4>(x, down, w, sum);
                    else if (now == 3)
                        add_taps<OC, 3>(x, down, w, sum);
                    else if (now == 2)
                        add_taps<OC, 2>(x, down, w, sum);
                    else
                        add_taps<OC, 1>(x, down, w, sum);
                    x += now, w += now * pitch_of(OC), left -= now;
                }
            }
        }
}

template <int N, class T> __device__ inline bool lies_on(const T *pointer)
{
    return (uintptr_t)pointer % (N * sizeof(T)) == 0;
}

/* N side by side, PIXELS * OC in all. */
template <int N, class T, int PIXELS, int OC>
__device__ inline void put_together(T *to, const float (&value)[PIXELS][OC])
{
#pragma unroll
    for (int i = 0; i < PIXELS * OC; i += N) {
        vector<T, N> some;
#pragma unroll
        for (int j = 0; j < N; j++)
            some.at[j] = T(value[(i + j) / OC][(i + j) % OC]);
        *(vector<T, N> *)(to + i) = some;
    }
}

/* Pixels from `begin` to `end` of those that are there, `pixel` apart, and `left` of their channels, `channel` apart. */
template <class T, int PIXELS, int OC>
__device__ inline void put(T *to, const float (&value)[PIXELS][OC], int begin, int end, int left, int pixel,
                           int channel)
{
    const bool together = begin == 0 && end >= PIXELS && channel == 1 && pixel == OC && left >= OC;
    if (together && PIXELS * OC % 4 == 0 && lies_on<4>(to)) {
        put_together<PIXELS * OC % 4 == 0 ? 4 : 2>(to, value);
        return;
    }
    if (together && lies_on<2>(to)) {
        put_together<2>(to, value);
        return;
    }
#pragma unroll
    for (int j = 0; j < PIXELS; j++)
#pragma unroll
        for (int k = 0; k < OC; k++)
            if (j >= begin && j < end && k < left)
                to[j * pixel + k * channel] = T(value[j][k]);
}

/* With a loop, so that the rarer activations are there once. */
template <int OC> __device__ inline void activate(int kind, float (&sum)[ROWS][FOUR][OC])
{
    if (kind == ACTIVATION_RELU) {
#pragma unroll
        for (int i = 0; i < ROWS * FOUR * OC; i++) {
            float &value = sum[i / OC / FOUR][i / OC % FOUR][i % OC];
            value = activated(ACTIVATION_RELU, value);
        }
    } else if (kind != ACTIVATION_NONE) {
        float all[ROWS * FOUR * OC];
#pragma unroll
        for (int i = 0; i < ROWS * FOUR * OC; i++)
            all[i] = sum[i / OC / FOUR][i / OC % FOUR][i % OC];
#pragma unroll 1
        for (int i = 0; i < ROWS * FOUR * OC; i++)
            all[i] = activated(kind, all[i]);
#pragma unroll
        for (int i = 0; i < ROWS * FOUR * OC; i++)
            sum[i / OC / FOUR][i / OC % FOUR][i % OC] = all[i];
    }
}

/* The larger ones of each 2 x 2 pixels and their places. */
template <int OC>
__device__ inline void pool(const float (&sum)[ROWS][FOUR][OC], float (&most)[FOUR / 2][OC],
                            float (&place)[FOUR / 2][OC])
{
#pragma unroll
    for (int j = 0; j < FOUR / 2; j++)
#pragma unroll
        for (int k = 0; k < OC; k++) {
            most[j][k] = sum[0][2 * j][k], place[j][k] = 0;
#pragma unroll
            for (int q = 1; q < 4; q++) {
                const float other = sum[q / 2][2 * j + q % 2][k];
                const bool more = other > most[j][k] || other != other;
                most[j][k] = more ? other : most[j][k];
                place[j][k] = more ? q : place[j][k];
            }
        }
}

/* Results of the thread whose first pixel is (row, column), channels from `begin` on. */
template <int OC>
__device__ inline void finish(const pc__cuda_conv &s, const operands &d, const float *bias,
                              float (&sum)[ROWS][FOUR][OC], int image, int row, int column, int begin)
{
    const int step = channel_step(s), pixel = s.planes ? 1 : s.o, left = s.o - begin;
    const long long picture = picture_at(s, image) + (long long)begin * step;
#pragma unroll
    for (int i = 0; i < ROWS * FOUR * OC; i++)
        sum[i / OC / FOUR][i / OC % FOUR][i % OC] += bias[i % OC];
    activate(s.activation, sum);
    if (s.pool == 1) {
        as_type(s.dtype, [&](auto zero) {
            typedef decltype(zero) T;
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                if (row + i < s.yh)
                    put((T *)d.result + picture + ((row + i) * s.yw + column) * pixel, sum[i], 0, s.yw - column, left,
                        pixel, step);
        });
        return;
    }
    const int down = row / 2, right = column / 2;
    if (down >= s.yh)
        return;
    const long long at = picture + (down * s.yw + right) * pixel;
    float most[FOUR / 2][OC], place[FOUR / 2][OC];
    pool(sum, most, place);
    as_type(s.dtype,
            [&](auto zero) { put((decltype(zero) *)d.result + at, most, 0, s.yw - right, left, pixel, step); });
    if (!d.places)
        return;
#pragma unroll
    for (int i = 0; i < FOUR / 2 * OC; i++)
        place[i / OC][i % OC] = (float)mark_of(s, (int)place[i / OC][i % OC], most[i / OC][i % OC]);
    put(d.places + at, place, 0, s.yw - right, left, pixel, step);
}

/* Pixels of x of one class. */
template <int OC>
__device__ inline void finish_input(const pc__cuda_conv &s, const operands &d, const float (&sum)[ROWS][FOUR][OC],
                                    long long image, int row, int column, const axis &down, const axis &right,
                                    int begin)
{
    as_type(s.dtype, [&](auto zero) {
        typedef decltype(zero) T;
        const int first = right.first + column * s.sw;
        const int from = column < 0 ? -column : 0, end = s.w > first ? (s.w - first + s.sw - 1) / s.sw : 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int at = down.first + (row + i) * s.sh;
            if (row + i >= 0 && at < s.h)
                put((T *)d.result + image * s.h * s.w * s.c + ((long long)at * s.w + first) * s.c + begin, sum[i], from,
                    end, s.c - begin, s.sw * s.c, 1);
        }
    });
}

template <int OC, bool BACK>
__global__ void __launch_bounds__(256, 2)
    direct_kernel(const __grid_constant__ pc__cuda_conv s, const __grid_constant__ plan p,
                  const __grid_constant__ operands d)
{
    extern __shared__ __align__(16) float weight[];
    float *tile = weight + (p.weights + 3) / 4 * 4;
    const int per = p.c.across * p.c.down, picture = threadIdx.x / per, unit = threadIdx.x - picture * per;
    const int down = unit / p.c.across, right = unit - down * p.c.across;
    const float *mine = tile + picture * p.t.picture + ROWS * down * p.step * p.t.row + right * FOUR;
    const int chunk = p.inner * s.kh * s.kw * pitch_of(OC), area = p.c.wide * p.c.high;
    pc::wait_for_earlier();
    take_weights(s, p, d, BACK, weight);
    for (long long at = blockIdx.x; at < p.c.blocks; at += gridDim.x) {
        const long long group = quotient(at, area), image = group * p.c.deep;
        const int inside = (int)(at - group * area), line = inside / p.c.wide;
        const int row = line * p.c.down * ROWS, column = (inside - line * p.c.wide) * p.c.across * FOUR;
        load_tile(s, p, d, BACK, image, row, column, tile);
        __syncthreads();
        const bool works = picture < p.c.deep && image + picture < s.n;
        for (int k = 0; works && k < p.chunks * (BACK ? s.sh * s.sw : 1); k++) {
            const int kind = BACK ? k / p.chunks : 0, part = k - kind * p.chunks;
            const float *from = weight + part * chunk;
            float sum[ROWS][FOUR][OC] = {};
            if (BACK) {
                const int a = kind / s.sw, b = kind - a * s.sw;
                const axis rows = axis_of(a, s.sh, s.ph, s.kh), columns = axis_of(b, s.sw, s.pw, s.kw);
                from += (taps_before(a, s.kh, s.sh) * s.kw + taps_before(b, s.kw, s.sw)) * pitch_of(OC);
                add_up<OC, BACK>(s, p, mine, from, rows.taps, columns.taps, sum);
                finish_input(s, d, sum, image + picture, row + ROWS * down - (rows.start - p.top),
                             column + FOUR * right - (columns.start - p.left), rows, columns, part * OC);
            } else {
                add_up<OC, BACK>(s, p, mine, from, s.kh, 0, sum);
                finish(s, d, weight + p.weights - (p.chunks - part) * OC, sum, (int)image + picture, row + ROWS * down,
                       column + FOUR * right, part * OC);
            }
        }
        __syncthreads();
    }
}

tile tile_for(const pc__cuda_conv *s, const plan &p, const cut &c, bool back)
{
    const int rows = ROWS * c.down, phases = back ? 1 : s->sw;
    return tile_of((rows - 1) * p.step + (back ? over(s->kh, s->sh) : s->kh), c.across, over(s->kw, s->sw), phases,
                   p.inner);
}

size_t bytes_for(const plan &p, const tile &t, int deep)
{
    return ((size_t)(p.weights + 3) / 4 * 4 + (size_t)t.picture * deep) * sizeof(float);
}

/* Results before pooling; of the gradient as many as the largest class has pixels, and those that others begin before. */
extent extent_of(const pc__cuda_conv *s, const plan &p, bool back)
{
    const double work = (double)ROWS * FOUR * p.inner * p.outputs * s->kh * s->kw;
    extent e = {s->yh * s->pool, s->yw * s->pool, ROWS, work, 25.0 + 8 * p.inner, back ? 1 : s->sw};
    for (int rest = 0; back && (rest < s->sh || rest < s->sw); rest++) {
        const axis a = axis_of(rest % s->sh, s->sh, s->ph, s->kh), b = axis_of(rest % s->sw, s->sw, s->pw, s->kw);
        const int high = over(s->h - a.first, s->sh) + a.start - p.top;
        const int wide = over(s->w - b.first, s->sw) + b.start - p.left;
        e.high = rest == 0 || high > e.high ? high : e.high;
        e.wide = rest == 0 || wide > e.wide ? wide : e.wide;
    }
    return e;
}

/* All but the cut. */
plan start_of(const pc__cuda_conv *s, bool back)
{
    plan p = {};
    p.inner = back ? s->o : s->c, p.outputs = back ? s->c : s->o;
    p.chunks = over(p.outputs, 8), p.each = over(p.outputs, p.chunks);
    p.weights = p.chunks * (p.inner * s->kh * s->kw * pitch_of(p.each) + p.each);
    p.step = back ? 1 : s->sh;
    p.top = back ? lowest_start(s->sh, s->ph, s->kh) : -s->ph;
    p.left = back ? lowest_start(s->sw, s->pw, s->kw) : -s->pw;
    return p;
}

bool fits(const pc__cuda_conv *s, bool back)
{
    if (!has_pixels(s))
        return false;
    const plan p = start_of(s, back);
    const cut c = least_cut(s, extent_of(s, p, back));
    return bytes_for(p, tile_for(s, p, c, back), 1) <= SHARED_MOST;
}

plan plan_of(const pc__cuda_conv *s, bool back)
{
    plan p = start_of(s, back);
    p.c =
        cut_for(s, extent_of(s, p, back), [&](const cut &c) { return bytes_for(p, tile_for(s, p, c, back), c.deep); });
    p.t = tile_for(s, p, p.c, back);
    return p;
}

/* Those that have units, and as many more as registers have room for where shared memory is what blocks run out of: they bring
 * pictures in, which takes longest then. */
int threads_of(const cut &c, size_t shared)
{
    constexpr int HELD = 512, MOST = 256; /* threads of a multiprocessor, and of a block */
    constexpr size_t ROOM = (size_t)227 << 10, OWN = 1 << 10;
    const int working = over(c.across * c.down * c.deep, LANES) * LANES;
    const int beside = HELD / (int)(ROOM / (shared + OWN)) / LANES * LANES;
    return beside < working ? working : beside < MOST ? beside : MOST;
}

template <int OC, bool BACK> void launch(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const operands &d)
{
    const size_t shared = bytes_for(p, p.t, p.c.deep);
    const int threads = threads_of(p.c, shared), most = s->multiprocessors * 32;
    pc::start_grid(direct_kernel<OC, BACK>, dim3((unsigned)(p.c.blocks < most ? p.c.blocks : most)),
                   dim3((unsigned)threads), shared, queue, s->early, *s, p, d);
}

template <bool BACK> void launch_any(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const operands &d)
{
    static void (*const by_channels[])(cudaStream_t, const pc__cuda_conv *, const plan &, const operands &) = {
        launch<1, BACK>, launch<2, BACK>, launch<3, BACK>, launch<4, BACK>,
        launch<5, BACK>, launch<6, BACK>, launch<7, BACK>, launch<8, BACK>};
    by_channels[p.each - 1](queue, s, p, d);
}

} // namespace

bool pc__cuda_conv_direct_forward_fits(const pc__cuda_conv *s)
{
    return s->pool <= 2 && s->yh > 0 && s->yw > 0 && fits(s, false);
}

bool pc__cuda_conv_direct_input_fits(const pc__cuda_conv *s)
{
    return fits(s, true);
}

void pc__cuda_conv_direct_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                  const void *bias, void *y, uint8_t *argmax)
{
    const operands d = {x, weight, bias, NULL, NULL, NULL, y, argmax};
    plan p = plan_of(s, false);
    p.whole = x_lies_in_fours(s, x);
    launch_any<false>(queue, s, p, d);
}

void pc__cuda_conv_direct_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                                const uint8_t *argmax, const void *dy, void *dx)
{
    const operands d = {NULL, weight, NULL, y, dy, argmax, dx, NULL};
    plan p = plan_of(s, true);
    p.whole = gradient_lies_in_fours(s, y, dy);
    launch_any<true>(queue, s, p, d);
}

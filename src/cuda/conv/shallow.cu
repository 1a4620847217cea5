/* shallow.cu: the forward convolution of up to eight channels, and the gradient of the input from up to eight channels
 * at stride 1, which is one too, of the turned kernel. A warp makes 32 pixels, in whole windows, by 32 outputs; where each
 * tap lies in a tile stands in a table. Results are written from shared memory, so that odd numbers of outputs are as
 * good as others. Blocks stay and take tile after tile: they bring the weights in once. */
#include "cuda/conv/shallow.cuh"

namespace
{

constexpr int PITCH = 40; /* numbers between pixels' results in shared memory: eight of them reach all banks */

/* Weight of output o, channel c and tap t: at[o * output + c * inner + t * tap]. */
template <class T> struct kernel_weights {
    const T *at;
    int output, inner, tap;

    /* Two channels side by side. */
    __device__ inline unsigned pair(const pc__cuda_conv &s, int o, int c, int t) const
    {
        const bool there = o < s.o && t < s.kh * s.kw;
        const T *from = at + (there ? o * output + c * inner + t * tap : 0);
        const unsigned low = there && c < s.c ? pc::ahead((const uint16_t *)from) : 0;
        return there && c + 1 < s.c ? low | (unsigned)pc::ahead((const uint16_t *)from + inner) << 16 : low;
    }
};

struct places {
    char *patch;
    uint4 *weights; /* [sixteen of depth][16 outputs][lane]: for each eight two words */
    unsigned *taps; /* [sixteen of depth][lane % 4]: distances of its two taps in words, a half word each */
    float *bias;    /* as `finish` reads them */
    uint16_t *y;    /* [pixel][PITCH] */
    uint8_t *most;  /* [window][PITCH] */
};

__host__ __device__ inline int sixteens_of(const pc__cuda_conv &s, const tiling &t)
{
    const int taps = s.kh * s.kw, each = 16 / t.numbers;
    return (taps + each - 1) / each;
}

__host__ __device__ inline size_t places_of(const pc__cuda_conv &s, const tiling &t, char *at, places *p)
{
    const int sixteens = sixteens_of(s, t);
    const size_t patch = ((size_t)t.height * t.width * t.numbers * 2 + 127) / 128 * 128;
    const size_t weights = (size_t)sixteens * 1024, taps = (size_t)sixteens * 16, bias = GROUP * sizeof(float);
    const size_t y = (size_t)TILE * PITCH * 2;
    if (p) {
        p->patch = at;
        p->weights = (uint4 *)(at + patch);
        p->y = (uint16_t *)(at + patch + weights);
        p->taps = (unsigned *)(at + patch + weights + y);
        p->bias = (float *)(at + patch + weights + y + taps);
        p->most = (uint8_t *)p->bias + bias;
    }
    return patch + weights + y + taps + bias + (s.pool == 2 ? TILE / 4 * PITCH : 0);
}

/* What stays: the weights as matrix units take them, and where their taps lie. */
template <class T>
__device__ inline void bring_weights(const pc__cuda_conv &s, const tiling &t, const kernel_weights<T> &w,
                                     const places &p, int sixteens)
{
    const int begin = blockIdx.y * GROUP;
    unsigned *words = (unsigned *)p.weights;
    for (int i = threadIdx.x; i < sixteens * 4 * LANES; i += blockDim.x) {
        const int lane = i % LANES, n = i / LANES % 4, k = i / LANES / 4, o = begin + n * 8 + lane / 4, part = lane % 4;
        const int tap = t.numbers == 4 ? k * 4 + part / 2 : k * 2, c = t.numbers == 4 ? part % 2 * 2 : part * 2;
        unsigned *to = words + ((k * 2 + n / 2) * LANES + lane) * 4 + n % 2 * 2;
        to[0] = w.pair(s, o, c, tap);
        to[1] = w.pair(s, o, c, tap + 8 / t.numbers);
    }
    for (int i = threadIdx.x; i < sixteens * 4; i += blockDim.x) {
        const int k = i / 4, part = i % 4, words_of = t.numbers / 2;
        unsigned away = 0;
        for (int half = 0; half < 2; half++) {
            const int tap = (t.numbers == 4 ? k * 4 + part / 2 : k * 2) + half * (8 / t.numbers), row = tap / s.kw;
            if (tap < s.kh * s.kw)
                away |= (unsigned)((row * t.width + tap - row * s.kw) * words_of + part % words_of) << half * 16;
        }
        p.taps[i] = away;
    }
}

/* The biases, by eights as a lane has its outputs. */
template <class T> __device__ inline void bring_bias(const pc__cuda_conv &s, const T *from, float *to)
{
    for (int i = threadIdx.x; i < GROUP; i += blockDim.x) {
        const int o = blockIdx.y * GROUP + i % 8 / 2 * 8 + i / 8 * 2 + i % 2;
        to[i] = from && o < s.o ? (float)from[o] : 0.0f;
    }
}

/* A tile of the gradient in front of an activation and pooling: numbers that another maximum hides are zeros. */
template <class T>
__device__ inline void bring_gradient(const pc__cuda_conv &s, const tiling &t, const origin<T> &from,
                                      const tile_place &p, char *patch)
{
    const segments all(s, t, p);
    const int up = from.pool == 2 ? 1 : 0;
    for (int item = threadIdx.x / LANES; item < all.count; item += blockDim.x / LANES) {
        const int r = item / all.in_row, c = (item - r * all.in_row) * LANES + threadIdx.x % LANES;
        const int row = all.top + r, column = all.left + c, q = row % 2 * 2 + column % 2;
        const bool inside = (unsigned)row < (unsigned)from.h && (unsigned)column < (unsigned)from.w;
        const long long line = (long long)p.image * (from.h >> up) + (row >> up);
        const long long first = inside ? (line * (from.w >> up) + (column >> up)) * from.c : 0;
        eight<T> v = {}, y = {};
        eight<uint8_t> most = {};
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            if (inside && j < from.c) {
                v.at[j] = from.at[first + j];
                y.at[j] = from.y ? from.y[first + j] : T(0.0f);
                most.at[j] = from.argmax ? from.argmax[first + j] : (uint8_t)q;
            }
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            const float g =
                from.y ? activation_gradient(from.activation, (float)v.at[j], (float)y.at[j]) : (float)v.at[j];
            v.at[j] = most.at[j] == q ? T(g) : T(0.0f);
        }
        if (c < t.width && t.numbers == EIGHT)
            put<EIGHT>(patch, NULL, r * t.width + c, v);
        else if (c < t.width)
            put<4>(patch, NULL, r * t.width + c, v);
    }
}

struct sums_of_warp {
    float sum[2][4][4]; /* [16 pixels][8 outputs][as add_tensor] */
};

#if TENSOR_UNITS
/* A sixteen of depth. Zero weights make no zeros of what is infinite: under taps that are none, which there are at the
 * END alone, zeros are put. */
template <class T, bool END>
__device__ inline void add_sixteen(sums_of_warp &to, const pc__cuda_conv &s, const tiling &t, const places &p,
                                   const int (&base)[2][2], int k, int eights)
{
    const int lane = threadIdx.x % LANES;
    const unsigned *patch = (const unsigned *)p.patch;
    const unsigned away = p.taps[k * 4 + lane % 4], near = away & 0xffff, far = away >> 16;
    const int tap = t.numbers == 4 ? k * 4 + lane % 4 / 2 : k * 2, taps = s.kh * s.kw;
    unsigned a[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            a[i][h] = patch[base[i][h] + near];
            a[i][h + 2] = patch[base[i][h] + far];
            if (END) {
                a[i][h] = tap < taps ? a[i][h] : 0;
                a[i][h + 2] = tap + 8 / t.numbers < taps ? a[i][h + 2] : 0;
            }
        }
#pragma unroll
    for (int n = 0; n < 4; n += 2) {
        if (n >= eights)
            break;
        const uint4 b = p.weights[(k * 2 + n / 2) * LANES + lane];
        const unsigned first[2] = {b.x, b.y}, second[2] = {b.z, b.w};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            add_tensor(to.sum[i][n], a[i], first, T());
            if (n + 1 < eights)
                add_tensor(to.sum[i][n + 1], a[i], second, T());
        }
    }
}
#endif

/* Up to eight numbers side by side. */
template <class V, class T> __device__ inline void move(T *to, const T *from)
{
    *(V *)to = *(const V *)from;
}

/* A tile's results to y and argmax: channels last as many at a time as lie so, planes one by one. */
template <class T>
__device__ inline void write_tile(const pc__cuda_conv &s, const tiling &t, const patch_data<T> &d, const places &p,
                                  const tile_place &place)
{
    const int begin = blockIdx.y * GROUP, outputs = min(GROUP, s.o - begin), count = t.rows * t.columns;
    const bool twos = s.o % 2 == 0 && (uintptr_t)d.y % 4 == 0 && (uintptr_t)d.argmax % 2 == 0;
    const int each = s.planes ? 1 : d.whole ? 8 : twos ? 2 : 1, inner = s.planes ? count : outputs / each;
    const int rows = min(t.rows, s.yh - place.row), columns = min(t.columns, s.yw - place.column);
    const division by_inner(inner), by_columns(t.columns);
    for (int i = threadIdx.x; i < count * outputs / each; i += blockDim.x) {
        const int major = by_inner.of(i), minor = i - major * inner;
        const int pixel = s.planes ? minor : major, o = s.planes ? major : minor * each;
        const int row = by_columns.of(pixel), column = pixel - row * t.columns;
        if (row >= rows || column >= columns)
            continue;
        const int down = place.row + row, right = place.column + column;
        const long long at = s.planes ? (((long long)place.image * s.o + begin + o) * s.yh + down) * s.yw + right
                                      : (((long long)place.image * s.yh + down) * s.yw + right) * s.o + begin + o;
        const uint16_t *y = p.y + pixel * PITCH + o;
        const uint8_t *most = p.most + pixel * PITCH + o;
        uint16_t *to = (uint16_t *)d.y + at;
        uint8_t *argmax = d.argmax ? d.argmax + at : NULL;
        if (each == 8) {
            move<uint4>(to, y);
            if (argmax)
                move<uint2>(argmax, most);
        } else if (each == 2) {
            move<unsigned>(to, y);
            if (argmax)
                move<uint16_t>(argmax, most);
        } else {
            *to = *y;
            if (argmax)
                *argmax = *most;
        }
    }
}

template <class T, int POOL>
__global__ void __launch_bounds__(TILE, 3)
    shallow_kernel(const pc__cuda_conv s, const tiling t, const origin<T> from, const kernel_weights<T> w,
                   const patch_data<T> d, int sixteens)
{
#if TENSOR_UNITS
    extern __shared__ __align__(128) char shared[];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, count = t.rows * t.columns;
    const int eights = min(4, (s.o - (int)blockIdx.y * GROUP + 7) / 8), total = (int)s.n * t.down * t.across;
    const ending e = ending_of(s);
    places p;
    places_of(s, t, shared, &p);
    if (!s.ready_weight)
        pc::wait_for_earlier();
    bring_weights(s, t, w, p, sixteens);
    if (s.ready_weight)
        pc::wait_for_earlier();
    bring_bias(s, d.bias, p.bias);
    int base[2][2]; /* of this lane's four pixels, in words; those beyond the tile read its first */
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int at = POOL == 2 ? warp * 8 + lane / 4 : warp * 32 + i * 16 + h * 8 + lane / 4;
            const int window = at < count ? at : 0, row = window / t.columns, column = window - row * t.columns;
            const int down = POOL == 2 ? row * 2 + i : row, right = POOL == 2 ? column * 2 + h : column;
            base[i][h] = (down * s.sh * t.width + right * s.sw) * (t.numbers / 2);
        }
    for (int at = blockIdx.x; at < total; at += gridDim.x) {
        const tile_place place(t, at);
        if (POOL == 1 && (from.y || from.argmax))
            bring_gradient(s, t, from, place, p.patch);
        else if (t.numbers == EIGHT)
            bring<EIGHT>(s, t, from, place, p.patch, NULL);
        else
            bring<4>(s, t, from, place, p.patch, NULL);
        __syncthreads();
        sums_of_warp sums = {};
        for (int k = 0; k < sixteens - 1; k++)
            add_sixteen<T, false>(sums, s, t, p, base, k, eights);
        add_sixteen<T, true>(sums, s, t, p, base, sixteens - 1, eights);
#pragma unroll
        for (int q = 0; q < (POOL == 2 ? 1 : 4); q++) {
            const float *bias = p.bias + lane % 4 * EIGHT;
            const packed_results r =
                e.simple ? finish<T, POOL, true>(e, sums, bias, 0, q) : finish<T, POOL, false>(e, sums, bias, 0, q);
            const int pixel = POOL == 2 ? warp * 8 + lane / 4 : warp * 32 + q * 8 + lane / 4;
            unsigned *y = (unsigned *)p.y + pixel * (PITCH / 2) + lane % 4;
            uint16_t *most = (uint16_t *)p.most + pixel * (PITCH / 2) + lane % 4;
#pragma unroll
            for (int n = 0; n < 4; n++) {
                y[n * 4] = r.y[n];
                if (POOL == 2)
                    most[n * 4] = (uint16_t)(r.most[n / 2] >> n % 2 * 16);
            }
        }
        __syncthreads();
        write_tile(s, t, d, p, place);
    }
#endif
}

size_t bytes_for(const pc__cuda_conv *s, const tiling &t)
{
    return places_of(*s, t, NULL, NULL);
}

template <class T, int POOL>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const origin<T> &from, const kernel_weights<T> &w,
            const patch_data<T> &d)
{
    const int groups = over(s->o, GROUP);
    const tiling t = best_tiling(s, bytes_for, groups);
    const size_t shared = bytes_for(s, t);
    const int tiles = (int)s->n * t.down * t.across, own = over(t.rows * t.columns * POOL * POOL, LANES);
    const int warps = own < 4 ? 4 : own; /* they bring the weights, too */
    const int most = over(blocks_for(s, shared, 24 / warps), groups), blocks = tiles < most ? tiles : most;
    const dim3 grid((unsigned)blocks, (unsigned)groups), threads((unsigned)warps * LANES);
    pc::start_grid(shallow_kernel<T, POOL>, grid, threads, shared, queue, s->early, *s, t, from, w, d,
                   sixteens_of(*s, t));
}

template <class T>
void forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight, const void *bias, void *y,
             uint8_t *argmax)
{
    const int taps = s->kh * s->kw;
    const origin<T> from = pictures<T>(s, x);
    const kernel_weights<T> w = {(const T *)weight, s->c * taps, taps, 1};
    const bool whole = s->o % EIGHT == 0 && on_16_bytes(y) && (uintptr_t)argmax % EIGHT == 0;
    const patch_data<T> d = {NULL, NULL, (const T *)bias, (T *)y, s->pool == 2 ? argmax : NULL, whole};
    if (s->pool == 2)
        launch<T, 2>(queue, s, from, w, d);
    else
        launch<T, 1>(queue, s, from, w, d);
}

/* The convolution whose result is dx: of dy as it is in front of pooling, by the kernel turned around. */
pc__cuda_conv turned_around(const pc__cuda_conv *s)
{
    pc__cuda_conv back = *s;
    back.ready_x = false;
    back.h = s->yh * s->pool, back.w = s->yw * s->pool;
    back.c = s->o, back.o = s->c;
    back.ph = s->kh - 1 - s->ph, back.pw = s->kw - 1 - s->pw;
    back.oh = back.yh = s->h, back.ow = back.yw = s->w;
    back.pool = 1, back.planes = 0, back.activation = ACTIVATION_NONE;
    return back;
}

template <class T>
void input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y, const uint8_t *argmax,
           const void *dy, void *dx)
{
    const pc__cuda_conv back = turned_around(s);
    const int taps = s->kh * s->kw;
    const origin<T> from = {(const T *)dy,
                            needs_y(*s) ? (const T *)y : NULL,
                            s->pool == 2 ? argmax : NULL,
                            back.h,
                            back.w,
                            back.c,
                            s->pool,
                            s->activation,
                            are_whole(dy, s->o)};
    const kernel_weights<T> w = {(const T *)weight + taps - 1, taps, s->c * taps, -1};
    const patch_data<T> d = {NULL, NULL, NULL, (T *)dx, NULL, s->c % EIGHT == 0 && on_16_bytes(dx)};
    launch<T, 1>(queue, &back, from, w, d);
}

} // namespace

bool pc__cuda_conv_shallow_fits(const pc__cuda_conv *s)
{
    return is_usual(s) && bytes_for(s, tiling_of(s, 1)) <= SHALLOW_SHARED;
}

bool pc__cuda_conv_shallow_input_fits(const pc__cuda_conv *s)
{
    const pc__cuda_conv back = turned_around(s);
    return s->sh == 1 && s->sw == 1 && s->pool <= 2 && s->yh > 0 && s->yw > 0 && pc__cuda_conv_shallow_fits(&back);
}

void pc__cuda_conv_shallow_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *weight,
                                   const void *bias, void *y, uint8_t *argmax)
{
    if (s->dtype == PC__CUDA_F16)
        forward<pc::f16>(queue, s, x, weight, bias, y, argmax);
    else
        forward<pc::bf16>(queue, s, x, weight, bias, y, argmax);
}

void pc__cuda_conv_shallow_input(cudaStream_t queue, const pc__cuda_conv *s, const void *weight, const void *y,
                                 const uint8_t *argmax, const void *dy, void *dx)
{
    if (s->dtype == PC__CUDA_F16)
        input<pc::f16>(queue, s, weight, y, argmax, dy, dx);
    else
        input<pc::bf16>(queue, s, weight, y, argmax, dy, dx);
}

/* shallow_weights.cu: the gradients of the weights and bias of a convolution of up to eight channels: a product over
 * the pixels of tiles, of what lies under each tap, eight numbers of a pixel, or four of it and four of its neighbour, and
 * of the gradient, spread over its windows. Four numbers lie in shared memory twice, once a pixel on, so that any two
 * neighbours lie on 16 bytes. A warp makes up to 64 of depth by 32 outputs; where one does for all of them the others
 * have pixels of their own, and the warps' sums are added in order. */
#include "cuda/conv/shallow.cuh"

#define SUMS_MOST ((size_t)64 << 20)

namespace
{

constexpr int WARPS = 8, EACH = 4, CHUNKS_OF_OUTPUTS = GROUP / EIGHT; /* EACH: sixteens of depth of a warp */

/* Depth runs over the eights of numbers under the taps; a sixteen are two of them. */
struct plan {
    tiling t;
    int eights_in_row, eights;       /* of a kernel's row, and in all */
    int groups, each, across, parts; /* blocks for the depth; sixteens of a warp; warps side by side, and over pixels */
    int pixels, beside, gradient, table, pieces;
    size_t shared;
};

template <class T> struct gradient_data {
    const T *y, *dy;
    const uint8_t *argmax;
    float *sums; /* [piece][depth + 1][o] */
    bool whole;
};

/* Eight outputs of a window. */
template <class T> struct outputs_of_window {
    eight<T> value, saved;
    eight<uint8_t> most;

    /* Numbers side by side, as many as there are. */
    template <class V> static __device__ inline void load(eight<V> &to, const V *from, bool whole, int left)
    {
        if (whole && left > 0)
            to = *(const eight<V> *)from;
#pragma unroll
        for (int j = 0; j < EIGHT; j++)
            if (!whole && j < left)
                to.at[j] = from[j];
    }

    __device__ inline void load(const pc__cuda_conv &s, const gradient_data<T> &d, long long from, int left)
    {
        value = saved = {};
        most = {};
        load(value, d.dy + from, d.whole, left);
        if (needs_y(s))
            load(saved, d.y + from, d.whole, left);
        if (s.pool == 2)
            load(most, d.argmax + from, d.whole, left);
    }

    /* Through the activation, to the window's pixels from `first` on; into the bias's gradient what no ReLU shut. */
    __device__ inline void store(const pc__cuda_conv &s, char *to, int first, int chunk, float (&bias)[EIGHT])
    {
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            if (needs_y(s))
                value.at[j] = T(activation_gradient(s.activation, (float)value.at[j], (float)saved.at[j]));
            bias[j] += most.at[j] < 4 ? (float)value.at[j] : 0.0f;
        }
#pragma unroll 1
        for (int q = 0; q < s.pool * s.pool; q++) {
            const eight<T> here = only(value, most, (unsigned)q);
            *(eight<T> *)(to + spot<CHUNKS_OF_OUTPUTS>(first + q, chunk)) = here;
        }
    }
};

/* Where the pixels of a tile have their first taps: those that are none in the zeros behind the tile. */
__device__ inline void place_pixels(const pc__cuda_conv &s, const plan &p, const tile_place &place, int *table)
{
    const tiling &t = p.t;
    const int up = s.pool == 2 ? 2 : 0, rows = min(t.rows, s.yh - place.row),
              columns = min(t.columns, s.yw - place.column);
    const division by_columns(t.columns);
    for (int i = threadIdx.x; i < p.pixels; i += blockDim.x) {
        const int window = i >> up, row = by_columns.of(window), column = window - row * t.columns;
        const int q = i - (window << up), down = row * s.pool + q / 2, right = column * s.pool + q % 2;
        table[i] = row < rows && column < columns ? down * s.sh * t.width + right * s.sw : t.height * t.width;
    }
}

/* A tile's gradient, window by window. A thread has the same outputs in all of them. */
template <class T>
__device__ inline void bring_gradient(const pc__cuda_conv &s, const plan &p, const gradient_data<T> &d,
                                      const tile_place &place, int eights, char *to, float (&bias)[EIGHT])
{
    const tiling &t = p.t;
    const int up = s.pool == 2 ? 2 : 0, rows = min(t.rows, s.yh - place.row),
              columns = min(t.columns, s.yw - place.column);
    const int across = eights == 1 ? 0 : eights == 2 ? 1 : 2, chunk = threadIdx.x & ((1 << across) - 1); /* as bits */
    const int o = blockIdx.y / p.groups * GROUP + chunk * EIGHT, items = p.pixels >> up << across;
    const division by_columns(t.columns);
    for (int item = threadIdx.x; item < items; item += blockDim.x) {
        const int window = item >> across, row = by_columns.of(window), column = window - row * t.columns;
        const bool there = row < rows && column < columns;
        const long long line = (long long)place.image * s.yh + place.row + row;
        outputs_of_window<T> part;
        part.load(s, d, (line * s.yw + place.column + column) * s.o + o, there ? s.o - o : 0);
        part.store(s, to, window << up, chunk, bias);
    }
}

/* This block's gradient of the bias: threads as far apart as there are eights of outputs have the same ones. */
__device__ inline void add_bias(const float (&bias)[EIGHT], int eights, float *parts, float *to, int outputs)
{
    __syncthreads();
#pragma unroll
    for (int j = 0; j < EIGHT; j++)
        parts[threadIdx.x * EIGHT + j] = bias[j];
    __syncthreads();
    const int apart = eights == 3 ? 4 : eights;
    for (int i = threadIdx.x; i < outputs; i += blockDim.x) {
        float all = 0;
        for (int k = i / EIGHT; k < (int)blockDim.x; k += apart)
            all += parts[k * EIGHT + i % EIGHT];
        to[i] = all;
    }
}

struct warp_sums {
    float sum[EACH][4][4]; /* [sixteen of depth][8 outputs][as add_tensor] */
};

#if TENSOR_UNITS
/* NUMBERS to a pixel; away: of this lane's eight of each sixteen, in pixels. */
template <class T, int NUMBERS>
__device__ inline void add_pixels(warp_sums &to, unsigned patch, int beside, const char *gradient, int pixel, int k,
                                  const int (&away)[EACH], int count, int eights)
{
    const int lane = threadIdx.x % LANES;
    unsigned b[2][4] = {};
    take_squares<true>(b[0], gradient + spot<CHUNKS_OF_OUTPUTS>(k * 16 + lane % 16, lane / 16));
    if (eights > 2)
        take_squares<true>(b[1], gradient + spot<CHUNKS_OF_OUTPUTS>(k * 16 + lane % 16, lane / 16 + 2));
#pragma unroll
    for (int m = 0; m < EACH; m++) {
        if (m >= count)
            break;
        const int at = pixel + away[m];
        unsigned a[4];
        take_squares<true>(a, NUMBERS == EIGHT ? patch + at * 16 : patch + (at >> 1) * 16 + (at & 1 ? beside : 0));
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const unsigned pair[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};
            if (n < eights)
                add_tensor(to.sum[m][n], a, pair, T());
        }
    }
}
#endif

/* The parts' sums to part 0's warps, the last first. */
__device__ inline void add_parts(warp_sums &sums, float *buffer, int part, int parts)
{
    const int lane = threadIdx.x % LANES;
    for (int q = parts - 1; q >= 0; q--) {
        __syncthreads();
        if (part != q)
            continue;
#pragma unroll
        for (int i = 0; i < EACH * 16; i++) {
            float *sum = &sums.sum[i / 16][i / 4 % 4][i % 4], *at = buffer + i * LANES + lane;
            *sum += q < parts - 1 ? *at : 0.0f;
            if (q > 0)
                *at = *sum;
        }
    }
}

template <class T, int NUMBERS>
__global__ void __launch_bounds__(WARPS *LANES, 2)
    shallow_weights_kernel(const pc__cuda_conv s, const plan p, const origin<T> from, const gradient_data<T> d)
{
#if TENSOR_UNITS
    extern __shared__ __align__(128) char shared[];
    const tiling &t = p.t;
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, part = warp / p.across;
    const int group = blockIdx.y % p.groups, begin = blockIdx.y / p.groups * GROUP;
    const int first = (group * p.across + warp % p.across) * p.each, sixteens = (p.eights + 1) / 2;
    const int count = min(p.each, sixteens - first), eights = min(4, (s.o - begin + 7) / 8);
    const int total = (int)s.n * t.down * t.across;
    char *beside = shared + p.beside, *gradient = shared + p.gradient;
    int *table = (int *)(shared + p.table), away[EACH];
#pragma unroll
    for (int m = 0; m < EACH; m++) {
        const int e = (first + m) * 2 + lane / 8 % 2, row = e / p.eights_in_row, in_row = e - row * p.eights_in_row;
        away[m] = e < p.eights ? row * t.width + in_row * (EIGHT / NUMBERS) : 0;
    }
    for (int i = t.height * t.width * NUMBERS * 2 + threadIdx.x * 8; i < p.gradient; i += blockDim.x * 8)
        if (NUMBERS == EIGHT || i < p.beside)
            *(uint2 *)(shared + i) = make_uint2(0, 0);
    for (int i = t.height * t.width * 8 - 8 + threadIdx.x * 8; NUMBERS < EIGHT && i < p.gradient - p.beside;
         i += blockDim.x * 8)
        *(uint2 *)(beside + i) = make_uint2(0, 0);
    float bias[EIGHT] = {};
    warp_sums sums = {};
    pc::wait_for_earlier();
    for (int at = blockIdx.x; at < total; at += gridDim.x) {
        const tile_place place(t, at);
        __syncthreads();
        bring<NUMBERS>(s, t, from, place, shared, NUMBERS == EIGHT ? NULL : beside);
        place_pixels(s, p, place, table);
        bring_gradient(s, p, d, place, eights, gradient, bias);
        __syncthreads();
        for (int k = part; k < p.pixels / 16; k += p.parts)
            add_pixels<T, NUMBERS>(sums, address_of(shared), p.beside, gradient,
                                   table[k * 16 + lane % 8 + lane / 16 * 8], k, away, count, eights);
    }
    const int depth = s.kh * s.kw * s.c;
    float *to = d.sums + (long long)blockIdx.x * (depth + 1) * s.o + begin;
    add_parts(sums, (float *)shared + warp % p.across * EACH * 16 * LANES, part, p.parts);
#pragma unroll
    for (int i = 0; i < EACH * 16; i++) {
        const int e = (first + i / 16) * 2 + i % 4 / 2, row = e / p.eights_in_row;
        const int column = (e - row * p.eights_in_row) * (EIGHT / NUMBERS) + lane / 4 / NUMBERS;
        const int c = lane / 4 % NUMBERS, o = i / 4 % 4 * 8 + lane % 4 * 2 + i % 2;
        if (part == 0 && i / 16 < count && e < p.eights && column < s.kw && c < s.c && begin + o < s.o)
            to[((row * s.kw + column) * (long long)s.c + c) * s.o + o] = sums.sum[i / 16][i / 4 % 4][i % 4];
    }
    if (group == 0)
        add_bias(bias, eights, (float *)shared, to + (long long)depth * s.o, min(GROUP, s.o - begin));
#endif
}

/* What lies where in shared memory: the tile and zeros behind it, as far as taps lie apart, perhaps a second time; the
 * gradient; where pixels lie. */
void lay_out(const pc__cuda_conv *s, const tiling &t, plan *p)
{
    const int across = EIGHT / t.numbers, pixels = t.rows * t.columns * s->pool * s->pool;
    p->t = t;
    p->eights_in_row = over(s->kw, across);
    p->eights = p->eights_in_row * s->kh;
    p->pixels = over(pixels, 16) * 16;
    const size_t behind = (size_t)(s->kh - 1) * t.width + p->eights_in_row * across + 1;
    const size_t patch = on_128(((size_t)t.height * t.width + behind) * t.numbers * 2);
    p->beside = (int)patch + 64; /* neighbours on other banks */
    p->gradient = (int)on_128(across == 1 ? patch : 2 * patch + 64);
    p->table = p->gradient + p->pixels * GROUP * 2;
    p->shared = (size_t)p->table + p->pixels * sizeof(int);
}

size_t bytes_for(const pc__cuda_conv *s, const tiling &t)
{
    plan p;
    lay_out(s, t, &p);
    return p.shared;
}

plan plan_of(const pc__cuda_conv *s)
{
    plan p;
    lay_out(s, tiling_of(s, 1), &p);
    const int sixteens = over(p.eights, 2), outputs = over(s->o, GROUP);
    p.groups = over(sixteens, WARPS * EACH);
    p.across = over(over(sixteens, p.groups), EACH);
    p.each = over(over(sixteens, p.groups), p.across);
    p.parts = WARPS / p.across;
    lay_out(s, best_tiling(s, bytes_for, p.groups * outputs), &p);
    const size_t threads = (size_t)p.across * p.parts * LANES, parts = threads * EIGHT * sizeof(float);
    const size_t sums = p.parts > 1 ? (size_t)p.across * EACH * 16 * LANES * sizeof(float) : 0;
    p.shared = p.shared > parts ? p.shared : parts;
    p.shared = p.shared > sums ? p.shared : sums;
    const long long tiles = s->n * p.t.down * p.t.across, blocks = over(blocks_for(s, p.shared, 2), p.groups * outputs);
    const long long room = (long long)(SUMS_MOST / ((size_t)(s->kh * s->kw * s->c + 1) * s->o * sizeof(float)));
    long long pieces = tiles < blocks ? tiles : blocks;
    pieces = pieces < room ? pieces : room;
    p.pieces = (int)(pieces < 1 ? 1 : pieces);
    return p;
}

template <class T, int NUMBERS>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const origin<T> &from, const gradient_data<T> &d)
{
    const dim3 grid((unsigned)p.pieces, (unsigned)(p.groups * over(s->o, GROUP)));
    void (*kernel)(pc__cuda_conv, plan, origin<T>, gradient_data<T>) = shallow_weights_kernel<T, NUMBERS>;
    pc::start_grid(kernel, grid, dim3((unsigned)(p.across * p.parts * LANES)), p.shared, queue, s->early, *s, p, from,
                   d);
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const plan &p, const void *x, const void *y,
              const uint8_t *argmax, const void *dy, float *sums)
{
    const origin<T> from = pictures<T>(s, x);
    const bool whole = s->o % EIGHT == 0 && on_16_bytes(dy) && on_16_bytes(y) && (uintptr_t)argmax % EIGHT == 0;
    const gradient_data<T> d = {(const T *)y, (const T *)dy, argmax, sums, whole};
    if (p.t.numbers == EIGHT)
        launch<T, 8>(queue, s, p, from, d);
    else
        launch<T, 4>(queue, s, p, from, d);
}

} // namespace

bool pc__cuda_conv_shallow_weights_fits(const pc__cuda_conv *s)
{
    return is_usual(s) && bytes_for(s, tiling_of(s, 1)) <= SHALLOW_SHARED;
}

size_t pc__cuda_conv_shallow_scratch(const pc__cuda_conv *s)
{
    return (size_t)plan_of(s).pieces * (s->kh * s->kw * s->c + 1) * s->o * sizeof(float);
}

void pc__cuda_conv_shallow_weights(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *y,
                                   const uint8_t *argmax, const void *dy, void *dweight, void *dbias, void *scratch)
{
    const plan p = plan_of(s);
    float *sums = (float *)scratch;
    if (s->dtype == PC__CUDA_F16)
        backward<pc::f16>(queue, s, p, x, y, argmax, dy, sums);
    else
        backward<pc::bf16>(queue, s, p, x, y, argmax, dy, sums);
    pc__cuda_conv_add_pieces(queue, s, sums, s->kh * s->kw * s->c, p.pieces, dweight, dbias);
}

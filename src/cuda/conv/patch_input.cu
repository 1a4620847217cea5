/* patch_input.cu: the gradient of the input from a patch of the gradient, spread over its pooling windows and
 * behind the activation while it is brought in. A warp makes 32 pixels of x. */
#include "cuda/conv/patch.cuh"

namespace
{

template <class T> struct back_data {
    const T *packed, *y, *dy;
    const uint8_t *argmax;
    T *dx;
    bool whole; /* channels of dx in eights that lie on 16 bytes */
};

__device__ inline int floor_half(int i)
{
    return i >= 0 ? i / 2 : (i - 1) / 2;
}

/* The patch's first pixel is (first, left) of the gradient before pooling. An item is eight channels of a window. */
template <class T, int NC, int POOL>
__device__ inline void spread_patch(const pc__cuda_conv &s, const cut &c, const back_data<T> &d, char *patch,
                                    long long image, int first, int left)
{
    const int top = POOL == 2 ? floor_half(first) : first, side = POOL == 2 ? floor_half(left) : left;
    const int high = POOL == 2 ? floor_half(first + c.height - 1) - top + 1 : c.height;
    const int wide = POOL == 2 ? floor_half(left + c.width - 1) - side + 1 : c.width;
    for (int item = threadIdx.x; item < high * wide * NC; item += blockDim.x) {
        const int window = item / NC, chunk = item % NC, down = window / wide;
        const int row = top + down, column = side + window - down * wide;
        eight<T> value = {};
        eight<uint8_t> most = {};
        if ((unsigned)row < (unsigned)s.yh && (unsigned)column < (unsigned)s.yw) {
            const long long at = ((image * s.yh + row) * s.yw + column) * s.o + chunk * EIGHT;
            value = pc::ahead((const eight<T> *)(d.dy + at));
            if (POOL == 2)
                most = pc::ahead((const eight<uint8_t> *)(d.argmax + at));
            if (needs_y(s)) {
                const eight<T> saved = pc::ahead((const eight<T> *)(d.y + at));
#pragma unroll
                for (int j = 0; j < EIGHT; j++)
                    value.at[j] = T(activation_gradient(s.activation, (float)value.at[j], (float)saved.at[j]));
            }
        }
#pragma unroll
        for (int q = 0; q < POOL * POOL; q++) {
            const int r = row * POOL + q / POOL - first, w = column * POOL + q % POOL - left;
            const eight<T> here = only(value, most, (unsigned)q);
            if ((unsigned)r < (unsigned)c.height && (unsigned)w < (unsigned)c.width)
                *(eight<T> *)(patch + spot<NC>(r * c.width + w, chunk)) = here;
        }
    }
}

template <class T, int NC, int NT, int POOL>
__global__ void __launch_bounds__(256, 2) patch_input_kernel(const pc__cuda_conv s, const cut c, const back_data<T> d)
{
    extern __shared__ __align__(128) char shared[];
    constexpr int N = NT * 8, MT = 2, ROWS = MT * 16;
    const int taps = s.kh * s.kw, lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, begin = blockIdx.y * N;
    const int total = (int)s.n * c.bands;
    char *weights = shared, *patch = shared + taps * N * NC * 16;
    bool ahead = s.ready_turned; /* all but the results, then */
    if (!ahead)
        pc::wait_for_earlier();
    send_weights<NC, NT>(weights, d.packed, taps, s.c, begin);
    for (int band = blockIdx.x; band < total; band += gridDim.x) {
        const int image = band / c.bands, first = (band - image * c.bands) * c.rows;
        const int count = min(c.rows, s.h - first) * s.w;
        const long long start = ((long long)image * s.h + first) * s.w;
        spread_patch<T, NC, POOL>(s, c, d, patch, image, first + s.ph - (s.kh - 1), s.pw - (s.kw - 1));
#if TENSOR_UNITS
        sent();
        wait_sent<0>();
#endif
        __syncthreads();
        for (int tile = warp; tile * ROWS < count; tile += blockDim.x / LANES) {
            int pixels[MT];
#pragma unroll
            for (int i = 0; i < MT; i++) {
                const int at = min(tile * ROWS + i * 16 + lane % 16, count - 1), row = at / s.w;
                pixels[i] = row * c.width + at - row * s.w;
            }
            patch_sums<T, NC, MT, NT> t;
            t.clear();
            for (int r = 0; r < s.kh; r++)
                for (int q = 0; q < s.kw; q++)
                    t.add(address_of(patch), address_of(weights), pixels, (s.kh - 1 - r) * c.width + s.kw - 1 - q,
                          (r * s.kw + q) * N);
            if (ahead)
                pc::wait_for_earlier();
            ahead = false;
#pragma unroll
            for (int q = 0; q < MT * 2; q++) {
                const int at = tile * ROWS + lane / 4 + q * 8;
#pragma unroll
                for (int h = 0; h < NT / 4; h++) {
                    const int channel = begin + h * 32 + lane % 4 * EIGHT, left = s.c - channel;
                    eight<T> value;
#pragma unroll
                    for (int j = 0; j < EIGHT; j++)
                        value.at[j] = T(t.sum[q / 2][h * 4 + j / 2][q % 2 * 2 + j % 2]);
                    if (at < count && left > 0)
                        store_eight(d.dx + (start + at) * s.c + channel, value, left, d.whole);
                }
            }
        }
        if (ahead) /* warps without a tile */
            pc::wait_for_earlier();
        ahead = false;
        __syncthreads();
    }
}

cut cut_of(const pc__cuda_conv *s, int rows)
{
    cut c;
    c.bands = over(s->h, rows);
    c.rows = over(s->h, c.bands);
    c.height = c.rows + s->kh - 1;
    c.width = (s->w + s->kw) / 2 * 2;
    return c;
}

size_t bytes_for(const pc__cuda_conv *s, const cut &c)
{
    return ((size_t)s->kh * s->kw * (s->c <= 32 ? 32 : 64) + (size_t)c.height * c.width) * s->o * 2;
}

/* Rows that make some 256 pixels, fewer where pictures are few. */
cut cut_for(const pc__cuda_conv *s)
{
    int rows = 256 / s->w;
    rows = rows < 1 ? 1 : rows < s->h ? rows : s->h;
    while (rows > 1 &&
           (s->n * over(s->h, rows) * 4 < 3 * s->multiprocessors || !fits_beside(s, bytes_for(s, cut_of(s, rows)))))
        rows--;
    return cut_of(s, rows);
}

template <class T, int NC, int NT, int POOL>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const back_data<T> &d)
{
    const cut c = cut_for(s);
    const size_t shared = bytes_for(s, c);
    const int tiles = over((long long)c.rows * s->w, 32), warps = tiles < 8 ? tiles : over(tiles, over(tiles, 8));
    const int bands = (int)s->n * c.bands, blocks = over(blocks_for(s, shared, 2), over(s->c, NT * 8));
    const dim3 grid((unsigned)(bands < blocks ? bands : blocks), (unsigned)over(s->c, NT * 8));
    pc::start_grid(patch_input_kernel<T, NC, NT, POOL>, grid, dim3((unsigned)((warps < 4 ? 4 : warps) * LANES)), shared,
                   queue, s->early, *s, c, d);
}

template <class T, int NC, int NT> void launch_pool(cudaStream_t queue, const pc__cuda_conv *s, const back_data<T> &d)
{
    s->pool == 2 ? launch<T, NC, NT, 2>(queue, s, d) : launch<T, NC, NT, 1>(queue, s, d);
}

template <class T>
void backward(cudaStream_t queue, const pc__cuda_conv *s, const void *packed, const void *y, const uint8_t *argmax,
              const void *dy, void *dx)
{
    const back_data<T> d = {
        (const T *)packed, (const T *)y, (const T *)dy, argmax, (T *)dx, s->c % EIGHT == 0 && on_16_bytes(dx)};
    if (s->o == 32)
        s->c <= 32 ? launch_pool<T, 4, 4>(queue, s, d) : launch_pool<T, 4, 8>(queue, s, d);
    else
        s->c <= 32 ? launch_pool<T, 8, 4>(queue, s, d) : launch_pool<T, 8, 8>(queue, s, d);
}

} // namespace

bool pc__cuda_conv_patch_input_fits(const pc__cuda_conv *s)
{
    return (s->o == 32 || s->o == 64) && s->sh == 1 && s->sw == 1 && s->pool <= 2 && s->kh * s->kw > 1 &&
           (double)s->n * s->h < INT32_MAX && over(s->c, 32) < 65536 &&
           s->kh * s->kw * (s->c <= 32 ? 32 : 64) * s->o * 2 <= WEIGHTS_MOST &&
           fits_alone(s, bytes_for(s, cut_of(s, 1)));
}

void pc__cuda_conv_patch_input(cudaStream_t queue, const pc__cuda_conv *s, const void *packed, const void *y,
                               const uint8_t *argmax, const void *dy, void *dx)
{
    if (s->dtype == PC__CUDA_F16)
        backward<pc::f16>(queue, s, packed, y, argmax, dy, dx);
    else
        backward<pc::bf16>(queue, s, packed, y, argmax, dy, dx);
}

/* patch.cu: the forward convolution from a patch. A warp makes eight pooling windows, or 32 pixels, by all outputs
 * of the block. Blocks stay and take band after band, so that weights are brought in once. */
#include "cuda/conv/patch_finish.cuh"

namespace
{

/* Pixel of the patch under row i of a tile (tap 0), the tile's windows in the order of memory. With pooling row i is
 * place i / 8 of window i % 8. */
template <int POOL> __device__ inline int pixel_of(const cut &c, int tile, int i, int wide, int count)
{
    const int at = POOL == 2 ? tile * 8 + i % 8 : tile * 32 + i, window = at < count ? at : count - 1;
    const int row = window / wide, column = window - row * wide;
    return POOL == 2 ? (2 * row + i / 16) * c.width + 2 * column + i / 8 % 2 : row * c.width + column;
}

template <class T, int NC, int NT, int POOL>
__global__ void __launch_bounds__(256, 2) patch_kernel(const pc__cuda_conv s, const cut c, const patch_data<T> d)
{
    extern __shared__ __align__(128) char shared[];
    constexpr int N = NT * 8;
    const int taps = s.kh * s.kw, lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, begin = blockIdx.y * N;
    const int total = (int)s.n * c.bands, side = POOL;
    char *weights = shared, *patch = shared + taps * N * NC * 16;
    float *bias = (float *)(patch + c.height * c.width * NC * 16);
    const staged<T> to = staged_at<T>(bias + N, c.rows * s.yw, N);
    const ending e = ending_of(s);
    for (int band = blockIdx.x; band < total; band += gridDim.x) {
        const int image = band / c.bands, first = (band - image * c.bands) * c.rows;
        const int count = min(c.rows, s.yh - first) * s.yw;
        const long long start = ((long long)image * s.yh + first) * s.yw;
        send_patch<NC>(patch, c, d.x + (long long)image * s.h * s.w * s.c, s.h, s.w, s.c, 0, first * side - s.ph, s.pw);
        if (band < (int)gridDim.x) {
            /* the kernel in front packs the weights; x was there before it began (shared/dependent_launch.cuh) */
            pc::wait_for_earlier();
            send_weights<NC, NT>(weights, d.weight, taps, s.o, begin);
            take_bias(s, d.bias, bias, N);
        }
#if TENSOR_UNITS
        sent();
        wait_sent<0>();
#endif
        __syncthreads();
        for (int tile = warp; tile * (32 / (POOL * POOL)) < count; tile += blockDim.x / LANES) {
            const int pixels[2] = {pixel_of<POOL>(c, tile, lane % 16, s.yw, count),
                                   pixel_of<POOL>(c, tile, lane % 16 + 16, s.yw, count)};
            patch_sums<T, NC, 2, NT> t;
            t.clear();
            for (int r = 0; r < s.kh; r++)
                for (int q = 0; q < s.kw; q++)
                    t.add(address_of(patch), address_of(weights), pixels, r * c.width + q, (r * s.kw + q) * N);
            emit<T, POOL>(s, e, d, to, t, bias, start, tile, count);
        }
        __syncthreads();
        if (s.planes)
            write_planes<T, POOL>(s, d, to, N, image, first, count);
    }
}

cut cut_of(const pc__cuda_conv *s, int rows)
{
    cut c;
    c.bands = over(s->yh, rows);
    c.rows = over(s->yh, c.bands);
    c.height = c.rows * s->pool + s->kh - 1;
    c.width = (s->yw * s->pool + s->kw) / 2 * 2;
    return c;
}

int outputs_of(const pc__cuda_conv *s)
{
    return s->o <= 32 ? 32 : 64;
}

size_t bytes_for(const pc__cuda_conv *s, const cut &c)
{
    const size_t chunk = (size_t)s->c * 2, outputs = (size_t)outputs_of(s);
    const size_t turned = s->planes ? (size_t)staged_bytes(c.rows * s->yw, (int)outputs) : 0;
    return (s->kh * s->kw * outputs + (size_t)c.height * c.width) * chunk + outputs * sizeof(float) + turned;
}

/* Rows of windows that make some seven tiles of eight windows, fewer where pictures are few. */
cut cut_for(const pc__cuda_conv *s)
{
    const int windows = s->pool == 2 ? 56 : 224;
    int rows = windows / s->yw;
    rows = rows < 1 ? 1 : rows < s->yh ? rows : s->yh;
    while (rows > 1 &&
           (s->n * over(s->yh, rows) * 4 < 3 * s->multiprocessors || !fits_beside(s, bytes_for(s, cut_of(s, rows)))))
        rows--;
    return cut_of(s, rows);
}

template <class T, int NC, int NT, int POOL>
void launch(cudaStream_t queue, const pc__cuda_conv *s, const patch_data<T> &d)
{
    const cut c = cut_for(s);
    const size_t shared = bytes_for(s, c);
    const int tiles = over((long long)c.rows * s->yw * POOL * POOL, 32),
              warps = tiles < 8 ? tiles : over(tiles, over(tiles, 8));
    const int bands = (int)s->n * c.bands, blocks = over(blocks_for(s, shared, 2), over(s->o, NT * 8));
    const dim3 grid((unsigned)(bands < blocks ? bands : blocks), (unsigned)over(s->o, NT * 8));
    pc::start_grid(patch_kernel<T, NC, NT, POOL>, grid, dim3((unsigned)(warps * LANES)), shared, queue, s->early, *s, c,
                   d);
}

template <class T, int NC, int NT> void launch_pool(cudaStream_t queue, const pc__cuda_conv *s, const patch_data<T> &d)
{
    s->pool == 2 ? launch<T, NC, NT, 2>(queue, s, d) : launch<T, NC, NT, 1>(queue, s, d);
}

template <class T>
void forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *packed, const void *bias, void *y,
             uint8_t *argmax)
{
    const bool whole = s->o % EIGHT == 0 && on_16_bytes(y) && (uintptr_t)argmax % EIGHT == 0;
    const patch_data<T> d = {(const T *)x, (const T *)packed, (const T *)bias, (T *)y, argmax, whole};
    if (s->c == 32)
        s->o <= 32 ? launch_pool<T, 4, 4>(queue, s, d) : launch_pool<T, 4, 8>(queue, s, d);
    else
        s->o <= 32 ? launch_pool<T, 8, 4>(queue, s, d) : launch_pool<T, 8, 8>(queue, s, d);
}

} // namespace

bool pc__cuda_conv_patch_fits(const pc__cuda_conv *s)
{
    return (s->c == 32 || s->c == 64) && s->sh == 1 && s->sw == 1 && s->pool <= 2 && s->kh * s->kw > 1 &&
           (double)s->n * s->yh < INT32_MAX && over(s->o, 64) < 65536 &&
           s->kh * s->kw * outputs_of(s) * s->c * 2 <= WEIGHTS_MOST && fits_alone(s, bytes_for(s, cut_of(s, 1)));
}

void pc__cuda_conv_patch_forward(cudaStream_t queue, const pc__cuda_conv *s, const void *x, const void *packed,
                                 const void *bias, void *y, uint8_t *argmax)
{
    if (s->dtype == PC__CUDA_F16)
        forward<pc::f16>(queue, s, x, packed, bias, y, argmax);
    else
        forward<pc::bf16>(queue, s, x, packed, bias, y, argmax);
}

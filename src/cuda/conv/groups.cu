/* groups.cu: convolutions with taps apart or channels in groups, of any size and type, and what leads back: products of
 * matrices for each group whose elements are found as they are loaded. cuDNN is faster where it does these (convolve.c). */
#include "cuda/conv/depthwise.cuh"

namespace
{

constexpr int DEPTH = 16, SIDE = 4 /* results of a thread down and across */, GRID_MOST = 65535;

/* n / by; what is left over stays in n. */
__device__ __forceinline__ int divide(int *n, int by)
{
    const int whole = *n / by;
    *n -= whole * by;
    return whole;
}

/* y: a row of the product is a place, a column an output of the group, and sums go over taps and channels. */
template <class T> struct forward_job {
    pc__cuda_groups s;
    const T *x, *weight, *bias;
    T *to;
    int cg, og;
    struct row {
        const T *picture;
        int top, left;
    };
    __device__ long long rows() const
    {
        return s.n * s.oh * s.ow;
    }
    __device__ int columns() const
    {
        return og;
    }
    __device__ void range(long long *begin, long long *end) const
    {
        *begin = 0, *end = (long long)cg * s.kh * s.kw;
    }
    __device__ row row_of(long long m, int group) const
    {
        const place at = place_of(m, s.oh, s.ow);
        return {x + at.picture * s.h * s.w * s.c + group * cg, at.row * s.sh - s.ph, at.column * s.sw - s.pw};
    }
    __device__ T a(const row &at, long long depth, int) const
    {
        int c = static_cast<int>(depth), tap = divide(&c, cg), k = tap;
        const int r = divide(&k, s.kw), row = at.top + r * s.dh, column = at.left + k * s.dw;
        const bool inside = (unsigned)row < (unsigned)s.h && (unsigned)column < (unsigned)s.w;
        return inside ? at.picture[(row * s.w + column) * s.c + c] : T(0.f);
    }
    __device__ T b(int n, long long depth, int group) const
    {
        int c = static_cast<int>(depth), tap = divide(&c, cg);
        return weight[((long long)(group * og + n) * cg + c) * s.kh * s.kw + tap];
    }
    __device__ void store(long long m, int n, int group, pc::math<T> sum) const
    {
        const int o = group * og + n;
        to[m * s.o + o] = T(bias ? sum + pc::math<T>(bias[o]) : sum);
    }
};

/* x: a row is a place of x, a column a channel of the group, and sums go over taps and outputs. */
template <class T> struct input_job {
    pc__cuda_groups s;
    const T *y, *weight;
    T *to;
    int cg, og;
    struct row {
        const T *picture;
        int top, left;
    };
    __device__ long long rows() const
    {
        return s.n * s.h * s.w;
    }
    __device__ int columns() const
    {
        return cg;
    }
    __device__ void range(long long *begin, long long *end) const
    {
        *begin = 0, *end = (long long)og * s.kh * s.kw;
    }
    __device__ row row_of(long long m, int group) const
    {
        const place at = place_of(m, s.h, s.w);
        return {y + at.picture * s.oh * s.ow * s.o + group * og, at.row + s.ph, at.column + s.pw};
    }
    __device__ T a(const row &at, long long depth, int) const
    {
        int o = static_cast<int>(depth), tap = divide(&o, og), k = tap;
        const int r = divide(&k, s.kw), top = at.top - r * s.dh, left = at.left - k * s.dw;
        const int row = top / s.sh, column = left / s.sw;
        const bool inside =
            top >= 0 && left >= 0 && row * s.sh == top && column * s.sw == left && row < s.oh && column < s.ow;
        return inside ? at.picture[(row * s.ow + column) * s.o + o] : T(0.f);
    }
    __device__ T b(int n, long long depth, int group) const
    {
        int o = static_cast<int>(depth), tap = divide(&o, og);
        return weight[((long long)(group * og + o) * cg + n) * s.kh * s.kw + tap];
    }
    __device__ void store(long long m, int n, int group, pc::math<T> sum) const
    {
        to[m * s.c + group * cg + n] = T(sum);
    }
};

/* The weight: a row is an output of the group, a column a channel's tap, and sums go over a part of all places. */
template <class T> struct weight_job {
    pc__cuda_groups s;
    const T *x, *y;
    pc::math<T> *to; /* [part][o][c / groups][taps] */
    int cg, og;
    long long places; /* of a part */
    struct row {
        const T *y;
    };
    __device__ long long rows() const
    {
        return og;
    }
    __device__ int columns() const
    {
        return cg * s.kh * s.kw;
    }
    __device__ void range(long long *begin, long long *end) const
    {
        const long long all = s.n * s.oh * s.ow;
        *begin = (blockIdx.y / tiles()) * places;
        *end = *begin + places < all ? *begin + places : all;
    }
    __device__ unsigned tiles() const /* across */
    {
        return (columns() + 31) / 32;
    }
    __device__ row row_of(long long m, int group) const
    {
        return {y + group * og + m};
    }
    __device__ T a(const row &at, long long depth, int) const
    {
        return at.y[depth * s.o];
    }
    __device__ T b(int n, long long depth, int group) const
    {
        const place at = place_of(depth, s.oh, s.ow);
        int k = n, c = divide(&k, s.kh * s.kw);
        const int r = divide(&k, s.kw), row = at.row * s.sh - s.ph + r * s.dh,
                  column = at.column * s.sw - s.pw + k * s.dw;
        const bool inside = (unsigned)row < (unsigned)s.h && (unsigned)column < (unsigned)s.w;
        return inside ? x[((at.picture * s.h + row) * s.w + column) * s.c + group * cg + c] : T(0.f);
    }
    __device__ void store(long long m, int n, int group, pc::math<T> sum) const
    {
        const long long part = blockIdx.y / tiles();
        to[((part * s.o + group * og + m) * cg) * s.kh * s.kw + n] = sum;
    }
};

/* A tile of DOWN x ACROSS results, of which a thread has SIDE x WIDE; blockIdx.y counts tiles across, of each part in turn. */
template <int DOWN, int ACROSS, int WIDE> constexpr int threads_of()
{
    constexpr int COUNT = DOWN * ACROSS / SIDE / WIDE;
    static_assert(COUNT % DOWN == 0 && COUNT % ACROSS == 0, "threads load whole rows of a tile");
    return COUNT;
}

template <class T, class Job, int DOWN, int ACROSS, int WIDE>
__global__ void __launch_bounds__(threads_of<DOWN, ACROSS, WIDE>())
    products(const __grid_constant__ Job job, int groups)
{
    typedef pc::math<T> M;
    constexpr int COUNT = threads_of<DOWN, ACROSS, WIDE>();
    __shared__ M a[DEPTH][DOWN], b[DEPTH][ACROSS];
    const int thread = threadIdx.x, tiles = (job.columns() + ACROSS - 1) / ACROSS;
    const long long row = (long long)blockIdx.x * DOWN;
    const int column = blockIdx.y % tiles * ACROSS, down = thread % (DOWN / SIDE), across = thread / (DOWN / SIDE);
    long long begin, end;
    job.range(&begin, &end);
    pc::wait_for_earlier();
    for (int group = blockIdx.z; group < groups; group += gridDim.z) {
        M sum[SIDE][WIDE] = {};
        const long long m = row + thread % DOWN;
        const bool there = m < job.rows();
        const typename Job::row mine = job.row_of(there ? m : 0, group);
        const int n = column + thread % ACROSS;
        for (long long depth = begin; depth < end; depth += DEPTH) {
            for (int k = thread / DOWN; k < DEPTH; k += COUNT / DOWN)
                a[k][thread % DOWN] = there && depth + k < end ? M(job.a(mine, depth + k, group)) : M(0);
            for (int k = thread / ACROSS; k < DEPTH; k += COUNT / ACROSS)
                b[k][thread % ACROSS] = n < job.columns() && depth + k < end ? M(job.b(n, depth + k, group)) : M(0);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < DEPTH; k++)
#pragma unroll
                for (int i = 0; i < SIDE; i++)
#pragma unroll
                    for (int j = 0; j < WIDE; j++)
                        sum[i][j] += a[k][down + i * (DOWN / SIDE)] * b[k][across + j * (ACROSS / WIDE)];
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < SIDE; i++)
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                const long long to = row + down + i * (DOWN / SIDE);
                const int at = column + across + j * (ACROSS / WIDE);
                if (to < job.rows() && at < job.columns())
                    job.store(to, at, group, sum[i][j]);
            }
    }
}

template <class T, class Job, int DOWN, int ACROSS, int WIDE>
void launch_tiles(const pc__cuda_groups *s, const Job &job, long long rows, int columns, int parts)
{
    const unsigned down = (unsigned)((rows + DOWN - 1) / DOWN), across = (columns + ACROSS - 1) / ACROSS;
    const dim3 grid(down, across * parts, s->groups < GRID_MOST ? s->groups : GRID_MOST);
    (void)pc::start_grid(products<T, Job, DOWN, ACROSS, WIDE>, grid, dim3(threads_of<DOWN, ACROSS, WIDE>()), 0,
                         s->queue, s->early, job, s->groups);
}

/* Few columns, as of small groups, have tiles that are longer and no wider. */
template <class T, class Job>
void launch(const pc__cuda_groups *s, const Job &job, long long rows, int columns, int parts)
{
    if (columns <= 8 && parts == 1)
        launch_tiles<T, Job, 128, 8, 2>(s, job, rows, columns, parts);
    else
        launch_tiles<T, Job, 64, 32, 4>(s, job, rows, columns, parts);
}

enum { PARTS = 64, LEAST = 512 /* places of a part */ };

/* How many parts there are, and places in each. */
int parts_of(const pc__cuda_groups *s, long long *places)
{
    const long long pixels = s->n * s->oh * s->ow, tiles = (s->c / s->groups * s->kh * s->kw + 31) / 32;
    const long long wanted = (pixels + LEAST - 1) / LEAST, most = GRID_MOST / tiles < PARTS ? GRID_MOST / tiles : PARTS;
    const long long parts = wanted < most ? wanted : most;
    *places = (pixels + parts - 1) / parts;
    return (int)((pixels + *places - 1) / *places);
}

template <class T> void forward(const pc__cuda_groups *s, const void *x, const void *weight, const void *bias, void *y)
{
    const int cg = s->c / s->groups, og = s->o / s->groups;
    const forward_job<T> job = {*s, (const T *)x, (const T *)weight, (const T *)bias, (T *)y, cg, og};
    launch<T>(s, job, s->n * s->oh * s->ow, og, 1);
}

template <class T> void input(const pc__cuda_groups *s, const void *weight, const void *y, void *x)
{
    const int cg = s->c / s->groups, og = s->o / s->groups;
    const input_job<T> job = {*s, (const T *)y, (const T *)weight, (T *)x, cg, og};
    launch<T>(s, job, s->n * s->h * s->w, cg, 1);
}

template <class T> void weight_of(const pc__cuda_groups *s, const void *x, const void *y, void *weight, void *scratch)
{
    const int cg = s->c / s->groups, og = s->o / s->groups;
    weight_job<T> job = {*s, (const T *)x, (const T *)y, (pc::math<T> *)scratch, cg, og, 0};
    const int parts = parts_of(s, &job.places);
    launch<T>(s, job, og, cg * s->kh * s->kw, parts);
    pc__cuda_groups_add(s, scratch, parts, (long long)s->o * cg * s->kh * s->kw, weight);
}

} // namespace

void pc__cuda_groups_forward(const pc__cuda_groups *s, const void *x, const void *weight, const void *bias, void *y)
{
    with_number(s->dtype, [&](auto number) { forward<decltype(number)>(s, x, weight, bias, y); });
}

void pc__cuda_groups_input(const pc__cuda_groups *s, const void *weight, const void *y, void *x)
{
    with_number(s->dtype, [&](auto number) { input<decltype(number)>(s, weight, y, x); });
}

size_t pc__cuda_groups_scratch(const pc__cuda_groups *s)
{
    long long places;
    return (size_t)parts_of(s, &places) * (size_t)s->o * (size_t)(s->c / s->groups) * (size_t)(s->kh * s->kw) *
           (s->dtype == PC__CUDA_F64 ? sizeof(double) : sizeof(float));
}

void pc__cuda_groups_weight(const pc__cuda_groups *s, const void *x, const void *y, void *weight, void *scratch)
{
    with_number(s->dtype, [&](auto number) { weight_of<decltype(number)>(s, x, y, weight, scratch); });
}

/* plain.cuh: tiles of products without matrix units. A block of 16 x 16 threads has a tile of SIDE x SIDE sums, N x N of
 * them a thread: those of rows N y and columns N x onwards, where thread 16 y + x has x in the lanes of half a warp. */
#ifndef PC__CUDA_ATTENTION_PLAIN_CUH
#define PC__CUDA_ATTENTION_PLAIN_CUH

#include "cuda/attention/score.cuh"
#include "cuda/shared/dependent_launch.cuh"

namespace
{

constexpr int ACROSS = 16, THREADS = ACROSS * ACROSS, DEEP = 16;

/* Sums of a thread by type, as shared memory holds tiles. */
template <class T> struct cut {
    static constexpr int N = sizeof(T) == 8 ? 2 : 4;
    static constexpr int SIDE = N * ACROSS;
};

template <class T> struct tiles {
    static constexpr int SIDE = cut<T>::SIDE, PITCH = SIDE + cut<T>::N;
    __align__(16) T left[DEEP][PITCH]; /* of a product along rows */
    __align__(16) T right[DEEP][PITCH];
    __align__(16) T weights[SIDE][PITCH]; /* [column of the tile][row of it] */
    __align__(16) T rows[SIDE][SIDE];     /* what those multiply */
};

/* The N numbers of a thread, which lie on 16 bytes: read one by one, reading takes as long as four times the products. */
template <class T> struct __align__(16) own
{
    T at[cut<T>::N];
};

template <class T> __device__ inline own<T> own_of(const T *at)
{
    return *reinterpret_cast<const own<T> *>(at);
}

/* sums += the products of each number of one with each of the other */
template <class T, int N = cut<T>::N>
__device__ inline void add_products(const own<T> &one, const own<T> &other, T (&sums)[N][N])
{
#pragma unroll
    for (int r = 0; r < N; r++)
#pragma unroll
        for (int c = 0; c < N; c++)
            sums[r][c] += one.at[r] * other.at[c];
}

/* Rows of a matrix of the batch. */
template <class T> struct lines {
    const T *at;
    int64_t row, column;
    int count, size;

    __device__ T get(int i, int e) const
    {
        return i < count && e < size ? at[i * row + e * column] : T(0);
    }
};

template <class T>
__device__ inline lines<T> lines_of(const pc__cuda_attention &a, const pc__cuda_matrices &m, int64_t batch, int count,
                                    int size)
{
    return {matrix<const T>(a, m, batch), m.row, m.column, count, size};
}

/* sums = the products of rows from `i` on of one with rows from `j` on of the other. */
template <class T, int N = cut<T>::N>
__device__ inline void multiply_rows(tiles<T> &t, const lines<T> &one, int i, const lines<T> &other, int j,
                                     T (&sums)[N][N])
{
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
#pragma unroll
    for (int r = 0; r < N; r++)
#pragma unroll
        for (int c = 0; c < N; c++)
            sums[r][c] = 0;
    for (int e = 0; e < one.size; e += DEEP) {
        __syncthreads();
        for (int n = threadIdx.x; n < DEEP * tiles<T>::SIDE; n += THREADS) {
            t.left[n % DEEP][n / DEEP] = one.get(i + n / DEEP, e + n % DEEP);
            t.right[n % DEEP][n / DEEP] = other.get(j + n / DEEP, e + n % DEEP);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEEP; k++)
            add_products(own_of(&t.left[k][y * N]), own_of(&t.right[k][x * N]), sums);
    }
}

/* The tile of values as weights of what comes next. */
template <class T, int N = cut<T>::N> __device__ inline void keep_weights(tiles<T> &t, const T (&values)[N][N])
{
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < N; r++)
#pragma unroll
        for (int c = 0; c < N; c++)
            t.weights[x * N + c][y * N + r] = values[r][c];
}

/* sums += the tile of weights times rows from `j` on, of columns from `column` on. */
template <class T, int N = cut<T>::N>
__device__ inline void add_rows(tiles<T> &t, const lines<T> &of, int j, int column, T (&sums)[N][N])
{
    constexpr int SIDE = tiles<T>::SIDE;
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
    __syncthreads();
    for (int n = threadIdx.x; n < SIDE * SIDE; n += THREADS)
        t.rows[n / SIDE][n % SIDE] = of.get(j + n / SIDE, column + n % SIDE);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < SIDE; k++)
        add_products(own_of(&t.weights[k][y * N]), own_of(&t.rows[k][x * N]), sums);
}

/* Rows from `i` on, columns from `column` on, of a matrix = the sums, each row's times its `by`. */
template <class T, int N = cut<T>::N>
__device__ inline void put_rows(const pc__cuda_attention &a, const pc__cuda_matrices &m, int64_t batch, int count,
                                int size, int i, int column, const T (&sums)[N][N], const T (&by)[N])
{
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
    T *to = matrix<T>(a, m, batch);
#pragma unroll
    for (int r = 0; r < N; r++)
#pragma unroll
        for (int c = 0; c < N; c++) {
            const int row = i + y * N + r, e = column + x * N + c;
            if (row < count && e < size)
                to[row * m.row + e * m.column] = sums[r][c] * by[r];
        }
}

/* Launch `kernel` with blocks of a tile of rows each and `parts` of the columns of what it writes. */
template <class... P>
void start_tiles(const pc__cuda_attention *a, void (*kernel)(pc__cuda_attention), int rows, int side, int columns)
{
    const int64_t tiles_of = (rows + side - 1) / side, parts = (columns + side - 1) / side;
    const int64_t blocks = a->batches * tiles_of;
    if (blocks > 0 && parts > 0)
        (void)pc::start_grid(kernel, dim3((unsigned)blocks, (unsigned)parts), dim3(THREADS), 0, a->queue, a->early, *a);
}

} // namespace

#endif

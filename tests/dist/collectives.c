/* What collectives make of every rank's tensors, against the formula, for every dtype that has it. */
#include "dist/threads.h"

#include <math.h>

enum { N = 1500 }; /* more than a block, and not a whole number of them */

/* Element i of rank r: small whole numbers, which every dtype has and whose sums are exact. */
static double element(int r, int64_t i)
{
    return (double)((i * 7 + r * 3) % 5 + r);
}

/* NULL: the error is recorded. Other ranks' parts of it are named by `from`. */
static pc_tensor *made(int r, int64_t n, pc_dtype dtype, pc_device device)
{
    float x[8 * N];
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)element(r, i);
    return pc_cast(pc_from_data(x, PC_SHAPE(n), PC_F32, device), dtype);
}

static bool holds(rank_work *r, pc_tensor *t, double (*want)(int r, int size, int64_t i))
{
    float x[8 * N];
    const int64_t n = pc_tensor_count(t);
    if (pc_read(pc_cast(t, PC_F32), x, (size_t)n * sizeof *x) != PC_OK)
        return false;
    for (int64_t i = 0; i < n; i++)
        if ((double)x[i] != want(r->rank, r->size, i)) {
            r->error.status = PC_ERR_STATE;
            snprintf(r->error.message, sizeof r->error.message, "element %lld is %g, not %g", (long long)i,
                     (double)x[i], want(r->rank, r->size, i));
            return false;
        }
    return true;
}

static double sum_of(int rank, int size, int64_t i)
{
    (void)rank;
    double sum = 0;
    for (int r = 0; r < size; r++)
        sum += element(r, i);
    return sum;
}

static double least_of(int rank, int size, int64_t i)
{
    (void)rank;
    double least = element(0, i);
    for (int r = 1; r < size; r++)
        least = element(r, i) < least ? element(r, i) : least;
    return least;
}

static double greatest_of(int rank, int size, int64_t i)
{
    (void)rank;
    double greatest = element(0, i);
    for (int r = 1; r < size; r++)
        greatest = element(r, i) > greatest ? element(r, i) : greatest;
    return greatest;
}

static double last_ranks(int rank, int size, int64_t i)
{
    (void)rank;
    return element(size - 1, i);
}

static double gathered(int rank, int size, int64_t i)
{
    (void)rank, (void)size;
    return element((int)(i / N), i % N);
}

static double own_part_of_sum(int rank, int size, int64_t i)
{
    return sum_of(rank, size, rank * (int64_t)N + i);
}

static double own_part_of_first(int rank, int size, int64_t i)
{
    (void)size;
    return element(0, rank * (int64_t)N + i);
}

static double exchanged(int rank, int size, int64_t i)
{
    (void)size;
    return element((int)(i / N), rank * (int64_t)N + i % N);
}

static double before_it(int rank, int size, int64_t i)
{
    return element((rank + size - 1) % size, i);
}

static void reductions(rank_work *r)
{
    const pc_dtype dtype = *(const pc_dtype *)r->context;
    PC_SCOPE {
        pc_tensor *t = made(r->rank, N, dtype, r->device);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_SUM));
        RANK_TRUE(holds(r, t, sum_of));
        t = made(r->rank, N, dtype, r->device);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_MIN));
        RANK_TRUE(holds(r, t, least_of));
        t = made(r->rank, N, dtype, r->device);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_MAX));
        RANK_TRUE(holds(r, t, greatest_of));
        t = made(r->rank, N, dtype, r->device);
        RANK_OK(pc_group_reduce(r->group, t, PC_GROUP_SUM, r->size - 1));
        RANK_TRUE(r->rank < r->size - 1 || holds(r, t, sum_of));
        pc_tensor *part = made(0, N, dtype, r->device);
        RANK_OK(pc_group_reduce_scatter(r->group, part, made(r->rank, (int64_t)r->size * N, dtype, r->device),
                                        PC_GROUP_SUM));
        RANK_TRUE(holds(r, part, own_part_of_sum));
    }
}

static void moves(rank_work *r)
{
    const pc_dtype dtype = *(const pc_dtype *)r->context;
    PC_SCOPE {
        pc_tensor *own = made(r->rank, N, dtype, r->device), *all = made(9, (int64_t)r->size * N, dtype, r->device);
        RANK_OK(pc_group_all_gather(r->group, all, own));
        RANK_TRUE(holds(r, all, gathered));
        const bool is_last = r->rank == r->size - 1;
        pc_tensor *root = is_last ? made(9, (int64_t)r->size * N, dtype, r->device) : NULL;
        RANK_OK(pc_group_gather(r->group, root, own, r->size - 1));
        RANK_TRUE(!is_last || holds(r, root, gathered));
        pc_tensor *part = made(9, N, dtype, r->device);
        RANK_OK(pc_group_scatter(r->group, part, r->rank ? NULL : made(0, (int64_t)r->size * N, dtype, r->device), 0));
        RANK_TRUE(holds(r, part, own_part_of_first));
        RANK_OK(pc_group_all_to_all(r->group, all, made(r->rank, (int64_t)r->size * N, dtype, r->device)));
        RANK_TRUE(holds(r, all, exchanged));
        RANK_OK(pc_group_broadcast(r->group, own, r->size - 1));
        RANK_TRUE(holds(r, own, last_ranks));
    }
}

static void around(rank_work *r)
{
    const pc_dtype dtype = *(const pc_dtype *)r->context;
    const int next = (r->rank + 1) % r->size, before = (r->rank + r->size - 1) % r->size;
    if (r->size == 1)
        return;
    PC_SCOPE {
        pc_tensor *own = made(r->rank, N, dtype, r->device), *other = made(9, N, dtype, r->device);
        for (int turn = 0; turn < 2; turn++)
            if (turn == r->rank % 2)
                RANK_OK(pc_group_send(r->group, own, next));
            else
                RANK_OK(pc_group_receive(r->group, other, before));
        RANK_TRUE(r->size % 2 || holds(r, other, before_it));
    }
}

static void for_each(void (*work)(rank_work *), int sizes[], int n, bool odd)
{
    static pc_dtype dtypes[] = {PC_U8, PC_I32, PC_I64, PC_F16, PC_BF16, PC_F32, PC_F64};
    const int most = ranks_most();
    for (int i = 0; i < n; i++)
        for (int k = 0; k < (int)(sizeof dtypes / sizeof *dtypes); k++)
            if (sizes[i] <= most && (odd || sizes[i] % 2 == 0) && (!for_races() || (i + k) % 3 == 0))
                ranks_work(sizes[i], work, &dtypes[k]);
}

static void reductions_of_every_dtype(void **state)
{
    (void)state;
    for_each(reductions, (int[]){1, 2, 3, 4, 8}, 5, true);
}

static void moves_of_every_dtype(void **state)
{
    (void)state;
    for_each(moves, (int[]){1, 2, 3, 4, 8}, 5, true);
}

static void sends_and_receives(void **state)
{
    (void)state;
    for_each(around, (int[]){2, 4}, 2, false);
}

/* --- booleans, and what is rounded --- */

/* Any and all. */
static void booleans(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *index = pc_arange(0, 20, 1, PC_I32, r->device),
                  *own = pc_full(PC_SHAPE(20), r->rank, PC_I32, r->device);
        pc_tensor *all = pc_ge(index, own), *any = pc_eq(index, own);
        RANK_OK(pc_group_all_reduce(r->group, all, PC_GROUP_MIN));
        RANK_OK(pc_group_all_reduce(r->group, any, PC_GROUP_MAX));
        bool is_all[20], is_any[20];
        RANK_OK(pc_read(all, is_all, sizeof is_all));
        RANK_OK(pc_read(any, is_any, sizeof is_any));
        for (int i = 0; i < 20; i++)
            RANK_TRUE(is_all[i] == (i >= r->size - 1) && is_any[i] == (i < r->size));
    }
}

/* One and many small numbers, each of which is less than half of what one can tell: the sum is rounded once. */
static void half_sums(rank_work *r)
{
    PC_SCOPE {
        const double part = 1.0 / 4096, want = 1 + (r->size - 1) * part;
        pc_tensor *t = pc_full(PC_SHAPE(9), r->rank ? part : 1, PC_F16, r->device);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_SUM));
        RANK_TRUE(pc_item(pc_min(t)) == (double)pc_f16_to_float(pc_f16_from_float((float)want)));
    }
}

static void booleans_and_halves(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most; n++) {
        ranks_work(n, booleans, NULL);
        if (test_device().type != PC_CUDA)
            ranks_work(n, half_sums, NULL);
    }
}

/* --- means, orders of memory, gaps --- */

static double mean_of(int rank, int size, int64_t i)
{
    return (double)(float)(sum_of(rank, size, i) / size);
}

static void means(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = made(r->rank, N, PC_F32, r->device);
        RANK_OK(pc_group_all_reduce(r->group, t, PC_GROUP_MEAN));
        RANK_TRUE(holds(r, t, mean_of));
    }
}

static void strided(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = made(r->rank, 3 * 4, PC_F32, r->device), *rows = pc_reshape(t, PC_SHAPE(3, 4));
        pc_tensor *turned = pc_transpose(rows, 0, 1), *column = pc_slice(rows, 1, 1, 2, 1);
        RANK_OK(pc_group_all_reduce(r->group, turned, PC_GROUP_SUM)); /* dense: in its own order */
        RANK_TRUE(holds(r, t, sum_of));
        RANK_OK(pc_group_all_reduce(r->group, column, PC_GROUP_SUM)); /* the others stay */
        float x[12];
        RANK_OK(pc_read(t, x, sizeof x));
        for (int i = 0; i < 12; i++)
            RANK_TRUE((double)x[i] == sum_of(0, r->size, i) * (i % 4 == 1 ? r->size : 1));
        pc_tensor *none = pc_zeros(PC_SHAPE(0, 3), PC_F32, r->device);
        RANK_OK(pc_group_all_reduce(r->group, none, PC_GROUP_SUM));
        RANK_OK(pc_group_all_gather(r->group, none, none));
    }
}

static void means_and_strides(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most; n *= 2) {
        ranks_work(n, means, NULL);
        ranks_work(n, strided, NULL);
    }
}

/* --- order with other work, and recordings --- */

/* What is computed before and behind it on the current stream needs no waits of the program. */
static void ordered(rank_work *r)
{
    PC_SCOPE {
        pc_tensor *t = made(r->rank, N, PC_F32, r->device), *sum = NULL;
        for (int i = 0; i < 4; i++) {
            pc_tensor *doubled = pc_mul_scalar(t, 2);
            RANK_OK(pc_group_all_reduce(r->group, doubled, PC_GROUP_SUM));
            sum = pc_sub(doubled, t);
        }
        float x[N];
        RANK_OK(pc_read(sum, x, sizeof x));
        for (int i = 0; i < N; i++)
            RANK_TRUE((double)x[i] == 2 * sum_of(0, r->size, i) - element(r->rank, i));
    }
}

/* Every launch adds once more. */
static void recorded(rank_work *r)
{
    pc_stream *stream = pc_stream(r->device);
    pc_graph *graph = NULL;
    PC_SCOPE {
        pc_tensor *t = made(1, N, PC_F32, r->device), *all = pc_zeros(PC_SHAPE(r->size * N), PC_F32, r->device);
        RANK_TRUE(pc_group_stream(r->group, r->device));
        RANK_OK(pc_device_synchronize(r->device));
        PC_WITH_STREAM(stream) {
            RANK_OK(pc_graph_begin(stream));
            pc_tensor *same = pc_mul_scalar(t, 1);
            RANK_OK(pc_group_all_reduce(r->group, same, PC_GROUP_SUM));
            RANK_OK(pc_copy(t, same));
            RANK_OK(pc_group_all_gather(r->group, all, t));
            graph = pc_graph_end(stream);
        }
        RANK_TRUE(graph);
        for (int i = 0; i < 3; i++)
            RANK_OK(pc_graph_launch(graph, NULL));
        float x[8 * N];
        RANK_OK(pc_read(all, x, (size_t)r->size * N * sizeof *x));
        for (int i = 0; i < r->size * N; i++)
            RANK_TRUE((double)x[i] == element(1, i % N) * r->size * r->size * r->size);
    }
    pc_graph_free(graph);
    pc_stream_free(stream);
}

static void order_and_recordings(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most; n *= 2) {
        ranks_work(n, ordered, NULL);
        ranks_work(n, recorded, NULL);
    }
}

/* --- parts of groups --- */

/* Even and odd ranks; within them, backwards. */
static void split(rank_work *r)
{
    pc_group *half = NULL, *one = NULL;
    RANK_OK(pc_group_split(r->group, r->rank % 2, -r->rank, &half));
    PC_SCOPE {
        const int size = (r->size + 1 - r->rank % 2) / 2;
        RANK_TRUE(pc_group_size(half) == size);
        RANK_TRUE(pc_group_rank(half) == size - 1 - r->rank / 2);
        pc_tensor *t = pc_full(PC_SHAPE(5), r->rank, PC_F32, r->device);
        RANK_OK(pc_group_all_reduce(half, t, PC_GROUP_SUM));
        double want = 0;
        for (int i = r->rank % 2; i < r->size; i += 2)
            want += i;
        RANK_TRUE(pc_item(pc_sum(t)) == 5 * want);
        RANK_OK(pc_group_barrier(r->group));
    }
    pc_group_free(half);
    RANK_OK(pc_group_split(r->group, r->rank ? -1 : 0, 0, &one));
    RANK_TRUE((one != NULL) == (r->rank == 0));
    pc_group_free(one);
}

static void groups_are_split(void **state)
{
    (void)state;
    const int most = ranks_most();
    for (int n = 1; n <= most; n++)
        ranks_work(n, split, NULL);
}

/* --- what a float's bits depend on --- */

/* Numbers whose sums round, and the infinite and what is no number, which are few. */
static float rough(int r, int64_t i)
{
    const uint32_t hash = (uint32_t)(i * 2654435761u + (uint32_t)r * 40503u) * 2246822519u;
    if (i % 1000 == 7 && r == 1)
        return NAN;
    if (i % 1000 == 9 && r == 0)
        return INFINITY;
    return ((float)(hash >> 8) - 8e6f) * 1e-4f;
}

static pc_tensor *rough_tensor(int r, int64_t n, pc_device device)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = rough(r, i);
    pc_tensor *t = x ? pc_from_data(x, PC_SHAPE(n), PC_F32, device) : NULL;
    free(x);
    return t;
}

/* In the order of ranks. */
static float reduced(int size, int64_t i, pc_group_op reduction)
{
    float sum = rough(0, i);
    for (int r = 1; r < size; r++) {
        const float x = rough(r, i);
        if (reduction == PC_GROUP_MIN)
            sum = x < sum || isnan(x) ? x : sum;
        else if (reduction == PC_GROUP_MAX)
            sum = x > sum || isnan(x) ? x : sum;
        else
            sum += x;
    }
    return reduction == PC_GROUP_MEAN ? sum / (float)size : sum;
}

/* Of the reduction of all, elements from `first` on. */
static bool has_bits(rank_work *r, pc_tensor *t, int64_t first, pc_group_op reduction)
{
    const int64_t n = pc_tensor_count(t);
    float *x = malloc((size_t)n * sizeof *x);
    bool same = x && pc_read(t, x, (size_t)n * sizeof *x) == PC_OK;
    for (int64_t i = 0; i < n && same; i++) {
        const float want = reduced(r->size, first + i, reduction);
        same = memcmp(&x[i], &want, sizeof want) == 0 || (isnan(x[i]) && isnan(want));
        if (!same) {
            r->error.status = PC_ERR_STATE;
            snprintf(r->error.message, sizeof r->error.message, "reduction %d of %d ranks: element %lld is %a, not %a",
                     (int)reduction, r->size, (long long)(first + i), (double)x[i], (double)want);
        }
    }
    free(x);
    return same;
}

/* Of few and of many numbers, which go in other ways. */
static void bits(rank_work *r)
{
    const int64_t n = *(const int64_t *)r->context;
    for (int reduction = PC_GROUP_SUM; reduction <= (n > 1 << 20 ? PC_GROUP_SUM : PC_GROUP_MAX); reduction++)
        PC_SCOPE {
            const pc_group_op op = (pc_group_op)reduction;
            pc_tensor *t = rough_tensor(r->rank, n, r->device);
            RANK_OK(pc_group_all_reduce(r->group, t, op));
            RANK_TRUE(has_bits(r, t, 0, op));
            t = rough_tensor(r->rank, n, r->device);
            RANK_OK(pc_group_reduce(r->group, t, op, r->size / 2));
            RANK_TRUE(r->rank != r->size / 2 || has_bits(r, t, 0, op));
            pc_tensor *part = pc_zeros(PC_SHAPE(n), PC_F32, r->device);
            RANK_OK(pc_group_reduce_scatter(r->group, part, rough_tensor(r->rank, n * r->size, r->device), op));
            RANK_TRUE(has_bits(r, part, n * r->rank, op));
        }
}

static void sums_are_in_the_order_of_ranks(void **state)
{
    (void)state;
    /* the last is more than goes at once between processes */
    static int64_t counts[] = {1, 3, 4097, 40001, 1100003};
    const int most = ranks_most();
    if (test_device().type == PC_CUDA) /* NCCL has an order of its own */
        skip();
    for (int i = 0; i < (for_races() ? 4 : 5); i++)
        for (int n = 2; n <= most && n <= (i < 4 ? 8 : 3); n += for_races() ? 3 : 1)
            ranks_work(n, bits, &counts[i]);
}

/* Rank r has r * n + i at i, of which one byte is kept. */
static void many_bytes(rank_work *r)
{
    const int64_t n = *(const int64_t *)r->context;
    PC_SCOPE {
        const double first = (double)(r->rank * n);
        pc_tensor *mine = pc_cast(pc_arange(first, first + (double)n, 1, PC_I32, r->device), PC_U8);
        pc_tensor *want = pc_cast(pc_arange(0, (double)(r->size * n), 1, PC_I32, r->device), PC_U8);
        pc_tensor *got = pc_zeros(PC_SHAPE(r->size * n), PC_U8, r->device);
        RANK_OK(pc_group_all_gather(r->group, got, mine));
        RANK_TRUE(pc_item(pc_all(pc_eq(got, want))) != 0);
        RANK_OK(pc_fill(got, 0));
        RANK_OK(pc_group_gather(r->group, r->rank ? NULL : got, mine, 0));
        RANK_TRUE(r->rank || pc_item(pc_all(pc_eq(got, want))) != 0);
        pc_tensor *part = pc_zeros(PC_SHAPE(n), PC_U8, r->device);
        RANK_OK(pc_group_scatter(r->group, part, r->rank ? NULL : got, 0));
        RANK_TRUE(pc_item(pc_all(pc_eq(part, mine))) != 0);
        RANK_OK(pc_group_broadcast(r->group, got, 0));
        RANK_TRUE(pc_item(pc_all(pc_eq(got, want))) != 0);
        pc_tensor *turned = pc_zeros(PC_SHAPE(r->size * n), PC_U8, r->device);
        RANK_OK(pc_group_all_to_all(r->group, turned, got)); /* all have the same: each gets its own part of all */
        for (int i = 0; i < r->size; i++)
            RANK_TRUE(pc_item(pc_all(pc_eq(pc_slice(turned, 0, i * n, (i + 1) * n, 1), mine))) != 0);
        if (r->rank == 0)
            RANK_OK(pc_group_send(r->group, got, 1));
        if (r->rank == 1) {
            RANK_OK(pc_group_receive(r->group, turned, 0));
            RANK_TRUE(pc_item(pc_all(pc_eq(turned, want))) != 0);
        }
    }
}

static void more_than_goes_at_once(void **state)
{
    (void)state;
    static int64_t n;
    n = ((for_races() ? 1 : 5) << 20) + 3; /* there are no processes then */
    const int most = ranks_most();
    if (most < 2)
        skip();
    ranks_work(most < 3 ? most : 3, many_bytes, &n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_of_every_dtype), cmocka_unit_test(moves_of_every_dtype),
        cmocka_unit_test(sends_and_receives),        cmocka_unit_test(means_and_strides),
        cmocka_unit_test(booleans_and_halves),       cmocka_unit_test(order_and_recordings),
        cmocka_unit_test(groups_are_split),          cmocka_unit_test(sums_are_in_the_order_of_ranks),
        cmocka_unit_test(more_than_goes_at_once),
    };
    return cmocka_run_group_tests(tests, ranks_begin, ranks_end);
}

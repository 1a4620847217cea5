/* ladder.c: what the rungs of the ladders are, and calling their kernels. */
#include "ops/ladder.h"

#include "ops/lessons.h"
#include "ops/table.h"

#include <paracord/ladder.h>

static const pc_rung cpu_add[] = {
    [PC__CPU_ADD_ONE] = {"one at a time", "one core, one number an instruction", 0},
    [PC__CPU_ADD_SIMD] = {"SIMD", "as many numbers an instruction as a register holds", 0},
    [PC__CPU_ADD_CORES] = {"all cores", "one core cannot have enough loads under way to fill the memory", 0},
    [PC__CPU_ADD_STREAM] = {"streaming stores", "the result goes past the caches: nobody reads c before writing it", 0},
};

static const pc_rung cuda_add[] = {
    [PC__CUDA_ADD_THREAD] = {"one thread", "a GPU's thread waits for every load: this is what it is not made for",
                             1 << 20},
    [PC__CUDA_ADD_BLOCK] = {"one block", "256 threads wait together, and neighbours share a transaction", 1 << 24},
    [PC__CUDA_ADD_GRID] = {"a thread an element", "every multiprocessor has 2048 threads waiting at once", 0},
    [PC__CUDA_ADD_WIDE] = {"16 bytes a thread", "a quarter of the instructions, four times the bytes under way", 0},
};

static const pc_rung cpu_matmul[] = {
    [PC__CPU_MATMUL_LOOPS] = {"three loops", "i, j, k: walks down a column of b, a cache line for each number", 512},
    [PC__CPU_MATMUL_ORDER] = {"other order", "i, k, j: walks along rows, so SIMD and the prefetcher work", 1024},
    [PC__CPU_MATMUL_BLOCKS] = {"cache blocks", "a piece of b is used for many rows while it is in the cache", 4096},
    [PC__CPU_MATMUL_REGISTERS] = {"register tiles", "sums stay in registers: a load feeds several multiply-adds", 4096},
    [PC__CPU_MATMUL_CORES] = {"all cores", "each core takes its own rows", 0},
};

static const pc_rung cuda_matmul[] = {
    [PC__CUDA_MATMUL_COLUMNS] = {"threads down columns", "a thread an element; neighbours read and write n apart",
                                 4096},
    [PC__CUDA_MATMUL_ROWS] = {"threads along rows", "neighbours read neighbours: a transaction serves the warp", 0},
    [PC__CUDA_MATMUL_SHARED] = {"shared memory", "a tile of 32 x 32 is loaded once and read 32 times", 0},
    [PC__CUDA_MATMUL_EIGHT] = {"8 results a thread", "a number from shared memory serves 8 multiply-adds", 0},
    [PC__CUDA_MATMUL_SQUARE] = {"8 x 8 results a thread", "16 numbers serve 64 multiply-adds, from registers", 0},
    [PC__CUDA_MATMUL_WIDE] = {"16-byte accesses", "four numbers a load, and the next tile comes while this one is used",
                              0},
};

static int rungs_of(pc_ladder ladder, bool cuda, const pc_rung **rungs)
{
    const struct {
        const pc_rung *rungs;
        int count;
    } all[2][2] = {{{cpu_add, PC__COUNT(cpu_add)}, {cuda_add, PC__COUNT(cuda_add)}},
                   {{cpu_matmul, PC__COUNT(cpu_matmul)}, {cuda_matmul, PC__COUNT(cuda_matmul)}}};
    *rungs = all[ladder][cuda].rungs;
    return all[ladder][cuda].count;
}

int pc_ladder_rungs(pc_ladder ladder, pc_device device, const pc_rung **rungs)
{
    PC__NEED_OR(0, rungs);
    return rungs_of(ladder == PC_LADDER_MATMUL ? PC_LADDER_MATMUL : PC_LADDER_ADD, device.type == PC_CUDA, rungs);
}

static pc_status check(const char *who, const pc_tensor *t)
{
    if (t->dtype != PC_F32)
        return pc__fail(PC_ERR_DTYPE, "%s: %s; it takes float32", who, pc_dtype_name(t->dtype));
    if (!pc__is_contiguous(t))
        return pc__fail(PC_ERR_SHAPE, "%s: a tensor that is not contiguous; pc_contiguous makes one", who);
    return PC_OK;
}

static pc_status check_square(const pc_tensor *t)
{
    if (t->ndim != 2 || t->shape[0] != t->shape[1] || t->shape[0] % PC__LADDER_SIDE)
        return pc__fail(PC_ERR_SHAPE, "ladder_matmul: shape %s; it takes [n, n] with n a multiple of %d",
                        PC__SHAPE_OF(t), PC__LADDER_SIDE);
    return PC_OK;
}

pc_status pc_ladder_climb(pc_ladder ladder, int rung, pc_tensor *a, pc_tensor *b, pc_tensor *c)
{
    PC__NEED(a);
    PC__NEED(b);
    PC__NEED(c);
    const char *who = ladder == PC_LADDER_MATMUL ? "ladder_matmul" : "ladder_add";
    const pc_rung *rungs;
    pc_tensor *all[3] = {c, a, b};
    for (int i = 0; i < 3; i++) {
        PC__TRY(check(who, all[i]));
        if (ladder == PC_LADDER_MATMUL)
            PC__TRY(check_square(all[i]));
        if (!pc__same_shape(all[i], c))
            return pc__fail(PC_ERR_SHAPE, "%s: shapes %s and %s; all three must be alike", who, PC__SHAPE_OF(all[i]),
                            PC__SHAPE_OF(c));
    }
    const int count = pc_ladder_rungs(ladder, c->storage->device, &rungs);
    if (rung < 0 || rung >= count)
        return pc__fail(PC_ERR_ARGUMENT, "%s: there is no rung %d; they are 0 to %d", who, rung, count - 1);
    if (pc_tensor_count(c) == 0)
        return PC_OK;
    const pc__ladder_attributes attributes = {.rung = rung};
    return pc__lesson_call(ladder == PC_LADDER_MATMUL ? PC__LESSON_LADDER_MATMUL : PC__LESSON_LADDER_ADD, all + 1, 2,
                           &attributes, c);
}

pc_status pc_ladder_fma(pc_tensor *x, int64_t rounds)
{
    PC__NEED(x);
    PC__TRY(check("ladder_fma", x));
    if (pc_tensor_count(x) % PC__LADDER_CHAINS || rounds < 0)
        return pc__fail(PC_ERR_ARGUMENT,
                        "ladder_fma: shape %s, %lld rounds; it takes a multiple of %d elements, 0 rounds "
                        "or more",
                        PC__SHAPE_OF(x), (long long)rounds, PC__LADDER_CHAINS);
    if (pc_tensor_count(x) == 0)
        return PC_OK;
    const pc__ladder_attributes attributes = {.rounds = rounds};
    return pc__lesson_call(PC__LESSON_LADDER_FMA, NULL, 0, &attributes, x);
}

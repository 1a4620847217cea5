/* ladder.c: the lessons' kernels. */
#include "cuda/lessons/ladder.h"

#include "cuda/lessons/lessons.h"

static pc_status launched(void)
{
    return pc__cuda_check(cudaGetLastError(), "its launch");
}

pc_status pc__cuda_lesson_ladder_add(const pc_op_run *run)
{
    const pc__ladder_attributes *a = run->attributes;
    pc__cuda_ladder_add(a->rung, run->in[0].data, run->in[1].data, run->out[0].data, run->out[0].count, run->stream);
    return launched();
}

pc_status pc__cuda_lesson_ladder_matmul(const pc_op_run *run)
{
    const pc__ladder_attributes *a = run->attributes;
    const int64_t side = run->out[0].shape[0];
    if (side > 65536)
        return pc__fail(PC_ERR_UNSUPPORTED, "a side of %lld; on CUDA it is 65536 at most", (long long)side);
    pc__cuda_ladder_matmul(a->rung, run->in[0].data, run->in[1].data, run->out[0].data, (int)side, run->stream);
    return launched();
}

pc_status pc__cuda_lesson_ladder_fma(const pc_op_run *run)
{
    const pc__ladder_attributes *a = run->attributes;
    pc__cuda_ladder_fma(run->out[0].data, run->out[0].count, a->rounds, run->stream);
    return launched();
}

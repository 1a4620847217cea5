/* try_scratch.c: scratch memory that a call can do without. */
#include "cuda/runtime/cuda.h"

void *pc__cuda_try_scratch(pc_stream *stream, size_t bytes)
{
    pc_error before = pc__error_take();
    void *scratch = pc__cuda_scratch(stream, bytes);
    if (!scratch)
        (void)pc__error_take();
    (void)pc__error_put(&before);
    return scratch;
}

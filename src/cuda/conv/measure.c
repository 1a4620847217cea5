/* measure.c: which way of a convolution's product is the fastest. What they write is memory of the measurement's own. */
#include "cuda/conv/by_cudnn.h"
#include "cuda/conv/rows.h"
#include "cuda/runtime/measure.h"

#if PC__HAVE_CUDNN

#include "cuda/runtime/state.h"

typedef struct work {
    const pc_call *call;
    pc__conv_piece piece; /* with results of its own */
    pc__conv_list *list;
    void *scratch;
} work;

static pc_status run(pc_stream *stream, const void *context, int i, bool *fine)
{
    const work *w = context;
    const pc__row *own = i < w->list->rows ? w->list->row[i] : NULL;
    *fine = true;
    if (!own)
        return pc__conv_cudnn(stream, w->call, &w->piece, &w->list->way[i - w->list->rows], w->scratch, fine);
    PC__TRY(own->run(stream, w->call, &w->piece, w->scratch, fine));
    return pc__cuda_launched(w->call);
}

static size_t scratch_of(const pc__conv_piece *piece, const pc__conv_list *list)
{
    size_t bytes = 0;
    for (int i = 0; i < list->rows; i++)
        bytes = PC__MAX(bytes, list->row[i]->workspace ? list->row[i]->workspace(piece) : 0);
    for (int i = 0; i < list->ways; i++)
        bytes = PC__MAX(bytes, pc__conv_cudnn_scratch(piece, &list->way[i]));
    return bytes;
}

pc_status pc__conv_measure(pc_stream *stream, const pc_call *call, const pc__conv_piece *piece, pc__conv_list *list,
                           int *best, double *told)
{
    const size_t result = pc__cuda_whole(pc__conv_result_bytes(piece));
    const size_t bias = pc__cuda_whole((size_t)piece->s.o * pc_dtype_size((pc_dtype)piece->s.dtype));
    const size_t bytes = result + bias + scratch_of(piece, list);
    const int count = list->rows + list->ways;
    void *memory = NULL;
    *best = -1;
    pc_status status = pc__cuda_allocate(stream->device.index, bytes, &memory);
    if (status != PC_OK)
        return status == PC_ERR_MEMORY ? PC_OK : status; /* too little is no error: it is measured another time */
    work w = {.call = call, .piece = *piece, .list = list, .scratch = (char *)memory + result + bias};
    w.piece.result = memory;
    w.piece.dbias = piece->dbias ? (char *)memory + result : NULL;
    status = pc__cuda_measure(&(pc__trial){stream, &w, "measuring a convolution", run}, count, told);
    pc__cuda_release(stream->device.index, memory, bytes);
    if (status == PC_OK)
        *best = pc__cuda_fastest(told, count);
    return status;
}

#endif

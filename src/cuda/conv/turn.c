/* turn.c: what both gradients read is turned once. 16-bit numbers by a kernel that packs the weights, too; others by tiled
 * copies, where nothing is pooled: a pooled gradient is small beside what it is spread to. */
#include "cuda/conv/turn.h"

#include "cuda/conv/format.h"
#include "cuda/conv/half.h"

static bool is_half(const pc__conv_piece *p)
{
    return pc__is_half((pc_dtype)p->s.dtype);
}

static bool packs(const pc__conv_piece *pieces, int count)
{
    return pieces[count - 1].direction == PC__CONV_INPUT; /* which comes last */
}

static bool reads_y(const pc__conv_piece *p)
{
    return p->s.activation != PC_ACTIVATION_NONE;
}

static pc__conv_pictures planes_of(const pc__conv_piece *p)
{
    const pc__conv_shape planes = {.format = PC__CONV_PLANES, .o = p->s.o};
    return pc__conv_results(p, &planes);
}

/* Of dy, and of y. */
static size_t room(const pc__conv_piece *p)
{
    return pc__cuda_whole((size_t)pc__conv_pixels(&p->s) * (size_t)p->s.o * pc__conv_number(p));
}

size_t pc__conv_turned_bytes(const pc__conv_piece *pieces, const pc__row *const *rows, int count)
{
    bool turns = false;
    for (int i = 0; i < count; i++)
        turns = turns || !pc__conv_reads_planes(rows[i], &pieces[i]);
    if (!turns || !pieces[0].s.planes)
        return 0;
    return is_half(pieces) ? pc__cuda_conv_turn_scratch(&pieces[0].s, packs(pieces, count))
                           : (reads_y(pieces) ? 2 : 1) * room(pieces);
}

static void turn_halves(pc_stream *stream, pc__conv_piece *pieces, int count, void *memory)
{
    const pc__conv_piece *any = &pieces[0];
    const void *y = any->y, *dy = any->dy;
    const uint8_t *argmax = any->argmax;
    void *packed = NULL;
    pc__cuda_conv_turn(pc__cuda_queue(stream), &any->s, packs(pieces, count) ? any->weight : NULL, &y, &argmax, &dy,
                       &packed, memory);
    for (int i = 0; i < count; i++) {
        pieces[i].y = y, pieces[i].dy = dy, pieces[i].argmax = argmax;
        pieces[i].packed = packed;
        pieces[i].s.ready_turned = i == 1; /* two kernels ahead, then */
    }
}

static pc_status turn_floats(pc_stream *stream, const pc_call *call, pc__conv_piece *pieces, int count, char *memory)
{
    const pc__conv_pictures planes = planes_of(pieces);
    char *const y = reads_y(pieces) ? memory + room(pieces) : NULL;
    PC__TRY(pc__conv_turn_pictures(stream, call, &planes, pieces[0].dy, memory, true));
    if (y)
        PC__TRY(pc__conv_turn_pictures(stream, call, &planes, pieces[0].y, y, true));
    for (int i = 0; i < count; i++) {
        pieces[i].dy = memory;
        pieces[i].y = y ? y : pieces[i].y;
    }
    return PC_OK;
}

pc_status pc__conv_turn(pc_stream *stream, const pc_call *call, pc__conv_piece *pieces, int count, void *memory)
{
    if (is_half(pieces))
        turn_halves(stream, pieces, count, memory);
    else
        PC__TRY(turn_floats(stream, call, pieces, count, memory));
    for (int i = 0; i < count; i++)
        pieces[i].s.planes = 0;
    return PC_OK;
}

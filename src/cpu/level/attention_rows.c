/* attention_rows.c: rows of attention's operands as its kernels' own numbers, and back. */
#include "cpu/level/attention_part.h"
#include "cpu/level/halves.h"

INLINE float half_of(const void *from, int64_t i, bool is_f16)
{
    return is_f16 ? pc__f16_float(((const pc_f16 *)from)[i]) : pc__bf16_float(((const pc_bf16 *)from)[i]);
}

void take_row(const pc__attention *a, const void *from, int64_t column, int64_t columns, real *to)
{
    const bool is_f16 = a->type == PC_F16;
    if (!in_halves(a) && column == 1)
        memcpy(to, from, (size_t)columns * sizeof *to);
    else if (!in_halves(a))
        for (int64_t e = 0; e < columns; e++)
            to[e] = ((const real *)from)[e * column];
    else if (column == 1)
        pc__load_halves((float *)(void *)to, from, columns, is_f16);
    else
        for (int64_t e = 0; e < columns; e++)
            to[e] = half_of(from, e * column, is_f16);
}

void put_row(const pc__attention *a, void *to, int64_t column, int64_t columns, const real *from)
{
    const bool is_f16 = a->type == PC_F16;
    if (!in_halves(a))
        for (int64_t e = 0; e < columns; e++)
            ((real *)to)[e * column] = from[e];
    else if (column == 1)
        pc__store_halves(to, (const float *)(const void *)from, columns, is_f16);
    else
        for (int64_t e = 0; e < columns; e++)
            if (is_f16)
                ((pc_f16 *)to)[e * column] = pc__f16_of((float)from[e]);
            else
                ((pc_bf16 *)to)[e * column] = pc__bf16_of((float)from[e]);
}

real_rows rows_of(const pc__attention *a, const pc__matrices *m, int64_t batch, int64_t first, int64_t count,
                  int64_t columns, real *room, bool gather)
{
    const bool dense = m->column == 1 && m->row == columns;
    if (!in_halves(a) && (!gather || dense))
        return (real_rows){(const real *)(const void *)row_of(a, m, batch, first), m->row, m->column};
    if (dense)
        take_row(a, row_of(a, m, batch, first), 1, count * columns, room);
    for (int64_t i = 0; i < count && !dense; i++)
        take_row(a, row_of(a, m, batch, first + i), m->column, columns, room + i * columns);
    return (real_rows){room, columns, 1};
}

void put_turned(const pc__attention *a, const pc__matrices *m, const panel *p, int64_t columns, const real *turned,
                real *room)
{
    if (!in_halves(a) && m->column == 1) {
        turn_back(p, columns, turned, m->row, (real *)(void *)row_of(a, m, p->batch, p->query));
        return;
    }
    turn_back(p, columns, turned, columns, room);
    for (int64_t i = 0; i < p->count; i++)
        put_row(a, row_of(a, m, p->batch, p->query + i), m->column, columns, room + i * columns);
}

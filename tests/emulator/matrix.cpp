/* matrix.cpp: what a warp does with matrices: products 16 x K by K x 8, and loads of 8 x 8 squares. With g = lane / 4
 * and t = lane % 4, a lane has of the sums rows g and g + 8, columns 2 t and 2 t + 1. Products are exact and added in
 * double, which is finer than the GPU's units are. */
#include "ptx.h"

#include <cstdint>
#include <cstring>

namespace emulator
{
namespace
{

constexpr int ROWS = 16, COLUMNS = 8;

struct fragments {
    float c[4];
    unsigned a[4], b[2];
};

float from_bits(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float from_tf32(unsigned bits) // 10 bits of the fraction count
{
    return from_bits(bits & 0xffffe000u);
}

float from_bf16(unsigned bits)
{
    return from_bits(bits << 16);
}

float from_f16(unsigned bits)
{
    unsigned sign = (bits & 0x8000) << 16, rest = (bits & 0x7fff) << 13;
    if (rest >= 0x7c00u << 13) // infinity, NaN
        return from_bits(sign | 0x7f800000u | rest);
    float value = from_bits(rest) * 0x1p112f; // the difference of the exponents' biases, right for denormals too
    return sign ? -value : value;
}

/* The number of K for which lane group t holds entry `half` of register `part`: one in 32 bits, or two in a pair. */
template <int K> constexpr int column_of(int t, int part, int half)
{
    return K == 8 ? t + 4 * part : 2 * t + half + 8 * part;
}

template <int K, float (*VALUE)(unsigned)> void multiply(slot *slots, unsigned lanes)
{
    constexpr int HALVES = K / 8;
    float a[ROWS][K], b[K][COLUMNS];
    if (lanes != ALL_LANES)
        fail("mma by lanes %08x; it takes the whole warp", lanes);
    for (int lane = 0; lane < LANES; lane++) {
        fragments f;
        memcpy(&f, slots[lane].bytes, sizeof f);
        int g = lane / 4, t = lane % 4;
        for (int half = 0; half < HALVES; half++) {
            int shift = 16 * half;
            auto value = [shift](unsigned bits) { return VALUE(HALVES == 1 ? bits : bits >> shift & 0xffff); };
            for (int part = 0; part < 2; part++) {
                int k = column_of<K>(t, part, half);
                a[g][k] = value(f.a[2 * part]);
                a[g + 8][k] = value(f.a[2 * part + 1]);
                b[k][g] = value(f.b[part]);
            }
        }
    }
    for (int row = 0; row < ROWS; row++) {
        double sums[COLUMNS] = {};
        for (int k = 0; k < K; k++)
            for (int column = 0; column < COLUMNS; column++)
                sums[column] += static_cast<double>(a[row][k]) * static_cast<double>(b[k][column]);
        for (int column = 0; column < COLUMNS; column++) {
            char *place = slots[row % 8 * 4 + column / 2].bytes + sizeof(float) * (row / 8 * 2 + column % 2);
            float before;
            memcpy(&before, place, sizeof before);
            float after = static_cast<float>(before + sums[column]);
            memcpy(place, &after, sizeof after);
        }
    }
}

/* The four squares of ldmatrix: lane i has said where row i % 8 of square i / 8 is. */
template <bool TURNED> void load(slot *slots, unsigned lanes)
{
    uint16_t squares[4][8][8];
    if (lanes != ALL_LANES)
        fail("ldmatrix by lanes %08x; it takes the whole warp", lanes);
    for (int lane = 0; lane < LANES; lane++) {
        unsigned at;
        memcpy(&at, slots[lane].bytes, sizeof at);
        memcpy(squares[lane / 8][lane % 8], shared_at(at, sizeof squares[0][0], "ldmatrix"), sizeof squares[0][0]);
    }
    for (int lane = 0; lane < LANES; lane++) {
        int g = lane / 4, t = lane % 4;
        unsigned to[4];
        for (int i = 0; i < 4; i++) {
            unsigned low = TURNED ? squares[i][2 * t][g] : squares[i][g][2 * t];
            unsigned high = TURNED ? squares[i][2 * t + 1][g] : squares[i][g][2 * t + 1];
            to[i] = low | high << 16;
        }
        memcpy(slots[lane].bytes, to, sizeof to);
    }
}

void product(together work, float *const (&c)[4], const fragments &own)
{
    slot &shared = own_slot();
    memcpy(shared.bytes, &own, sizeof own);
    meet_warp(ALL_LANES, work);
    for (int i = 0; i < 4; i++)
        memcpy(c[i], shared.bytes + sizeof(float) * i, sizeof(float));
}

void squares(together work, unsigned *const (&to)[4], unsigned at)
{
    slot &shared = own_slot();
    memcpy(shared.bytes, &at, sizeof at);
    meet_warp(ALL_LANES, work);
    for (int i = 0; i < 4; i++)
        memcpy(to[i], shared.bytes + sizeof(unsigned) * i, sizeof(unsigned));
}

} // namespace

namespace ptx
{

void mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(float &c0, float &c1, float &c2, float &c3, unsigned a0,
                                                        unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    product(multiply<8, from_tf32>, {&c0, &c1, &c2, &c3}, {{c0, c1, c2, c3}, {a0, a1, a2, a3}, {b0, b1}});
}

void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(float &c0, float &c1, float &c2, float &c3, unsigned a0,
                                                         unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                                         unsigned b1)
{
    product(multiply<16, from_bf16>, {&c0, &c1, &c2, &c3}, {{c0, c1, c2, c3}, {a0, a1, a2, a3}, {b0, b1}});
}

void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float &c0, float &c1, float &c2, float &c3, unsigned a0,
                                                       unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    product(multiply<16, from_f16>, {&c0, &c1, &c2, &c3}, {{c0, c1, c2, c3}, {a0, a1, a2, a3}, {b0, b1}});
}

void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned &to0, unsigned &to1, unsigned &to2, unsigned &to3, unsigned at)
{
    squares(load<false>, {&to0, &to1, &to2, &to3}, at);
}

void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned &to0, unsigned &to1, unsigned &to2, unsigned &to3,
                                                    unsigned at)
{
    squares(load<true>, {&to0, &to1, &to2, &to3}, at);
}

} // namespace ptx
} // namespace emulator

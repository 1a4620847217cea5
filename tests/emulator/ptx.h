/* ptx.h: the instructions that kernels write as inline PTX, each a function of its name. */
#ifndef PC_EMULATOR_PTX_H
#define PC_EMULATOR_PTX_H

#include "ahead.h"
#include "block.h"
#include "tensor/half.h"

#include <cmath>
#include <cstring>

namespace emulator::ptx
{

/* Launches never overlap here, but what is read before the wait is looked at. */
inline void griddepcontrol_wait()
{
    come_to_wait();
}
inline void griddepcontrol_launch_dependents()
{
}

inline void mov_b32(uint32_t &to, uint32_t from)
{
    to = from;
}

/* What is too small for a normal number is zero. */
inline void ex2_approx_ftz_f32(float &to, float from)
{
    const float power = std::exp2(from);
    to = power < 0x1p-126f ? 0.0f : power;
}

/* copies.cpp: `there` bytes from `from`, then zeros, `bytes` in all. */
void cp_async_ca_shared_global(unsigned to, const void *from, int bytes, int there);
void cp_async_cg_shared_global(unsigned to, const void *from, int bytes, int there);
inline void cp_async_ca_shared_global(unsigned to, const void *from, int bytes)
{
    cp_async_ca_shared_global(to, from, bytes, bytes);
}
void cp_async_commit_group();
void cp_async_wait_group(int later);

/* matrix.cpp */
void mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(float &c0, float &c1, float &c2, float &c3, unsigned a0,
                                                        unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                                        unsigned b1);
void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(float &c0, float &c1, float &c2, float &c3, unsigned a0,
                                                         unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                                         unsigned b1);
void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float &c0, float &c1, float &c2, float &c3, unsigned a0,
                                                       unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1);
void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned &to0, unsigned &to1, unsigned &to2, unsigned &to3, unsigned at);
void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned &to0, unsigned &to1, unsigned &to2, unsigned &to3,
                                                    unsigned at);

/* Four bytes of the eight of b:a, as the nibbles of `selection` say; a nibble of 8 or more repeats the byte's sign. */
inline void prmt_b32(unsigned &to, unsigned a, unsigned b, unsigned selection)
{
    unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned nibble = selection >> 4 * i & 15;
        unsigned byte = bytes >> 8 * (nibble & 7) & 255;
        if (nibble & 8)
            byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * i;
    }
    to = result;
}

inline void max_NaN_f32(float &larger, float a, float b)
{
    larger = a != a || a > b ? a : b;
}

/* To 16 bits all NaN become one. */
inline uint16_t one_nan(float x, uint16_t bits)
{
    return x == x ? bits : 0x7fff;
}
inline void cvt_rn_f16_f32(uint16_t &bits, float x)
{
    bits = one_nan(x, pc__f16_of(x).bits);
}
inline void cvt_rn_bf16_f32(uint16_t &bits, float x)
{
    bits = one_nan(x, pc__bf16_of(x).bits);
}
inline void cvt_rn_f16x2_f32(unsigned &both, float high, float low)
{
    uint16_t bits[2];
    cvt_rn_f16_f32(bits[0], low);
    cvt_rn_f16_f32(bits[1], high);
    both = bits[0] | static_cast<unsigned>(bits[1]) << 16;
}
inline void cvt_rn_bf16x2_f32(unsigned &both, float high, float low)
{
    uint16_t bits[2];
    cvt_rn_bf16_f32(bits[0], low);
    cvt_rn_bf16_f32(bits[1], high);
    both = bits[0] | static_cast<unsigned>(bits[1]) << 16;
}
inline void cvt_f32_f16(float &x, uint16_t bits)
{
    const unsigned one = 0x7fffffff;
    x = pc__f16_float({bits});
    if (x != x)
        std::memcpy(&x, &one, sizeof x);
}

} // namespace emulator::ptx

#endif

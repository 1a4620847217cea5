/* trigonometry.h: sine and cosine of float, of any size, without branches and calls (functions.h says why). */
#ifndef PC__TRIGONOMETRY_H
#define PC__TRIGONOMETRY_H

#include <stdint.h>

typedef union pc__trig_float {
    float f;
    uint32_t u;
} pc__trig_float;

typedef union pc__trig_double {
    double f;
    uint64_t u;
} pc__trig_double;

/* 2^e in quarters of a turn, which is 2^e 2 / pi, whole turns taken away: the sum of three numbers for each e from 0 on.
 * The first is a multiple of 2^-25 and the second of 2^-51, so that 24 bits times one of them is exact. */
static const double pc__quarter_turns[105][3] = {{0x1.45f306p-1, 0x1.b9391p-26, 0x1.529fc2757d1f5p-52},
                                                 {0x1.45f3068p+0, 0x1.7272208p-26, 0x1.4a7f09d5f47d5p-53},
                                                 {-0x1.7419f2p+0, -0x1.1b1bbe8p-26, -0x1.6b01ec5417056p-53},
                                                 {0x1.17cc1bp+0, 0x1.c9c8828p-26, 0x1.29fc2757d1f53p-53},
                                                 {-0x1.d067c9p+0, -0x1.b1bbeap-28, -0x1.ac07b1505c159p-53},
                                                 {0x1.7cc1b6p-2, 0x1.27220a8p-26, 0x1.4fe13abe8fa9ap-54},
                                                 {0x1.7cc1b7p-1, 0x1.391054p-28, 0x1.4fe13abe8fa9ap-53},
                                                 {0x1.7cc1b7p+0, 0x1.391054p-27, 0x1.4fe13abe8fa9ap-52},
                                                 {-0x1.067c918p+0, -0x1.8ddf56p-27, -0x1.603d8a82e0acbp-52},
                                                 {0x1.f306dc8p+0, 0x1.c882a4p-28, 0x1.3f84eafa3ea6ap-52},
                                                 {-0x1.9f2468p-4, -0x1.1bbeadp-26, -0x1.80f62a0b82b2dp-52},
                                                 {-0x1.9f246cp-3, -0x1.bbead4p-29, -0x1.01ec541705659p-52},
                                                 {-0x1.9f246cp-2, -0x1.bbead6p-28, -0x1.ec54170565912p-59},
                                                 {-0x1.9f246cp-1, -0x1.bbead6p-27, -0x1.ec54170565912p-58},
                                                 {-0x1.9f246cp+0, -0x1.bbead6p-26, -0x1.ec54170565912p-57},
                                                 {0x1.836e4ep-1, 0x1.1054a7p-27, 0x1.e13abe8fa9a6fp-52},
                                                 {0x1.836e4ep+0, 0x1.1054a78p-26, 0x1.c2757d1f534dep-52},
                                                 {-0x1.f246c6p-1, -0x1.df56bp-26, -0x1.ec54170565912p-54},
                                                 {-0x1.f246c68p+0, -0x1.bead6p-26, -0x1.ec54170565912p-53},
                                                 {0x1.b7272p-4, 0x1.054a7fp-27, 0x1.3abe8fa9a6eep-56},
                                                 {0x1.b7272p-3, 0x1.054a7fp-26, 0x1.3abe8fa9a6eep-55},
                                                 {0x1.b72722p-2, 0x1.529fcp-31, 0x1.3abe8fa9a6eep-54},
                                                 {0x1.b72722p-1, 0x1.529fcp-30, 0x1.3abe8fa9a6eep-53},
                                                 {0x1.b72722p+0, 0x1.529fcp-29, 0x1.3abe8fa9a6eep-52},
                                                 {-0x1.236377p-1, -0x1.ab580fp-26, -0x1.8a82e0acb223fp-52},
                                                 {-0x1.2363778p+0, -0x1.56b01e8p-26, -0x1.1505c1596447ep-52},
                                                 {0x1.b9391p+0, 0x1.529fc2p-26, 0x1.d5f47d4d37703p-52},
                                                 {-0x1.1b1bbep-1, -0x1.5ac07bp-26, -0x1.505c1596447e5p-54},
                                                 {-0x1.1b1bbe8p+0, -0x1.6b01ecp-27, -0x1.505c1596447e5p-53},
                                                 {0x1.c9c8828p+0, 0x1.29fc27p-27, 0x1.5f47d4d377037p-53},
                                                 {-0x1.b1bbeap-2, -0x1.ac07b1p-27, -0x1.4170565911f92p-53},
                                                 {-0x1.b1bbeap-1, -0x1.ac07b1p-26, -0x1.4170565911f92p-52},
                                                 {-0x1.b1bbea8p+0, -0x1.580f628p-26, -0x1.05c1596447e49p-53},
                                                 {0x1.391054p-1, 0x1.4fe13a8p-26, 0x1.f47d4d377036ep-53},
                                                 {0x1.3910548p+0, 0x1.3f84eap-27, 0x1.f47d4d377036ep-52},
                                                 {-0x1.8ddf568p+0, -0x1.80f62ap-27, -0x1.70565911f924fp-56},
                                                 {0x1.c882a5p-1, 0x1.fc2756p-28, 0x1.d1f534ddc0db6p-52},
                                                 {0x1.c882a5p+0, 0x1.fc2757p-27, 0x1.a3ea69bb81b6cp-52},
                                                 {-0x1.bbead6p-2, -0x1.ec54p-33, -0x1.70565911f924fp-53},
                                                 {-0x1.bbead6p-1, -0x1.ec54p-32, -0x1.70565911f924fp-52},
                                                 {-0x1.bbead6p+0, -0x1.ec541p-31, -0x1.c1596447e493bp-53},
                                                 {0x1.1054a7p-1, 0x1.e13abe8p-26, 0x1.f534ddc0db629p-55},
                                                 {0x1.1054a78p+0, 0x1.c2757dp-26, 0x1.f534ddc0db629p-54},
                                                 {-0x1.df56bp+0, -0x1.ec5416p-28, -0x1.0565911f924ebp-52},
                                                 {0x1.054a7ep-2, 0x1.09d5f4p-26, 0x1.f534ddc0db629p-52},
                                                 {0x1.054a7fp-1, 0x1.3abe88p-30, 0x1.ea69bb81b6c53p-52},
                                                 {0x1.054a7fp+0, 0x1.3abe8cp-29, 0x1.d4d377036d8a5p-52},
                                                 {-0x1.f56b018p+0, -0x1.b1505cp-26, -0x1.596447e493ad5p-54},
                                                 {0x1.529fcp-4, 0x1.3abe8fp-27, 0x1.534ddc0db6296p-52},
                                                 {0x1.529fcp-3, 0x1.3abe8f8p-26, 0x1.4d377036d8a56p-53},
                                                 {0x1.529fc2p-2, 0x1.d5f47cp-28, 0x1.4d377036d8a56p-52},
                                                 {0x1.529fc2p-1, 0x1.d5f47dp-27, 0x1.34ddc0db6295ap-53},
                                                 {0x1.529fc2p+0, 0x1.d5f47dp-26, 0x1.34ddc0db6295ap-52},
                                                 {-0x1.5ac07bp+0, -0x1.505c14p-28, -0x1.96447e493ad4dp-52},
                                                 {0x1.4a7f098p+0, 0x1.57d1f5p-26, 0x1.a6ee06db14acdp-53},
                                                 {-0x1.6b01ecp+0, -0x1.505c158p-26, -0x1.6447e493ad4cep-54},
                                                 {0x1.29fc27p+0, 0x1.5f47d48p-26, 0x1.4ddc0db629599p-52},
                                                 {-0x1.ac07b1p+0, -0x1.417056p-26, -0x1.6447e493ad4cep-52},
                                                 {0x1.4fe13ap-1, 0x1.7d1f53p-26, 0x1.377036d8a5665p-52},
                                                 {0x1.4fe13a8p+0, 0x1.f47d4dp-27, 0x1.bb81b6c52b328p-54},
                                                 {-0x1.603d8a8p+0, -0x1.70565p-31, -0x1.223f249d6a66cp-52},
                                                 {0x1.3f84ea8p+0, 0x1.e8fa9ap-26, 0x1.bb81b6c52b328p-52},
                                                 {-0x1.80f62ap+0, -0x1.705658p-29, -0x1.11f924eb53362p-53},
                                                 {0x1.fc2757p-1, 0x1.a3ea698p-26, 0x1.dc0db6295993cp-53},
                                                 {0x1.fc27578p+0, 0x1.47d4d3p-26, 0x1.dc0db6295993cp-52},
                                                 {-0x1.ec54p-6, -0x1.705659p-26, -0x1.1f924eb53361ep-54},
                                                 {-0x1.ec541p-5, -0x1.c15964p-27, -0x1.1f924eb53361ep-53},
                                                 {-0x1.ec541p-4, -0x1.c15964p-26, -0x1.1f924eb53361ep-52},
                                                 {-0x1.ec5414p-3, -0x1.82b2c88p-26, -0x1.f924eb53361dep-55},
                                                 {-0x1.ec5416p-2, -0x1.056591p-26, -0x1.f924eb53361dep-54},
                                                 {-0x1.ec5417p-1, -0x1.59644p-31, -0x1.f924eb53361dep-53},
                                                 {-0x1.ec5417p+0, -0x1.59644p-30, -0x1.f924eb53361dep-52},
                                                 {0x1.3abe8cp-3, 0x1.d4d377p-26, 0x1.b6c52b3278872p-57},
                                                 {0x1.3abe8ep-2, 0x1.a9a6eep-26, 0x1.b6c52b3278872p-56},
                                                 {0x1.3abe8fp-1, 0x1.534ddcp-26, 0x1.b6c52b3278872p-55},
                                                 {0x1.3abe8f8p+0, 0x1.4d377p-27, 0x1.b6c52b3278872p-54},
                                                 {-0x1.8a82e08p+0, -0x1.65911fp-27, -0x1.249d6a66c3bc7p-52},
                                                 {0x1.d5f47dp-1, 0x1.34ddcp-27, 0x1.b6c52b3278872p-52},
                                                 {0x1.d5f47dp+0, 0x1.34ddc08p-26, 0x1.6d8a5664f10e4p-52},
                                                 {-0x1.505c14p-2, -0x1.96447ep-26, -0x1.24eb53361de38p-52},
                                                 {-0x1.505c15p-1, -0x1.2c88fc8p-26, -0x1.275a99b0ef1bfp-54},
                                                 {-0x1.505c158p+0, -0x1.6447e4p-28, -0x1.275a99b0ef1bfp-53},
                                                 {0x1.5f47d48p+0, 0x1.4ddc0d8p-26, 0x1.b14acc9e21c82p-53},
                                                 {-0x1.417056p+0, -0x1.6447e48p-26, -0x1.3ad4cd8778df8p-54},
                                                 {0x1.7d1f53p+0, 0x1.3770368p-26, 0x1.6295993c43904p-52},
                                                 {-0x1.05c159p+0, -0x1.911f92p-26, -0x1.3ad4cd8778df8p-52},
                                                 {0x1.f47d4dp+0, 0x1.bb81b6p-27, 0x1.8a5664f10e41p-52},
                                                 {-0x1.705658p-4, -0x1.11f924p-28, -0x1.d6a66c3bc6fbep-53},
                                                 {-0x1.705658p-3, -0x1.11f924p-27, -0x1.d6a66c3bc6fbep-52},
                                                 {-0x1.705658p-2, -0x1.11f9248p-26, -0x1.ad4cd8778df7cp-52},
                                                 {-0x1.705659p-1, -0x1.1f924cp-29, -0x1.5a99b0ef1bef8p-52},
                                                 {-0x1.705659p+0, -0x1.1f924ep-28, -0x1.6a66c3bc6fbep-53},
                                                 {0x1.1f534d8p+0, 0x1.7036d88p-26, 0x1.2b3278872084p-53},
                                                 {-0x1.c15964p+0, -0x1.1f924e8p-26, -0x1.a99b0ef1bef8p-53},
                                                 {0x1.f534dcp-2, 0x1.c0db628p-26, 0x1.5993c439041fep-54},
                                                 {0x1.f534ddp-1, 0x1.81b6c5p-26, 0x1.5993c439041fep-53},
                                                 {0x1.f534dd8p+0, 0x1.036d8ap-26, 0x1.5993c439041fep-52},
                                                 {-0x1.59644p-4, -0x1.f924ebp-26, -0x1.4cd8778df7c03p-52},
                                                 {-0x1.596444p-3, -0x1.f249d68p-26, -0x1.3361de37df00dp-53},
                                                 {-0x1.596446p-2, -0x1.e493adp-26, -0x1.3361de37df00dp-52},
                                                 {-0x1.596447p-1, -0x1.c9275a8p-26, -0x1.9b0ef1bef806cp-54},
                                                 {-0x1.5964478p+0, -0x1.924eb5p-26, -0x1.9b0ef1bef806cp-53},
                                                 {0x1.4d377p+0, 0x1.b6c52bp-27, 0x1.93c439041fe51p-54},
                                                 {-0x1.65911f8p+0, -0x1.24eb52p-28, -0x1.361de37df00d7p-52},
                                                 {0x1.34ddc08p+0, 0x1.6d8a56p-26, 0x1.93c439041fe51p-52}};

/* An angle: `part` of a quarter of a turn, from -1/2 to 1/2, behind `quarters` of them, of which the last two bits count. */
typedef struct pc__angle {
    double part;
    uint32_t quarters;
} pc__angle;

/* x is a number of 24 bits times 2^e. Every step is exact but the last sum, so that the part is, too, where x is next to a
 * multiple of pi / 2. Adding 1.5 x 2^52 rounds to whole numbers, which are the last bits then. Infinity and NaN are NaN. */
static inline pc__angle pc__angle_of(float x)
{
    const double shift = 6755399441055744.0;
    const pc__trig_float bits = {.f = x};
    const int32_t exponent = (int32_t)(bits.u >> 23 & 255), above = exponent > 150 ? exponent - 150 : 0;
    const int32_t e = above < 104 ? above : 104;
    const pc__trig_float scale = {.u = (uint32_t)(127 - e) << 23};
    const double m = (double)(x * scale.f);
    const double coarse = m * pc__quarter_turns[e][0], middle = m * pc__quarter_turns[e][1];
    const pc__trig_double whole = {.f = coarse + middle + shift};
    const double part = coarse - (whole.f - shift) + middle + m * pc__quarter_turns[e][2];
    return (pc__angle){part, (uint32_t)whole.u};
}

/* The sine of an angle, polynomials as in Cephes, sinf and cosf. */
static inline float pc__sin_of(pc__angle angle)
{
    const double wide = angle.part * 1.57079632679489661923;
    const float r = (float)wide, rest = (float)(wide - (double)r), z = r * r;
    float s = -1.9515295891e-4f;
    s = s * z + 8.3321608736e-3f;
    s = s * z - 1.6666654611e-1f;
    s = s * z * r + rest + r;
    float c = 2.443315711809948e-5f;
    c = c * z - 1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * z * z - 0.5f * z + 1;
    pc__trig_float y = {.f = angle.quarters & 1 ? c : s};
    y.u ^= (angle.quarters & 2) << 30;
    return y.f;
}

/* Within 1.5 units. */
static inline float pc__sin_f32(float x)
{
    return pc__sin_of(pc__angle_of(x));
}

static inline float pc__cos_f32(float x)
{
    pc__angle angle = pc__angle_of(x);
    angle.quarters++;
    return pc__sin_of(angle);
}

#endif

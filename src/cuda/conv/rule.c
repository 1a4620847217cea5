/* rule.c: who does a product of a convolution, from its shape alone: products of drawn layers on an H200, the table in
 * docs/kernels-diary.md; bench/peers/ways.py makes it anew. */
#include "cuda/conv/size.h"

pc__conv_format pc__conv_usual_format(const pc__conv_shape *s)
{
    const int to = together(s);
    return s->c % to || s->o % to ? PC__CONV_PADDED : PC__CONV_AS_IS;
}

pc__conv_format pc__conv_grouped_format(const pc__conv_shape *s)
{
    return s->dtype == PC_F32 && !s->tf32 ? PC__CONV_PLANES : PC__CONV_AS_IS;
}

bool pc__conv_can_fold(const pc__conv_shape *s)
{
    return together(s) > 1 && s->direction != PC__CONV_INPUT && s->groups <= 1 && s->dh <= 1 && s->dw <= 1 &&
           s->sh * s->sw > 1 && s->kh >= s->sh && s->kw >= s->sw && s->c < 8;
}

static void fold(pc__conv_shape *in, const pc__conv_shape *s)
{
    in->kh = (s->kh - 1) / s->sh + 1, in->kw = (s->kw - 1) / s->sw + 1;
    in->h = s->oh + in->kh - 1, in->w = s->ow + in->kw - 1;
    in->c = rounded_up(s->c * s->sh * s->sw, together(s));
    in->sh = in->sw = 1;
    in->ph = in->pw = 0;
}

pc__conv_shape pc__conv_in_format(const pc__conv_shape *s)
{
    pc__conv_shape in = *s;
    if (s->format == PC__CONV_PADDED || s->format == PC__CONV_FOLDED)
        in.c = rounded_up(s->c, together(s)), in.o = rounded_up(s->o, together(s));
    if (s->format == PC__CONV_FOLDED)
        fold(&in, s);
    return in;
}

enum { OURS = -1, AS_IS = PC__CONV_AS_IS, PLANES = PC__CONV_PLANES };

/* Each rule is a tree grown from the table and then simplified: in each leaf the way with the smallest sum of logarithms
 * of times. `padded`: the format for matrix units; pictures that would be mostly padding have kernels of their own
 * (shallow.h). */
static int halves_forward(const pc__conv_shape *s, int padded)
{
    const bool forty = s->c > 32 && s->c <= 48 && taps_of(s) >= 25 && places_of(s) > 3000; /* no tiles for these */
    if (s->c < 15)
        return has_windows_of_one(s) && s->c > 8 ? AS_IS : s->o >= 128 && taps_of(s) > 9 ? padded : OURS;
    if (forty || (s->o <= 5 && s->c % 8 == 0))
        return OURS;
    return has_windows_of_one(s) && s->o <= 128 ? AS_IS : padded;
}

static int halves_input(const pc__conv_shape *s, int padded)
{
    if ((s->c <= 8 && weights_of(s) < 990) || s->c <= 2 || (s->o <= 8 && s->sh == 1 && s->sw == 1))
        return OURS;
    if (s->sh * s->sw > 1 && s->c % 8 == 0 && s->o % 8 == 0 && work_of(s) <= 2.5e8)
        return OURS;
    return has_windows_of_one(s) && s->c <= 110 && s->o <= 110 ? AS_IS : padded;
}

static int halves_weights(const pc__conv_shape *s, int padded)
{
    if (((s->c < 8 || (s->c == 8 && s->o % 8 && taps_of(s) <= 25)) && weights_of(s) < 10000) ||
        (s->o <= 5 && s->c % 8 == 0))
        return OURS;
    return has_windows_of_one(s) && s->c % 8 && places_of(s) > 8192 && s->o <= 128 ? AS_IS : s->o <= 5 ? OURS : padded;
}

/* Windows of whole strides are a product of matrices then. Of others the gradient of the weights alone has kernels that pay
 * for the copies, where it is much work; forward ours are as fast. */
static bool is_worth_folding(const pc__conv_shape *s)
{
    const bool patches = s->kh == s->sh && s->kw == s->sw;
    return pc__conv_can_fold(s) && s->o >= 16 &&
           (patches ? work_of(s) >= 5e7 : s->direction == PC__CONV_WEIGHTS && work_of(s) >= 4e9);
}

static int halves_rule(const pc__conv_shape *s, int padded)
{
    if (is_worth_folding(s))
        return PC__CONV_FOLDED;
    return s->direction == PC__CONV_FORWARD ? halves_forward(s, padded)
           : s->direction == PC__CONV_INPUT ? halves_input(s, padded)
                                            : halves_weights(s, padded);
}

/* Windows of one place: a product, whose kernels are quick unless they skip places or have few channels. */
static int tf32_flat(const pc__conv_shape *s)
{
    return work_of(s) > 1e6 && (s->sh * s->sw > 1 || (s->c <= 8 && s->o >= 8)) ? OURS : AS_IS;
}

/* Large windows, for which cuDNN has but slow kernels unless they have much to do. */
static bool is_wide_and_small(const pc__conv_shape *s)
{
    return taps_of(s) >= 49 && work_of(s) <= 3.2e8;
}

static int tf32_forward(const pc__conv_shape *s, int padded)
{
    const double depth = depth_of(s);
    if (depth <= 127)
        return taps_of(s) == 1 ? tf32_flat(s) : s->c == 1 && taps_of(s) <= 9 ? AS_IS : OURS;
    if (is_wide_and_small(s) || (taps_of(s) > 1 && depth <= 288 && work_of(s) <= 2e8))
        return OURS;
    if (numbers_of(s) > 4000 && s->h * s->w > 2)
        return s->c == 3 ? AS_IS : padded;
    return s->c <= 25 ? PLANES : AS_IS;
}

static int tf32_input(const pc__conv_shape *s, int padded)
{
    if (taps_of(s) == 1 && depth_of(s) <= 93)
        return s->c <= 5 && s->o <= 5 ? AS_IS : tf32_flat(s);
    if (s->o <= 8)
        return weights_of(s) <= 64 ? AS_IS : OURS;
    if (depth_of(s) <= 93)
        return s->sh * s->sw > 1 ? OURS : AS_IS;
    if ((is_wide_and_small(s) && (s->c > 3 || work_of(s) <= 2e7)) ||
        (taps_of(s) > 1 && depth_of(s) <= 180 && work_of(s) <= 2e8))
        return OURS;
    return numbers_of(s) > 22000 ? padded : PLANES;
}

static int tf32_weights(const pc__conv_shape *s, int padded)
{
    const double work = work_of(s);
    if (weights_of(s) <= 2160)
        return work < 1e5 || (work > 2e8 && taps_of(s) >= 25 && s->o > 4) ? AS_IS : OURS;
    if (weights_of(s) <= 17000 && work <= 6e8 && taps_of(s) > 1)
        return places_of(s) <= 300 ? AS_IS : OURS;
    if (s->c <= 28 && s->o <= 28)
        return work > 1e8 ? padded : AS_IS;
    return work > (s->c <= 30 ? 1.7e8 : 4.8e5) ? padded : OURS;
}

/* Above so many channels cuDNN's methods with fewer products (Winograd's) are there, in planes. */
static bool is_wide(const pc__conv_shape *s)
{
    return s->c > 75;
}

/* Large kernels have no such method, and ours are faster as soon as each multiprocessor has a tile of 128 x 64. */
static bool may_be_planes(const pc__conv_shape *s, double rows, int columns)
{
    return taps_of(s) <= 9 || rows / 128 * ((columns + 63) / 64) < 120;
}

/* Ours, whose sums are cut where tiles are few, but for what is all reading and writing. */
static int floats_forward(const pc__conv_shape *s)
{
    const bool flat = taps_of(s) == 1 && depth_of(s) <= 24 && places_of(s) > 4096;
    return flat && numbers_of(s) < 6e6 ? AS_IS : OURS;
}

static int floats_input(const pc__conv_shape *s)
{
    const double depth = depth_of(s), numbers = numbers_of(s);
    if (s->c <= 4)
        return numbers > 1e6 && depth > 1000 ? PLANES : OURS;
    if (numbers > 600000)
        return depth > (taps_of(s) <= 9 ? 4300 : 5000) && may_be_planes(s, (double)s->n * s->h * s->w, s->c) ? PLANES
                                                                                                             : OURS;
    return s->sh * s->sw > 1 && taps_of(s) >= 49 && s->h * s->w > 64 ? PLANES : OURS;
}

static int floats_weights(const pc__conv_shape *s)
{
    if (places_of(s) <= (taps_of(s) >= 25 ? 1000 : 240))
        return AS_IS;
    if (weights_of(s) <= 87000 || taps_of(s) >= 25)
        return OURS;
    return is_wide(s) && work_of(s) > 4.7e8 ? PLANES : AS_IS;
}

/* Pictures and results in C order, forward, in float32 in full. */
static bool is_of_float_planes(const pc__conv_shape *s)
{
    return s->planes && s->dtype == PC_F32 && !s->tf32 && s->direction == PC__CONV_FORWARD;
}

bool pc__conv_keeps_planes(const pc__conv_shape *s)
{
    const double most = taps_of(s) <= 9 ? 600 : 130;
    return is_of_float_planes(s) && !s->bias && !s->relu && depth_of(s) <= most && s->o >= 16;
}

bool pc__conv_is_for_transforms(const pc__conv_shape *s)
{
    return is_of_float_planes(s) && s->sh * s->sw == 1 && taps_of(s) >= 49 && s->oh >= 2 * s->kh &&
           s->ow >= 2 * s->kw && s->c >= 8 && s->o >= 8 && work_of(s) >= 5e8;
}

int pc__conv_rule(const pc__conv_shape *s, bool native)
{
    const int padded = (int)pc__conv_usual_format(s), d = s->direction;
    if (s->dtype == PC_F64 || (native && (pc__conv_is_few(s) || pc__conv_is_single(s))))
        return OURS;
    if (s->dtype != PC_F32)
        return native ? halves_rule(s, padded) : padded;
    if (s->tf32)
        return d == PC__CONV_FORWARD ? tf32_forward(s, padded)
               : d == PC__CONV_INPUT ? tf32_input(s, padded)
                                     : tf32_weights(s, padded);
    return d == PC__CONV_FORWARD ? floats_forward(s) : d == PC__CONV_INPUT ? floats_input(s) : floats_weights(s);
}

enum { MUCH = 1000000000 };

/* In 16 bits a small layer's gain is less than what more calls cost. */
bool pc__conv_is_worth_more_calls(const pc__conv_shape *s, bool native)
{
    return pc__conv_rule(s, native) >= 0 && (!native || s->dtype == PC_F32 || depth_of(s) >= 576 || work_of(s) >= MUCH);
}

bool pc__conv_is_much_of_cudnns(const pc__conv_shape *s, bool native)
{
    return s->dtype != PC_F32 && pc__conv_rule(s, native) >= 0 && work_of(s) >= MUCH;
}

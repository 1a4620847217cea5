/* rule.c: who does a product of a convolution, from its shape alone: products of drawn layers on an H200, the table in
 * docs/kernels-diary.md; bench/peers/ways.py makes it anew. */
#include "cuda/conv/choice.h"

#include <limits.h>
#include <math.h>
#include <paracord/tensor.h>

/* Sixteen bytes of channels; 1 where no matrix units multiply. */
static int together(const pc__conv_shape *s)
{
    return s->dtype == PC_F16 || s->dtype == PC_BF16 ? 8 : s->dtype == PC_F32 && s->tf32 ? 4 : 1;
}

static int rounded_up(int n, int to)
{
    return n > INT_MAX - to ? n : (n + to - 1) / to * to;
}

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

/* Numbers that make one of the result: sums of so many products are what matrix units are for. */
static double depth_of(const pc__conv_shape *s)
{
    return (double)(s->direction == PC__CONV_INPUT ? s->o : s->c) * s->kh * s->kw;
}

static double places_of(const pc__conv_shape *s)
{
    return (double)s->n * s->oh * s->ow;
}

static double work_of(const pc__conv_shape *s)
{
    return places_of(s) * s->o * s->c * s->kh * s->kw;
}

/* Of both pictures: below some number a kernel is all launch, and bringing operands into another format is dear. */
static double numbers_of(const pc__conv_shape *s)
{
    return (double)s->n * s->h * s->w * s->c + places_of(s) * s->o;
}

/* Of channels, which a shape without any need not say. */
static int groups_of(const pc__conv_shape *s)
{
    return s->groups > 1 ? s->groups : 1;
}

static double weights_of(const pc__conv_shape *s)
{
    return (double)s->c * s->o * s->kh * s->kw;
}

static int taps_of(const pc__conv_shape *s)
{
    return s->kh * s->kw;
}

/* A product of matrices. */
static bool has_windows_of_one(const pc__conv_shape *s)
{
    return taps_of(s) == 1 && s->sh * s->sw == 1;
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

/* Matrix units work on eight channels by eight at least, and blocks of cuDNN's on several times that: in front of them
 * the direct kernels win as long as little of their own work is left. */
bool pc__conv_is_few(const pc__conv_shape *s)
{
    enum { PLACES = 65536 }; /* fewer leave multiprocessors idle */
    const int64_t products = (int64_t)s->c * s->o * s->kh * s->kw;
    const bool eights = together(s) == 8 && s->c % 8 == 0 && s->o % 8 == 0;
    if (s->dtype == PC_F64 || eights || s->c > 8 || products > 1000)
        return false;
    return s->direction == PC__CONV_WEIGHTS ? s->o <= 12 && places_of(s) > 500
                                            : s->o <= 8 && s->c * s->o <= 40 && s->n * s->oh * s->ow >= PLACES;
}

/* Ours reads the gradient once, and so for all taps that it has registers for. */
bool pc__conv_is_single(const pc__conv_shape *s)
{
    enum { PLACES = 16384, TAPS = 49 };
    return s->direction == PC__CONV_INPUT && s->dtype != PC_F64 && s->c == 1 && s->o > 8 && taps_of(s) > 1 &&
           taps_of(s) <= TAPS && places_of(s) >= PLACES;
}

/* A sum is walked by a warp at most. */
bool pc__conv_is_least(const pc__conv_shape *s, bool asked)
{
    enum { LEAST = 1 << 19, LONG = 2048 };
    const int times = asked ? 16 : 1;
    const double terms = s->direction == PC__CONV_FORWARD ? (double)s->c * taps_of(s)
                         : s->direction == PC__CONV_INPUT ? (double)s->o * taps_of(s)
                                                          : places_of(s);
    return terms <= times * LONG && places_of(s) * s->o * s->c * taps_of(s) <= times * LEAST;
}

/* With strides a gradient's neighbours read places far apart, or what is no place: tiles do so once for all taps. */
static bool is_for_tiles_of_strides(const pc__conv_shape *s, double results, double terms)
{
    enum { FEW = 128, SOME = 1 << 20, MANY = 700 };
    if (s->dtype != PC_F32 || s->sh * s->sw == 1)
        return false;
    return s->direction == PC__CONV_INPUT ? terms <= FEW && results * terms > SOME
                                          : s->direction == PC__CONV_WEIGHTS && terms > MANY;
}

bool pc__conv_is_least_of_groups(const pc__conv_shape *s)
{
    enum { LEAST = 1 << 22, LONG = 2048 };
    const int groups = groups_of(s);
    const double work = work_of(s) / groups;
    const double results = s->direction == PC__CONV_FORWARD ? places_of(s) * s->o
                           : s->direction == PC__CONV_INPUT ? (double)s->n * s->h * s->w * s->c
                                                            : weights_of(s) / groups;
    const double terms = s->direction == PC__CONV_FORWARD ? (double)s->c * taps_of(s) / groups
                         : s->direction == PC__CONV_INPUT ? (double)s->o * taps_of(s) / groups
                                                          : places_of(s);
    return terms <= LONG && work <= LEAST && results * terms <= LEAST && !is_for_tiles_of_strides(s, results, terms);
}

/* What a group has: channels, outputs, and the more of them. */
typedef struct group {
    int in, out, most;
} group;

static group group_of(const pc__conv_shape *s)
{
    const int in = s->c / groups_of(s), out = s->o / groups_of(s);
    return (group){in, out, in > out ? in : out};
}

/* Groups of 8, 16, 32 channels or of whole 64 are what cuDNN's kernels on matrix units multiply; others it copies into such
 * first. */
static bool is_cudnns(int channels)
{
    return channels % 64 == 0 || (channels >= 8 && !(channels & (channels - 1)));
}

static bool has_group_of_cudnns(const group *g)
{
    return is_cudnns(g->in) && is_cudnns(g->out);
}

/* Products that tiles make on matrix units, whole or not; as exact floats they are three times as many, which groups of no
 * whole fours are. */
static double products_of_tiles(const pc__conv_shape *s, const group *g)
{
    const int fours = g->in % 4 == 0 && g->out % 4 == 0, wide = fours ? 32 : 16;
    const double columns = (double)rounded_up(g->out, wide) * groups_of(s);
    return places_of(s) * columns * g->in * taps_of(s) * (fours ? 1 : 3);
}

/* In TF32, whose kernels of cuDNN's are quick for groups of some sizes, and for taps apart but where a gradient has strides, too. */
static bool is_tf32_for_tiles(const pc__conv_shape *s, const group *g)
{
    enum { FEW = 40, LARGE = 49 };
    static const double MUCH = 4e9, TOO_MUCH = 5e9;
    const bool strides = s->sh * s->sw > 1, apart = s->dh > 1 || s->dw > 1;
    const bool shared = s->dh % s->sh == 0 && s->dw % s->sw == 0; /* all taps reach the same places */
    if (g->most <= FEW)
        return !has_group_of_cudnns(g) || products_of_tiles(s, g) <= MUCH;
    if (s->direction == PC__CONV_INPUT && strides && apart)
        return !shared || work_of(s) / groups_of(s) <= TOO_MUCH;
    return s->direction == PC__CONV_FORWARD && s->groups > 1 && taps_of(s) >= LARGE;
}

bool pc__conv_is_for_tiles(const pc__conv_shape *s)
{
    enum { WIDE = 192 };
    const group g = group_of(s);
    if (s->dtype != PC_F32)
        return s->dtype == PC_F64;
    if (s->tf32)
        return is_tf32_for_tiles(s, &g);
    return s->direction != PC__CONV_WEIGHTS || s->groups <= 1 || g.out < WIDE;
}

/* Products up to which tiles take less time than cuDNN, where groups are whole accesses of eight: it has kernels for each
 * group, and tiles of long sums are few. */
static double most_of_eights(const pc__conv_shape *s, const group *g)
{
    enum { LONG = 1536 };
    static const double GROUP = 7e7, OF_LONG = 1e7, EACH = 50;
    return (g->in * taps_of(s) >= LONG ? OF_LONG : GROUP) * groups_of(s) + EACH * numbers_of(s);
}

/* What cuDNN copies takes it longer the more there is. */
bool pc__conv_is_for_tiles_of_halves(const pc__conv_shape *s)
{
    static const double LEAST = 1.2e9, EACH = 200, MOST = 1 << 27 /* floats of both pictures */;
    const group g = group_of(s);
    const bool eights = g.in % 8 == 0 && g.out % 8 == 0;
    return s->groups > 1 && !has_group_of_cudnns(&g) && numbers_of(s) <= MOST &&
           products_of_tiles(s, &g) <= (eights ? most_of_eights(s, &g) : LEAST + EACH * numbers_of(s));
}

/* By the products that its tiles make, whole or not; with a stride the input's gradient tries taps in vain. The limits
 * are where, of 300 drawn layers, it was the fastest more often than not: with matrix units other ways are that sooner, and in float32 more rows occupy the chip whole. */
bool pc__conv_is_little(const pc__conv_shape *s)
{
    enum { FLOATS, TF32, HALVES };
    static const double most[][2] = {[FLOATS] = {3e7, 3e7}, [TF32] = {4e7, 3e7}, [HALVES] = {3e7, 1e7}};
    const bool input = s->direction == PC__CONV_INPUT;
    const int kind = together(s) == 8 ? HALVES : together(s) == 4 ? TF32 : FLOATS;
    const double rows = input ? (double)s->n * s->h * s->w * s->sh * s->sw : places_of(s),
                 columns = input ? s->c : s->o;
    if (s->dtype == PC_F64 || s->direction == PC__CONV_WEIGHTS || (taps_of(s) == 1 && kind != FLOATS) ||
        (kind == FLOATS && !input && floats_forward(s) >= 0) ||
        (kind == TF32 && !input && s->c == 1 && taps_of(s) <= 9))
        return false;
    const double products = (rows < 32 ? 32 : rows) * (columns < 32 ? 32 : columns) * depth_of(s);
    if (kind == FLOATS && !input && depth_of(s) < 64 && rows * ceil(columns / 32) > 20000) /* nothing is cut then */
        return false;
    if (kind != HALVES && !input && taps_of(s) >= 49 && rows <= 256) /* for which cuDNN has but slow kernels */
        return products <= 8e8;
    if (kind == TF32 && !input && s->c % 4 == 0 && taps_of(s) == 9)
        return products <= 2.5e7;
    return products <= (kind == FLOATS && rows <= 8192 ? 1.5e8 : most[kind][input]);
}

bool pc__conv_is_shallow(const pc__conv_shape *s)
{
    enum { PLACES = 512 };
    return together(s) == 8 && s->direction == PC__CONV_FORWARD && s->c < 8 && s->oh * s->ow >= PLACES;
}

bool pc__conv_is_deep(const pc__conv_shape *s)
{
    return depth_of(s) >= 144;
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

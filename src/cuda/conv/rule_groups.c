/* rule_groups.c: who does a product of a convolution with groups or taps apart, from its shape alone. */
#include "cuda/conv/size.h"

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

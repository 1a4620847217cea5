/* drawn.h: a case of bench.drawn: one line of text, what is made of it, and how often it is done. bench/peers/drawn.py
 * draws the lines and makes the same of them in PyTorch; docs/drawn.md says what a line means. */
#ifndef PC_BENCH_DRAWN_H
#define PC_BENCH_DRAWN_H

#include <paracord.h>

enum { LINE_ROOM = 2048, WORDS_MOST = 64, INPUTS_MOST = 3 };

/* --- text.c: the line --- */

typedef struct words {
    char line[LINE_ROOM];
    const char *word[WORDS_MOST];
    int count;
} words;

pc_status words_read(words *w, const char *line);
const char *word_of(const words *w, const char *key); /* what stands behind "key=", or NULL */
int number_of(const words *w, const char *key, int otherwise);
pc_status dtype_of(const char *name, pc_dtype *dtype);
pc_status activation_of(const char *name, pc_activation_kind *kind);
pc_shape numbers_between(const char *text, char separator, const char **end); /* "3x4x5": up to PC_MAX_DIMS of them */

/* --- values.c: numbers that PyTorch's side makes by the same formula --- */

typedef enum number_kind {
    ANY,              /* in [-1, 1) */
    POSITIVE,         /* in [0.5, 1.5] */
    TRUTH,            /* bool: whether the one in [-1, 1) is above 0 */
    TRUTH_OF_NUMBERS, /* the same as 0 and 1 */
} number_kind;

/* The tensor that "64x128:p1.0" describes; `at` is which row of numbers it takes. Belongs to the innermost scope. */
pc_tensor *tensor_of(const char *text, uint32_t at, number_kind kind, pc_dtype dtype, pc_device device);
pc_tensor *numbers_of(pc_shape shape, uint32_t at, number_kind kind, double factor, pc_dtype dtype, pc_device device);
pc_tensor *labels_of(int64_t count, int64_t classes, pc_device device);

/* Print " name:dtype:shape:weighted:norm" of a tensor: the sum of its elements, each times a number of the formula, and
 * the root of the sum of their squares. */
pc_status tell(const char *name, const pc_tensor *t);

/* --- a case --- */

typedef struct drawn drawn;

typedef struct op {
    const char *name;
    pc_tensor *(*make)(drawn *d); /* the result belongs to the innermost scope, or is one of the inputs */
    number_kind kinds[INPUTS_MOST];
    bool has_labels;   /* one for each row of the first input */
    bool writes_input; /* and has no gradient */
} op;

const op *op_named(const char *name); /* NULL: there is none */

typedef enum loss_kind { CROSS_ENTROPY, BCE, MSE } loss_kind;

struct drawn {
    pc_device device;
    words words;
    pc_dtype dtype;
    pc_status (*go)(void *d); /* the case, once */

    const op *op;
    pc_tensor *in[INPUTS_MOST], *index, *gradient; /* the result's: NULL: forward only */
    int dim, k, kernel, stride, padding, dilation, groups;
    bool keepdim, causal;
    pc_shape dims;
    pc_activation_kind activation;
    double p;
    pc_dtype to;

    pc_module *net;
    pc_optimizer *optimizer;
    pc_step *step;
    pc_tensor *x, *y;
    loss_kind loss;
    bool sixteen; /* by autocast */

    pc_stream *side; /* waits for each of them, so that the plan makes no one call of two goes */
    pc_event *gone;
    pc_stream *stream; /* of a recording of several goes */
    pc_graph *graph;
    int goes, repeats[2]; /* of a launch; of a round, eager and recorded */
};

/* op.c, net.c: make a case of the words, and print what it gives. On failure drawn_end cleans up. */
pc_status op_begin(drawn *d);
pc_status op_tell(drawn *d);
pc_status net_begin(drawn *d);
pc_status net_tell(drawn *d);
pc_module *net_of(const words *w, pc_shape x); /* layers.c */

/* round.c: seconds of a go, the mean over about `seconds`; recorded: as launches of so many goes, or as pc_step. */
pc_status round_of(drawn *d, bool recorded, double seconds, int goes, double *each);
void drawn_end(drawn *d);

#endif

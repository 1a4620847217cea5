/* gpt.c: training steps of GPTs: forward, loss, backward, AdamW with clipping, one recording. Peer: bench/peers/gpt.py.
 *
 * Usage: bench.gpt DEVICES PRECISION LAYERS HEADS WIDTH VOCABULARY BATCH LENGTH [steps]
 * DEVICES: cuda:0, or cuda*2 for two ranks, each with BATCH, or each network of BENCH_TENSOR ranks. A line of JSON: milliseconds a step (median of batches of steps),
 * until the first step was done, megabytes of a device at most, and of pinned host memory at the end, of all ranks of a process.
 *
 * BENCH_ZERO=1, 2, 3 trains by pc_zero, and with BENCH_OFFLOAD=1 out of host memory. The floor is then what crosses the bus for
 * each of the P / ranks numbers of a rank: AdamW's two moments, 8 bytes there and 8 back; in stage 3 the weight, too, 4 there and
 * 4 back, and 4 there whenever its bucket is gathered, in the forward and in the backward pass: 16 bytes, or 32. PCIe 5.0 x16
 * brings about 55 GB/s each way, and both at once: at least 20 bytes / 55 GB/s for a number of stage 3, 45 ms for the 124
 * million of GPT-2 on one GPU, and 18 ms in stages 1 and 2. With BENCH_AHEAD=1 or 2 the gathered weights, 18 of the 45 ms, cross
 * it beside what is computed; without, they come on top, as the moments do. */
#include "steps.h"

#include <string.h>

typedef struct job {
    pc_group *group; /* that has the network; NULL: this rank */
    pc_module *gpt;
    pc_tensor *x, *y;
} job;

static pc_tensor *loss_of(void *user)
{
    job *j = user;
    return pc_gpt_parallel_loss(j->gpt, pc_forward(j->gpt, j->x), j->y);
}

/* Tokens all over the vocabulary; each is its own target. */
static pc_tensor *tokens_of(pc_shape shape, int64_t vocabulary, pc_device device)
{
    const int64_t n = shape.dim[0] * shape.dim[1];
    int64_t *tokens = malloc((size_t)n * sizeof *tokens);
    for (int64_t i = 0; i < n && tokens; i++)
        tokens[i] = (i * 2654435761LL + 12345) % vocabulary;
    pc_tensor *made = tokens ? pc_from_data(tokens, shape, PC_I64, device) : NULL;
    free(tokens);
    return made;
}

static pc_status make(job *j, char **word, pc_device device)
{
    const pc_shape shape = PC_SHAPE(atoll(word[6]), atoll(word[7]));
    j->gpt = pc_gpt(.layers = atoi(word[2]), .heads = atoi(word[3]), .width = atoi(word[4]),
                    .vocabulary = atoll(word[5]), .context = (int)shape.dim[1], .group = j->group);
    if (!j->gpt || pc_module_to(j->gpt, device, PC_F32) != PC_OK)
        return pc_error_last()->status;
    j->x = tokens_of(shape, atoll(word[5]), device);
    j->y = tokens_of(shape, atoll(word[5]), device);
    return j->x && j->y ? PC_OK : pc_error_last()->status;
}

static pc_status make_from(void *user, char **words, int count, pc_device device, pc_group *network)
{
    job *j = user;
    (void)count;
    j->group = network;
    return make(j, words, device);
}

static void free_all(void *user)
{
    job *j = user;
    pc_tensor_free(j->x);
    pc_tensor_free(j->y);
    pc_module_free(j->gpt);
}

static pc_module *network_of(void *user)
{
    return ((job *)user)->gpt;
}

static pc_optimizer *optimizer_for(void *user, pc_module *of)
{
    const job *j = user;
    pc_optimizer *adamw = pc_adamw(of, .lr = 1e-4, .beta2 = 0.95, .weight_decay = 0.1);
    const bool cut = j->group && of == j->gpt; /* else pc_zero_step takes the whole network's norm */
    if (adamw && (cut ? pc_tensor_parallel_clip(of, adamw, 1) : pc_optimizer_set_clip(adamw, PC_CLIP_NORM, 1)) == PC_OK)
        return adamw;
    pc_optimizer_free(adamw);
    return NULL;
}

int main(int argc, char **argv)
{
    double result[RESULTS];
    trained t = {.job_bytes = sizeof(job),
                 .make = make_from,
                 .free = free_all,
                 .loss = loss_of,
                 .network = network_of,
                 .optimizer = optimizer_for,
                 .words = argv + 1,
                 .count = argc - 1,
                 .steps = argc > 9 ? atoi(argv[9]) : 20};
    if (argc < 9) {
        fprintf(stderr, "usage: bench.gpt DEVICES PRECISION LAYERS HEADS WIDTH VOCABULARY BATCH LENGTH [steps]\n");
        return 2;
    }
    const int n = ranks_trained(&t, result);
    if (n && pc_dist_rank() == 0)
        printf("{\"ranks\": %d, \"step_ms\": %.4f, \"first_ms\": %.1f, \"tokens_per_second\": %.0f, \"peak_mb\": %.0f, "
               "\"pinned_mb\": %.0f}\n",
               n, result[STEP_MS], result[FIRST_MS],
               n / bench_tensor() * atof(argv[7]) * atof(argv[8]) / result[STEP_MS] * 1e3, result[PEAK_MB],
               result[PINNED_MB]);
    return n ? 0 : 1;
}

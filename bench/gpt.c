/* gpt.c: training steps of GPTs: forward, loss, backward, AdamW with clipping, one recording. Peer: bench/peers/gpt.py.
 *
 * Usage: bench.gpt DEVICE PRECISION LAYERS HEADS WIDTH VOCABULARY BATCH LENGTH [steps]
 * A line of JSON: milliseconds a step (median of batches of steps), until the first step was done, and megabytes at most. */
#include "steps.h"

#include <string.h>

typedef struct job {
    pc_module *gpt;
    pc_optimizer *adamw;
    pc_tensor *x, *y;
} job;

static pc_tensor *loss_of(void *user)
{
    job *j = user;
    return pc_gpt_loss(pc_forward(j->gpt, j->x), j->y);
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
                    .vocabulary = atoll(word[5]), .context = (int)shape.dim[1]);
    if (!j->gpt || pc_module_to(j->gpt, device, PC_F32) != PC_OK)
        return pc_error_last()->status;
    j->adamw = pc_adamw(j->gpt, .lr = 1e-4, .beta2 = 0.95, .weight_decay = 0.1);
    j->x = tokens_of(shape, atoll(word[5]), device);
    j->y = tokens_of(shape, atoll(word[5]), device);
    if (!j->adamw || !j->x || !j->y)
        return pc_error_last()->status;
    return pc_optimizer_set_clip(j->adamw, PC_CLIP_NORM, 1);
}

int main(int argc, char **argv)
{
    if (argc < 9) {
        fprintf(stderr, "usage: bench.gpt DEVICE PRECISION LAYERS HEADS WIDTH VOCABULARY BATCH LENGTH [steps]\n");
        return 2;
    }
    const char *precision = argv[2];
    pc_device device = pc_device_pick(argv[1]);
    pc_memory_stats memory;
    job j = {0};
    const pc_dtype autocast = strcmp(precision, "bf16") == 0 ? PC_BF16 : PC_F32;
    double first = 0, median = 0;
    if (strcmp(precision, "tf32") == 0)
        pc_matmul_precision_set(PC_PRECISION_TF32);
    pc_seed(1);
    if (make(&j, argv + 1, device) != PC_OK ||
        steps_timed(loss_of, &j, j.adamw, autocast, device, argc > 9 ? atoi(argv[9]) : 20, &first, &median) != PC_OK ||
        pc_memory_query(device, &memory) != PC_OK)
        return pc_report(stderr);
    printf("{\"step_ms\": %.4f, \"first_ms\": %.1f, \"tokens_per_second\": %.0f, \"peak_mb\": %.0f}\n", median, first,
           (double)pc_tensor_count(j.x) / median * 1e3, (double)memory.peak * 1e-6);
    pc_tensor_free(j.x);
    pc_tensor_free(j.y);
    pc_optimizer_free(j.adamw);
    pc_module_free(j.gpt);
    return 0;
}

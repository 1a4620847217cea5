/* chargpt.c: a GPT learns the letters of a text and writes on.
 *
 *     chargpt                         a few lines, learnt by heart in seconds
 *     chargpt poems.txt               a text of yours: a minute or two on two cores
 *     chargpt poems.txt 2000 "O "     so many steps, and what it is to go on from
 */
#include <paracord.h>

#include <stdlib.h>
#include <string.h>

static const char lines[] =
    "How doth the little crocodile\nImprove his shining tail,\nAnd pour the waters of the Nile\n"
    "On every golden scale!\n\nHow cheerfully he seems to grin,\nHow neatly spreads his claws,\n"
    "And welcomes little fishes in,\nWith gently smiling jaws!\n\n"; /* Lewis Carroll, 1865 */

enum { BATCH = 12, CONTEXT = 64, TEST_BATCHES = 10 };

typedef struct job {
    pc_module *gpt;
    pc_optimizer *adamw;
    pc_tensor *x, *y, *loss; /* tokens, what follows each of them, and how well that was told */
} job;

/* One step: forward, backward, update. pc_step records it and runs the recording from then on. */
static pc_status learn(void *user)
{
    job *j = user;
    pc_status status = PC_OK;
    PC_SCOPE {
        pc_tensor *loss = pc_gpt_loss(pc_forward(j->gpt, j->x), j->y);
        status = pc_backward(loss);
        if (status == PC_OK)
            status = pc_optimizer_step(j->adamw);
        PC_NO_GRAD {
            if (status == PC_OK)
                status = pc_copy(j->loss, loss);
        }
    }
    return status;
}

static pc_status train(job *j, const pc_corpus *text, int64_t steps, double lr)
{
    const pc_schedule cosine = {PC_SCHEDULE_COSINE, .lr = lr, .least = lr / 10, .warmup = steps / 20, .steps = steps};
    pc_step *step = pc_step_new(learn, j, j->adamw);
    pc_status status = step ? PC_OK : pc_error_last()->status;
    for (int64_t i = 0; i < steps && status == PC_OK; i++) {
        pc_optimizer_set_lr(j->adamw, pc_schedule_lr(&cosine, i));
        status = pc_corpus_draw(text, PC_CORPUS_TRAINING, 1, i, j->x, j->y);
        if (status == PC_OK)
            status = pc_step_run(step);
        if (status == PC_OK && (i % 100 == 99 || i + 1 == steps))
            printf("step %lld  loss %.4f\n", (long long)i + 1, pc_item(j->loss));
    }
    pc_step_free(step);
    return status;
}

/* The mean loss on text that it has not seen. */
static double test(const job *j, const pc_corpus *text)
{
    double sum = 0;
    pc_module_set_training(j->gpt, false);
    for (int i = 0; i < TEST_BATCHES; i++)
        PC_NO_GRAD
            PC_SCOPE {
                if (pc_corpus_draw(text, PC_CORPUS_TESTING, 2, i, j->x, j->y) == PC_OK)
                    sum += pc_item(pc_gpt_loss(pc_forward(j->gpt, j->x), j->y));
            }
    pc_module_set_training(j->gpt, true);
    return sum / TEST_BATCHES;
}

static bool print(void *context, const char *bytes, size_t n)
{
    (void)context;
    fwrite(bytes, 1, n, stdout);
    return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    size_t bytes = sizeof lines - 1;
    char *read = argc > 1 ? pc_text_read(argv[1], &bytes) : NULL;
    if (argc > 1 && !read)
        return pc_report(stderr);
    const char *text = read ? read : lines;
    const int64_t steps = argc > 2 ? atoll(argv[2]) : read ? 1000 : 200;

    pc_seed(1);
    pc_tokenizer *letters = pc_tokenizer_new_letters(text, bytes);
    pc_corpus *corpus = pc_corpus_new(letters, text, bytes, (pc_corpus_options){.held_out = read ? 0.1 : -1});
    if (!corpus)
        return pc_report(stderr);
    job j = {.gpt = pc_gpt(.layers = read ? 4 : 2, .heads = 4, .width = read ? 128 : 64, .context = CONTEXT,
                           .vocabulary = pc_tokenizer_size(letters))};
    pc_device device = pc_device_pick("auto");
    if (!j.gpt || pc_module_to(j.gpt, device, PC_F32) != PC_OK)
        return pc_report(stderr);
    j.adamw = pc_adamw(j.gpt, .lr = 1e-3, .beta2 = 0.99, .weight_decay = 0.1);
    j.x = pc_zeros(PC_SHAPE(BATCH, CONTEXT), PC_I64, device);
    j.y = pc_zeros(PC_SHAPE(BATCH, CONTEXT), PC_I64, device);
    j.loss = pc_zeros(PC_SHAPE_SCALAR, PC_F32, device);
    if (!j.adamw || pc_optimizer_group(j.adamw, "*", .max_dims = 1, .no_decay = true) != PC_OK ||
        pc_optimizer_set_clip(j.adamw, PC_CLIP_NORM, 1) != PC_OK ||
        train(&j, corpus, steps, read ? 1e-3 : 5e-3) != PC_OK)
        return pc_report(stderr);
    if (read)
        printf("test loss %.4f\n", test(&j, corpus));

    const char *start = argc > 3 ? argv[3] : read ? "\n" : "How ";
    printf("\n%s", start);
    char *written =
        pc_gpt_write(j.gpt, letters, start, (pc_gpt_write_options){.tokens = 300, .temperature = 0.8, .told = print});
    printf("\n");
    pc_text_free(written);
    pc_text_free(read);
    pc_tensor_free(j.x);
    pc_tensor_free(j.y);
    pc_tensor_free(j.loss);
    pc_optimizer_free(j.adamw);
    pc_module_free(j.gpt);
    pc_corpus_free(corpus);
    pc_tokenizer_free(letters);
    return pc_failed() ? pc_report(stderr) : 0;
}

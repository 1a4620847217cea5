/* train_with_callbacks.c: what `paracord train` and `paracord predict` do, from C: one call trains and writes the
 * network, a report and checkpoints; callbacks hear of it. Writes faces/ and faces-run/ where it runs. */
#include <paracord-tools.h>
#include <paracord.h>

static void epoch(void *context, const pc_epoch_result *result)
{
    double *best = context;
    printf("epoch %d: accuracy %.3f, on new pictures %.3f\n", result->epoch, result->accuracy, result->test_accuracy);
    *best = result->test_accuracy > *best ? result->test_accuracy : *best;
}

static void skipped(void *context, const char *path, const char *why)
{
    (void)context;
    printf("%s %s\n", path, why);
}

int main(void)
{
    pc_draw_options drawn = {.train = 250, .test = 50, .size = 96};
    if (pc_draw_picture_set("faces", drawn) != PC_OK)
        return pc_report(stderr);

    double best = 0;
    pc_train_callbacks watch = {.context = &best, .epoch = epoch, .skipped = skipped};
    pc_train_options options = {
        .data = "faces", .out = "faces-run", .epochs = 8, .flip = true, .callbacks = &watch, .report = pc_report_page};
    pc_train_summary summary;
    if (pc_train_folder(options, &summary) != PC_OK)
        return pc_report(stderr);
    printf("%d epochs in %.1f s, the best %.3f\n", summary.epochs_done, summary.seconds, best);

    pc_classifier *network = pc_classifier_open("faces-run/model.h5", "auto");
    pc_prediction prediction;
    if (network && pc_classifier_predict(network, "faces/test/dog/dog.000.jpg", &prediction) == PC_OK)
        printf("%s, %.1f %% sure\n", prediction.name, 100 * prediction.probability);
    pc_classifier_free(network);
    return pc_failed() ? pc_report(stderr) : 0;
}

/* train.c: paracord train DIR */
#include <stddef.h>
#include <string.h>

#include <paracord-tools/report.h>

#include "program.h"
#include "ranks.h"
#include "signals.h"
#include "text.h"
#include "watch.h"

typedef struct settings {
    pc_train_options o;
    const char *devices;
    pc_train_summary *summary;
} settings;

static void started(void *context, const char *description)
{
    cli_watch *watch = context;
    cli_progress_clear(&watch->progress);
    printf("%s\n", description);
    fflush(stdout);
}

static void epoch_done(void *context, const pc_epoch_result *r)
{
    cli_watch *watch = context;
    char text[32];
    cli_progress_clear(&watch->progress);
    printf("epoch %*d/%d  loss %.4f  acc %.3f", snprintf(NULL, 0, "%d", r->epochs), r->epoch, r->epochs, r->loss,
           r->accuracy);
    if (r->has_test)
        printf("  test loss %.4f  test acc %.3f", r->test_loss, r->test_accuracy);
    if (r->has_test && r->uneven)
        printf("  balanced %.3f", r->test_balanced_accuracy);
    printf("  %.1f s", r->seconds);
    if (!watch->progress.live)
        printf("  %s images/s", cli_thousands((int64_t)(r->images_per_second + 0.5), text));
    putchar('\n');
    fflush(stdout);
}

/* The line that was typed with --resume in it, quoted so that a shell reads it the same. */
static void print_resume(const cli_call *call, const pc_train_options *o)
{
    printf("paracord %s%s", call->command->name, o->resume ? "" : " --resume");
    for (int i = 0; i < call->argc; i++) {
        putchar(' ');
        cli_print_shell(stdout, call->argv[i]);
    }
    putchar('\n');
}

static int report_stop(const cli_call *call, const pc_train_options *o, const cli_watch *watch)
{
    if (watch->last.epoch == 0) {
        puts("stopped before the first batch; nothing was saved");
        return cli_stopped_status();
    }
    long long batch = (watch->last.done + o->batch - 1) / o->batch;
    printf("stopped after epoch %d, batch %lld; go on with: ", watch->last.epoch, batch);
    print_resume(call, o);
    return cli_stopped_status();
}

/* Which epoch the network is of. */
static void report_kept(const pc_train_summary *s)
{
    if (s->stopped_early)
        printf("ended early: the last epochs were no better than one before them\n");
    printf("kept epoch %d: test accuracy %.3f", s->kept.epoch, s->kept.test_accuracy);
    if (s->kept.uneven)
        printf(", balanced accuracy %.3f", s->kept.test_balanced_accuracy);
    printf(", test loss %.4f", s->kept.test_loss);
    puts(s->kept.epoch == s->epochs_done ? " (the last one)" : " (the best one)");
}

static void report(const pc_train_options *o, const pc_train_summary *s)
{
    char text[32];
    printf("done in %s: accuracy %.3f on %s pictures", cli_duration(s->seconds, text), s->accuracy,
           cli_thousands(s->train_pictures, (char[32]){0}));
    if (s->test_pictures > 0)
        printf(", %.3f on %s test pictures", s->test_accuracy, cli_thousands(s->test_pictures, text));
    putchar('\n');
    if (s->kept.epoch > 0 && s->kept.has_test)
        report_kept(s);
    if (s->skipped > 0)
        printf("%s picture%s could not be used and %s skipped\n", cli_thousands(s->skipped, text),
               s->skipped == 1 ? "" : "s", s->skipped == 1 ? "was" : "were");
    if (s->damaged > 0)
        printf("%s damaged picture%s used, since all pixels are there\n", cli_thousands(s->damaged, text),
               s->damaged == 1 ? " was" : "s were");
    printf("the network is in ");
    cli_print_shell(stdout, o->out);
    printf("/%s, the curves in ", s->model);
    cli_print_shell(stdout, o->out);
    printf("/report.html\n");
}

static pc_status train(void *context, pc_group *group, const char *device, bool first)
{
    const settings *s = context;
    pc_train_options o = s->o;
    pc_train_summary unread;
    o.group = group;
    o.device = device;
    return pc_train_folder(o, first ? s->summary : &unread);
}

static int run(const cli_call *call)
{
    settings s = *(settings *)call->settings;
    pc_train_summary summary = {0};
    cli_ranks ranks = {.work = train, .context = &s};
    cli_watch watch;
    if (!cli_ranks_take(call->command, &ranks, s.devices, s.o.device))
        return CLI_WRONG_USAGE;
    cli_watch_start(&watch, call->command);
    pc_train_callbacks callbacks = cli_watch_callbacks(&watch);
    callbacks.started = started;
    callbacks.epoch = epoch_done;
    s.o.data = call->line->values[0];
    s.o.callbacks = &callbacks;
    s.o.report = pc_report_page;
    s.o.weight_decay = s.o.weight_decay < 0 ? 0 : s.o.weight_decay > 0 ? s.o.weight_decay : -1; /* 0: what is usual */
    s.summary = &summary;
    const pc_status status = cli_ranks_run(&ranks);
    cli_watch_end(&watch);
    if (status == PC_OK && ranks.is_other)
        return CLI_FINE;
    if (status == PC_ERR_INTERRUPTED || (status == PC_OK && summary.interrupted))
        return report_stop(call, &s.o, &watch);
    if (status != PC_OK)
        return cli_failed(call->command);
    report(&s.o, &summary);
    return CLI_FINE;
}

const cli_choice cli_train_archs[] = {
    {"article", "one 3x3 convolution with stride 3, max-pool 2, dense 128; the network of the articles"},
    {"two-conv", "two 3x3 convolutions, each with max-pool 2, dense 128; slower, often better"},
    {"mlp", "dense layers only"},
    {"lenet", "LeNet-5: two 5x5 convolutions, each with pooling, then dense layers"},
    {"vgg11", "eight 3x3 convolutions, three dense layers; 129 million weights"},
    {"resnet18", "residual blocks; 11 million weights"},
    {"resnet34", "21 million weights"},
    {"resnet50", "24 million weights"},
    {"mobilenet_v2", "depthwise convolutions; 2 million weights"},
    {"vit_tiny", "a vision transformer; 5 million weights; sizes are multiples of 16"},
    {"vit_b_16", "a larger one; 86 million weights"},
    {0},
};
static const cli_choice optimizers[] = {
    {"adam", NULL},
    {"sgd", "plain descent, with --momentum"},
    {"adamw", "Adam, with --weight-decay taken from the weights themselves"},
    {"rmsprop", NULL},
    {"lion", "steps of one size; its rate is best a third to a tenth of Adam's"},
    {0},
};
static const cli_choice schedules[] = {
    {"constant", "the same rate in all steps"},
    {"cosine", "down to 0 along half a cosine"},
    {"linear", "down to 0 along a line"},
    {"one-cycle", "up from a 25th in the first 30% of the steps, or in --warmup, and down"},
    {0},
};
static const cli_choice inits[] = {
    {"glorot", "Glorot uniform, zero biases, as Keras does"},
    {"he", "He uniform, zero biases"},
    {"torch", "as PyTorch's layers begin"},
    {0},
};
static const cli_choice precisions[] = {
    {"float32", "as the weights are kept"},
    {"bf16", "products in bfloat16: faster where a GPU has units for it; 8 bits of fraction"},
    {"f16", "products in float16, with a loss scaler; 11 bits of fraction"},
    {0},
};
static const cli_choice reduces[] = CLI_REDUCES;
static const cli_choice freezes[] = {
    {"none", "all layers are trained"},
    {"backbone", "only the last layer is; the others, norms too, are as in the file of --init-from"},
    {0},
};
static const cli_choice keeps[] = {
    {"best", "the epoch with the greatest accuracy on the test pictures; of equals the one with the lowest test loss"},
    {"last", "the last epoch, however it did"},
    {0},
};
static const cli_choice weights[] = {
    {"none", "every picture counts alike"},
    {"balanced", "every class counts alike: pictures count for more the fewer their class has"},
    {0},
};
static const cli_choice resizes[] = {
    {"nearest", "one source pixel each, as Keras does"},
    {"area", "average of the source pixels; smoother, and faster for large JPEG files"},
    {0},
};

static const cli_choice fills[] = {
    {"nearest", "the pixels at the edge, as Keras does"},
    {"black", "as torchvision does"},
    {"reflect", "the picture, mirrored"},
    {"wrap", "the picture again"},
    {0},
};

#define AT(member) offsetof(settings, o.member)

static const cli_option options[] = {
    {"arch", 'a', CLI_CHOICE, AT(arch), "article", "NAME",
     .help = "The network to train; or FILE.json, which describes one", .group = "Network", .choices = cli_train_archs,
     .suffix = ".json"},
    {"size", 's', CLI_SIZE, AT(height), "64", "PIXELS",
     .help = "Pictures are resized to PIXELS x PIXELS, or to HEIGHTxWIDTH (--size 48x96)", .min = 8, .max = 4096},
    {"shorter", 0, CLI_INT, AT(shorter), "0", "PIXELS",
     .help = "Resize to a shorter side of PIXELS and take the middle of that size; 0 resizes whatever the proportions",
     .min = 0, .max = 16384},
    {"channels", 0, CLI_INT, AT(channels), "3", "N", .help = "1: pictures in grey; 3: in colour", .min = 1, .max = 3},
    {"init", 0, CLI_CHOICE, AT(init), "glorot", "NAME",
     .help = "How the weights begin; from vgg11 on networks begin as torchvision's do", .choices = inits},
    {"init-from", 0, CLI_PATH, AT(init_from), NULL, "FILE",
     .help =
         "Begin with the weights of FILE (.safetensors, .pth), which has torchvision's names; the last layer is left "
         "out where the number of classes is another one"},
    {"freeze", 0, CLI_CHOICE, AT(freeze), "none", "WHAT", .help = "What is not trained", .choices = freezes},

    {"epochs", 'e', CLI_INT, AT(epochs), "25", "N", .help = "How often to go through all pictures", .group = "Training",
     .min = 1, .max = 100000},
    {"keep", 0, CLI_CHOICE, AT(keep), "best", "NAME",
     .help = "Which epoch's network is kept, where there are test pictures to tell by", .choices = keeps},
    {"early-stop", 0, CLI_INT, AT(early_stop), "0", "N",
     .help = "End when N epochs in a row were no better than the best one; 0 never does", .min = 0, .max = 100000},
    {"batch", 'b', CLI_INT, AT(batch), "32", "N", .help = "Pictures per step, on all devices together", .min = 1,
     .max = 65536},
    {"optimizer", 0, CLI_CHOICE, AT(optimizer), "adam", "NAME", .help = "What updates the weights",
     .choices = optimizers},
    {"lr", 'l', CLI_FLOAT, AT(lr), "0.001", "RATE", .help = "Learning rate", .min = 0, .max = 100, .above = true},
    {"schedule", 0, CLI_CHOICE, AT(schedule), "constant", "NAME", .help = "How the learning rate goes, over all epochs",
     .choices = schedules},
    {"warmup", 0, CLI_INT, AT(warmup), "0", "STEPS", .help = "First steps, in which the learning rate rises", .min = 0,
     .max = 1000000000},
    {"momentum", 0, CLI_FLOAT, AT(momentum), "0", "SHARE", .help = "Momentum, for sgd and rmsprop", .min = 0,
     .max = 0.9999},
    {"nesterov", 0, CLI_FLAG, AT(nesterov), NULL, NULL, .help = "Nesterov's momentum, for sgd"},
    {"weight-decay", 0, CLI_FLOAT, AT(weight_decay), "auto", "SHARE",
     .help = "How much of the weights each step takes away; auto: 0.01 of adamw, else 0, which is nothing", .min = 0,
     .max = 1000, .automatic = true},
    {"clip", 0, CLI_FLOAT, AT(clip), "0", "NORM",
     .help = "Gradients whose norm is greater, all together, are scaled down to it; 0 leaves them", .min = 0,
     .max = 1e30},
    {"class-weights", 0, CLI_CHOICE, AT(class_weights), "none", "NAME",
     .help = "What a picture counts for in the training loss, where classes have unequal numbers", .choices = weights},
    {"label-smoothing", 0, CLI_FLOAT, AT(label_smoothing), "0", "SHARE",
     .help = "Give SHARE of each label to all classes alike, in the training loss", .min = 0, .max = 0.99},
    {"mixup", 0, CLI_FLOAT, AT(mixup), "0", "ALPHA",
     .help = "Blend each picture with another one of its batch, by shares from Beta(ALPHA, ALPHA); 0 does not",
     .min = 0, .max = 100},
    {"cutmix", 0, CLI_FLOAT, AT(cutmix), "0", "ALPHA",
     .help = "Let a part of each picture be another one's, by shares likewise; with --mixup in half of the batches",
     .min = 0, .max = 100},
    {"precision", 0, CLI_CHOICE, AT(precision), "float32", "NAME",
     .help = "How products are computed while training; the network is float32 in any case", .choices = precisions},
    {"seed", 0, CLI_SEED, AT(seed), "0", "N",
     .help = "Seed of everything random: the same seed gives the same network"},

    {"val-split", 0, CLI_FLOAT, AT(val_split), "0.2", "SHARE",
     .help = "Share of the pictures kept for testing, when DIR has no test folder", .group = "Pictures", .min = 0,
     .max = 0.9},
    {"resize", 0, CLI_CHOICE, AT(resize), "nearest", "NAME", .help = "How pictures are resized", .choices = resizes},
    {"normalise", 0, CLI_TEXT, AT(normalise), "none", "NUMBERS",
     .help = "Take a mean off pixels in [0, 1] and divide them by a deviation: MEAN,STD, or three of each "
             "(R,G,B,R,G,B), or imagenet"},
    {"shear", 0, CLI_FLOAT, AT(shear), "0.2", "DEGREES", .help = "Slant each picture at random, by at most DEGREES",
     .min = 0, .max = 89},
    {"zoom", 0, CLI_FLOAT, AT(zoom), "0.2", "SHARE", .help = "Zoom each picture at random, between 1-SHARE and 1+SHARE",
     .min = 0, .max = 0.99},
    {"rotation", 0, CLI_FLOAT, AT(rotation), "0", "DEGREES", .help = "Turn each picture at random, by at most DEGREES",
     .min = 0, .max = 180},
    {"flip", 0, CLI_FLAG, AT(flip), "on", NULL, .help = "Mirror half of the pictures, left to right"},
    {"crop", 0, CLI_FLOAT, AT(crop), "0", "SHARE",
     .help = "Enlarge a part of each picture, drawn at random, of at least SHARE of its area (0.08, say); 0 does not",
     .min = 0, .max = 1},
    {"pad", 0, CLI_INT, AT(pad), "0", "PIXELS", .help = "Move each picture at random, by at most PIXELS", .min = 0,
     .max = 4096},
    {"fill", 0, CLI_CHOICE, AT(fill), "nearest", "NAME", .help = "What comes in from beyond the edge of a picture",
     .choices = fills},
    {"brightness", 0, CLI_FLOAT, AT(brightness), "0", "SHARE",
     .help = "Change the brightness at random, by a factor between 1-SHARE and 1+SHARE", .min = 0, .max = 1000},
    {"contrast", 0, CLI_FLOAT, AT(contrast), "0", "SHARE", .help = "The contrast, likewise", .min = 0, .max = 1000},
    {"saturation", 0, CLI_FLOAT, AT(saturation), "0", "SHARE", .help = "The saturation, likewise", .min = 0,
     .max = 1000},
    {"hue", 0, CLI_FLOAT, AT(hue), "0", "TURNS",
     .help = "Turn the hues at random, by at most TURNS of the circle either way", .min = 0, .max = 0.5},
    {"erase", 0, CLI_FLOAT, AT(erase), "0", "CHANCE", .help = "Erase a part of a picture with this chance", .min = 0,
     .max = 1},
    {"no-exif", 0, CLI_FLAG, AT(no_exif), NULL, NULL,
     .help = "Take pictures as they are stored, as Keras does, instead of turning them upright by Exif"},
    {"cache", 0, CLI_BYTES, AT(cache), "auto", "SIZE",
     .help = "Memory for decoded pictures (500M, 4G; auto: half of what is left); the others are read from their "
             "files in every epoch"},
    {"strict", 0, CLI_FLAG, AT(strict), NULL, NULL,
     .help = "Fail at a broken or damaged picture instead of skipping or using it"},

    {"out", 'o', CLI_PATH, AT(out), "run", "FOLDER", .help = "Where the network, the checkpoint and the report go",
     .group = "Run"},
    {"resume", 'r', CLI_FLAG, AT(resume), NULL, NULL,
     .help = "Go on from the checkpoint in the folder of --out, where there is one"},
    {"device", 'd', CLI_TEXT, AT(device), "auto", "DEVICE", .help = CLI_DEVICE_HELP, .choices = cli_program_devices},
    {"threads", 'j', CLI_INT, AT(threads), "0", "N", .help = "CPU threads; 0 takes all cores", .min = 0, .max = 1024},
    {"accumulate", 0, CLI_INT, AT(accumulate), "1", "PARTS",
     .help = "Take each batch in so many parts, one after another: less memory, and the same is learnt but for batch "
             "norms, which see the pictures of a part alone",
     .min = 1, .max = 65536},

    CLI_DEVICES_OPTION(
        offsetof(settings, devices),
        "; each takes its part of every batch, and the same is learnt but for batch norms, which see the "
        "pictures of a device alone"),
    {"zero", 0, CLI_INT, AT(zero), "0", "STAGE", .help = CLI_ZERO_HELP, .min = 0, .max = 3},
    {"reduce", 0, CLI_CHOICE, AT(reduce), "float32", "NAME", .help = CLI_REDUCE_HELP, .choices = reduces},
    {0},
};

static const cli_argument arguments[] = {
    {"DIR", "A folder of pictures, sorted into one folder per class", 1, 1, .complete = CLI_FOLDERS},
    {0},
};

static const cli_example examples[] = {
    {"paracord train pets", "Train with the settings of the articles; the network goes to run/model.h5"},
    {"paracord train pets --arch two-conv --epochs 50 --out run2", "A larger network, for longer, elsewhere"},
    {"paracord train pets --shear 0 --zoom 0 --no-flip", "Without changing the pictures at random"},
    {"paracord train pets --shear 0 --zoom 0 --crop 0.08 --normalise imagenet --mixup 0.2 --label-smoothing 0.1",
     "In the manner of torchvision's recipes"},
    {"paracord train pets --arch resnet18 --size 224 --normalise imagenet --init-from resnet18.pth "
     "--freeze backbone",
     "Teach a network that knows a thousand things these ones"},
    {"paracord train pets --arch resnet50 --size 224 --batch 512 --devices all", "On all GPUs of the machine"},
    {"paracord train pets --arch vit_b_16 --size 224 --batch 512 --devices all --zero 2 --accumulate 4",
     "With less memory on each of them"},
    {"paracord train pets --resume", "Go on after Ctrl-C or a power cut"},
    {0},
};

const cli_command cli_train = {
    .name = "train",
    .summary = "Train a classifier on a folder of pictures",
    .description =
        "The classes are the names of the folders that the pictures (JPEG, PNG, WebP, "
        "GIF, BMP, TIFF or PPM) are in. DIR may be\n"
        "  DIR/train/cat  DIR/train/dog  DIR/test/cat  DIR/test/dog\n"
        "  DIR/training_set/...          DIR/test_set/...\n"
        "  DIR/cat  DIR/dog              (a share is kept for testing: --val-split)\n"
        "\n"
        "The result is a folder with the network, report.html, metrics.jsonl and a checkpoint. The network is "
        "model.h5, a file of Keras; that of vgg11, of all that are listed below it and of FILE.json is "
        "model.safetensors, with torchvision's names. Both say what the classes are and how pictures are prepared. "
        "Ctrl-C saves the checkpoint "
        "and says how to go on.",
    .group = "Train and use a network",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(settings),
    .run = run,
};

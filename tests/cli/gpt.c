/* paracord gpt as a user does it: train on a text, let it write, measure it, stop it by Ctrl-C and go on. */
#include "job.h"

#include <math.h>

enum { OUTPUT_MAX = 65536 };

static test_path root;
static char output[OUTPUT_MAX];

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    const test_path text = joined(root.s, "text");
    FILE *file = fopen(text.s, "w");
    for (int i = 0; file && i < 300; i++)
        fprintf(file, "verse %d: the %s of the %s\n", i, i % 2 ? "king" : "queen", i % 3 ? "north" : "south");
    return !file || fclose(file) != 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    return 0;
}

#define SMALL "--layers", "1", "--heads", "2", "--width", "16", "--context", "16", "--batch", "4", "--device", "cpu"

/* Run a shell's line in which $P is the command and $R the folder of the test; its exit status. */
static int line(const char *words)
{
    setenv("P", binary(), 1);
    setenv("R", root.s, 1);
    FILE *pipe = popen(words, "r");
    assert_non_null(pipe);
    output[fread(output, 1, OUTPUT_MAX - 1, pipe)] = 0;
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void train_sample_eval(void **state)
{
    (void)state;
    static job_end e;
    static char again[OUTPUT_MAX];
    const test_path text = joined(root.s, "text"), out = joined(root.s, "run");
    run(&e, "gpt", "train", text.s, "--out", out.s, "--steps", "20", "--test-every", "10", "--test-batches", "2",
        SMALL);
    assert_went_well(&e);
    assert_non_null(strstr(e.out, "step 10/20  loss "));
    assert_non_null(strstr(e.out, "  | "));
    assert_non_null(strstr(e.out, "done in 0:"));
    assert_true(exists(out.s, "report.html") && exists(out.s, "model.safetensors"));
    assert_no_temporaries(out.s);
    assert_int_equal(line("$P gpt sample $R/run --start 'the king' --tokens 40 --seed 3 --device cpu"), 0);
    assert_int_equal(strlen(output), 8 + 40 + 1);
    assert_memory_equal(output, "the king", 8);
    snprintf(again, sizeof again, "%s", output);
    assert_int_equal(line("$P gpt sample $R/run --start 'the king' --tokens 40 --seed 3 --device cpu --threads 1"), 0);
    assert_string_equal(output, again);
    assert_int_equal(
        line("$P gpt sample $R/run --greedy --top-k 3 --top-p 0.5 --tokens 5 --precision bf16 --device cpu"), 0);
    assert_int_equal(line("$P gpt sample $R/run --greedy --tokens 30 --device cpu"), 0);
    snprintf(again, sizeof again, "%s", output);
    assert_int_equal(line("$P gpt sample $R/run --temperature 0 --seed 9 --tokens 30 --device cpu"), 0);
    assert_string_equal(output, again);
    assert_int_equal(line("$P gpt eval $R/run $R/text --json --device cpu"), 0);
    assert_non_null(strstr(output, "\"perplexity\": "));
    assert_int_equal(line("$P gpt eval $R/run - <$R/text --device cpu"), 0);
    assert_non_null(strstr(output, "Perplexity = "));
    assert_int_equal(line("printf '\\1\\0\\2\\0\\3\\0\\4\\0' >$R/t.bin; "
                          "$P gpt eval $R/run $R/t.bin --json --device cpu"),
                     0);
    assert_non_null(strstr(output, "{\"tokens\": 3, \"loss\": "));
    assert_non_null(strstr(output, "\"bits_per_byte\": null}"));
    assert_int_equal(line("printf '\\377\\377\\2\\0' >$R/t.bin; $P gpt eval $R/run $R/t.bin --device cpu 2>&1"), 1);
    assert_non_null(strstr(output, "token number 0 is 65535, beyond the vocabulary of"));
}

static double loss_by(const char *devices)
{
    char words[512];
    snprintf(
        words, sizeof words,
        "$P gpt train $R/text --out $R/ranks --layers 1 --heads 2 --width 16 --context 16 --batch 7 --test-every 10 "
        "--test-batches 2 --sample 0 --steps 30 %s >/dev/null && $P gpt eval $R/ranks $R/text --json --device cpu",
        devices);
    assert_int_equal(line(words), 0);
    const char *at = strstr(output, "\"loss\": ");
    assert_non_null(at);
    return strtod(at + 8, NULL);
}

/* Ranks whose parts of a batch are not equal learn what one does. */
static void ranks_with_unequal_parts(void **state)
{
    (void)state;
    const double alone = loss_by("--device cpu");
    static const char *const devices[] = {"--devices cpu,cpu,cpu", "--devices cpu,cpu,cpu,cpu,cpu"};
    for (int i = 0; i < 2; i++) {
        const double shared = loss_by(devices[i]);
        if (!(fabs(shared - alone) <= 1e-5 * alone))
            fail_msg("%s: loss %.9g, and alone %.9g", devices[i], shared, alone);
    }
    assert_int_equal(line("$P gpt train $R/text --out $R/few --batch 2 --devices cpu,cpu,cpu 2>&1"), 1);
    assert_non_null(strstr(output, "a batch of 2 is too small for 3 ranks"));
}

/* Copies of a network that is cut up, whose files are the whole one's. */
static void networks_cut_up(void **state)
{
    (void)state;
    setenv("PARACORD_SIM", "4", 1);
    const double alone = loss_by("--device cpu");
    static const char *const devices[] = {
        "--devices cpu,cpu --tensor-parallel 2", "--devices cpu,cpu,cpu,cpu --tensor-parallel 2",
        "--devices sim:0,sim:1,sim:2,sim:3 --tensor-parallel 2 --zero 3 --accumulate 3"};
    for (int i = 0; i < 3; i++) {
        const double shared = loss_by(devices[i]);
        if (!(fabs(shared - alone) <= 1e-5 * alone))
            fail_msg("%s: loss %.9g, and alone %.9g", devices[i], shared, alone);
    }
    static const char *const train = "$P gpt train $R/text --layers 1 --heads 2 --width 16 --context 16 --steps 20 "
                                     "--test-every 10 --test-batches 2 --sample 10 --out $R/cut";
    char words[512];
    snprintf(words, sizeof words, "%s --devices sim:0,sim:1,sim:2,sim:3 --tensor-parallel 2 2>&1", train);
    assert_int_equal(line(words), 0);
    assert_non_null(strstr(output, " on sim:0 and 3 other ranks, 2 for a network, 6 stretches each"));
    assert_non_null(strstr(output, "  | ")); /* a sample, of the whole network */
    assert_int_equal(line("cat $R/cut/report.html"), 0);
    assert_non_null(strstr(output, "<dt>ranks</dt><dd>4</dd>"));
    assert_non_null(strstr(output, "<dt>tensor parallel</dt><dd>2</dd>"));
    assert_null(strstr(output, "<dt>ZeRO"));
    assert_null(strstr(output, "<dt>accumulate"));
    snprintf(words, sizeof words, "%s --devices sim:0,sim:1,sim:2 --tensor-parallel 2 2>&1", train);
    assert_int_equal(line(words), 1);
    assert_non_null(strstr(output, "3 ranks cannot be put together into networks of 2"));
    snprintf(words, sizeof words, "%s --device cpu --tensor-parallel 2 2>&1", train);
    assert_int_equal(line(words), 1);
    assert_non_null(strstr(output, "1 rank cannot be put together into networks of 2"));
    unsetenv("PARACORD_SIM");
}

/* As processes, of which there are no whole number of networks: with --elastic one of them is left out. */
static void launched_and_cut(void **state)
{
    (void)state;
    static const char train[] = "$P launch -n 3 %s -- $P gpt train $R/text --out $R/launched --layers 1 --heads 2 "
                                "--width 16 --context 16 --batch 7 --test-every 10 --test-batches 2 --sample 0 --steps "
                                "30 --device cpu --threads 1 --resume --tensor-parallel 2 2>&1";
    char words[512];
    const double alone = loss_by("--device cpu");
    leaks_of_children(false);
    snprintf(words, sizeof words, train, "");
    assert_int_equal(line(words), 1);
    assert_non_null(strstr(output, "3 ranks cannot be put together into networks of 2"));
    snprintf(words, sizeof words, train, "--elastic");
    const int status = line(words);
    leaks_of_children(true);
    if (strstr(output, "groups of processes on cpu go by MPI")) {
        print_message("ranks as processes go by MPI, which is not here: %s\n", output);
        skip();
    }
    assert_int_equal(status, 0);
    assert_non_null(strstr(output, "going on with 2 ranks; 1 of the 3 places is idle"));
    assert_int_equal(line("$P gpt eval $R/launched $R/text --json --device cpu"), 0);
    const char *at = strstr(output, "\"loss\": ");
    assert_non_null(at);
    if (!(fabs(strtod(at + 8, NULL) - alone) <= 1e-5 * alone))
        fail_msg("%s, and alone %.9g", at, alone);
}

/* One device with the host's memory says so, and learns the same. */
static void offload(void **state)
{
    (void)state;
    setenv("PARACORD_SIM", "1", 1);
    assert_int_equal(line("$P gpt train $R/text --out $R/host --layers 1 --heads 2 --width 16 --context 16 --steps 10 "
                          "--test-every 10 --sample 0 --device sim:0 --zero 3 --offload --accumulate 2"),
                     0);
    assert_non_null(strstr(output, " MB of pinned host memory, stage 3 of ZeRO, each batch in 2 parts"));
    assert_int_equal(line("cat $R/host/report.html"), 0);
    assert_non_null(strstr(output, "<dt>ZeRO</dt><dd>stage 3</dd></div>\n<div><dt>offload</dt><dd>yes</dd>"));
    assert_non_null(strstr(output, "<dt>accumulate</dt><dd>2</dd>"));
    assert_null(strstr(output, "<dt>ranks"));
    const double alone = loss_by("--device cpu"), host = loss_by("--device sim:0 --zero 2 --offload");
    unsetenv("PARACORD_SIM");
    if (!(fabs(host - alone) <= 1e-5 * alone))
        fail_msg("loss %.9g, and without offload %.9g", host, alone);
}

/* What has nothing to share is told so once; parts and cuts of one are what is there anyway. */
static void nothing_to_share(void **state)
{
    (void)state;
    static const struct {
        const char *options, *said;
    } jobs[] = {{"--device cpu --zero 2", "--zero 2 shares out nothing: one rank trains alone"},
                {"--devices cpu,cpu --tensor-parallel 2 --zero 3", "all 2 ranks have one (--tensor-parallel 2)"},
                {"--device cpu --zero 1 --offload", NULL},
                {"--device cpu --tensor-parallel 1 --accumulate 1 --zero 0", NULL}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char words[512];
        snprintf(words, sizeof words,
                 "$P gpt train $R/text --out $R/alone --layers 1 --heads 2 --width 16 --context 16 --steps 2 "
                 "--sample 0 %s 2>&1 >/dev/null",
                 jobs[i].options);
        assert_int_equal(line(words), 0);
        const char *end = strchr(output, '\n');
        if (jobs[i].said ? !strstr(output, jobs[i].said) || !end || end[1] : *output)
            fail_msg("%s: \"%s\"", jobs[i].options, output);
    }
}

static void wrong_words(void **state)
{
    (void)state;
    static const struct {
        const char *words, *said;
        int status;
    } wrong[] = {
        {"$P gpt train $R/text --batch 0 2>&1", "--batch 0: must be 1 to 65536, or auto", 2},
        {"$P gpt train $R/text --batch many 2>&1", "--batch many: must be", 2},
        {"$P gpt train $R/text --offload --device cpu 2>&1", "--offload: goes with --zero 1, 2 or 3", 2},
        {"$P gpt write 2>&1", "ACTION write: must be train, sample or eval", 2},
        {"$P gpt train /nowhere --device cpu 2>&1", "/nowhere", 1},
        {"$P gpt sample $R --device cpu 2>&1", "config.json", 1},
        {"$P gpt sample $R/text --device cpu 2>&1", "text is no folder, and a GPT is one", 1},
        {"mkdir $R/pets; touch $R/pets/model.h5; $P gpt eval $R/pets $R/text --device cpu 2>&1",
         "pets has no GPT but a network for pictures, of paracord train: use paracord predict, eval or show", 1},
        {"$P show $R/run 2>&1", "of a GPT, which sorts no pictures: paracord gpt sample FOLDER lets it write", 1},
        {"$P predict $R/run/checkpoint x.jpg 2>&1", "of a GPT, which sorts no pictures: paracord gpt sample", 1},
        {"$P gpt train $R/text --heads 3 --device cpu --out $R/no 2>&1", "3 heads, width 128", 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(line(wrong[i].words), wrong[i].status);
        if (!strstr(output, wrong[i].said))
            fail_msg("%s: no \"%s\" in \"%s\"", wrong[i].words, wrong[i].said, output);
    }
}

static void ctrl_c_saves_and_says_how_to_go_on(void **state)
{
    (void)state;
    static job_end e;
    const test_path text = joined(root.s, "text"), out = joined(root.s, "stopped");
    int printed = nameless_file(), said = nameless_file();
    const pid_t child = start(ARGUMENTS("gpt", "train", text.s, "--out", out.s, "--steps", "1000000", "--test-every",
                                        "5", "--test-batches", "1", SMALL),
                              (job_limits){0}, dup(printed), dup(said));
    for (int i = 0; i < 3000 && !exists(out.s, "checkpoint"); i++)
        sleep_for(0.01);
    kill(child, SIGINT);
    assert_int_equal(wait_for(child), 130);
    read_back(printed, e.out, sizeof e.out);
    assert_non_null(strstr(e.out, "go on with: paracord gpt train --resume "));
    assert_no_temporaries(out.s);
    assert_int_equal(line("$P gpt sample $R/stopped --tokens 3 --device cpu"), 0);
}

/* An unfinished training is not overwritten by the command that trains networks for pictures, nor the other way round. */
static void folders_of_the_other_command(void **state)
{
    (void)state;
    static const char made[] = "$P pictures $R/p --train 6 --test 3 --size 32 && $P train $R/p --epochs 1 --size 24 "
                               "--arch resnet18 --out $R/net --device cpu 2>&1 && cp -r $R/stopped $R/kept && cp -r "
                               "$R/net $R/seen";
    static const char *const lines[] = {
        "$P train $R/p --epochs 1 --size 24 --arch resnet18 --out $R/stopped --device cpu 2>&1",
        "$P gpt train $R/text --layers 1 --heads 2 --width 16 --context 16 --steps 2 --sample 0 --out $R/net "
        "--device cpu 2>&1"};
    assert_int_equal(line(made), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(line(lines[i]), 1);
        assert_non_null(strstr(output, "/checkpoint cannot be read as a "));
    }
    assert_int_equal(line("diff -r $R/stopped $R/kept 2>&1 && diff -r $R/net $R/seen 2>&1"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(train_sample_eval),
                                       cmocka_unit_test(ranks_with_unequal_parts),
                                       cmocka_unit_test(networks_cut_up),
                                       cmocka_unit_test(launched_and_cut),
                                       cmocka_unit_test(offload),
                                       cmocka_unit_test(nothing_to_share),
                                       cmocka_unit_test(wrong_words),
                                       cmocka_unit_test(ctrl_c_saves_and_says_how_to_go_on),
                                       cmocka_unit_test(folders_of_the_other_command)};
    return cmocka_run_group_tests(tests, prepare, tidy);
}

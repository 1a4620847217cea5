/* paracord cloud, as it is typed (cost: cloud_cost.c; update: cloud_update.c): what it prints, what it writes, and what
 * it says to wrong input. */
#include "cloud.h"

#include <limits.h>
#include <paracord-tools/cloud.h>

#if PC_HAVE_CJSON
#include <cjson/cJSON.h>
#endif

/* A telephone's terminal, half a window. */
static void forty_columns_are_enough(void **state)
{
    (void)state;
    setenv("COLUMNS", "40", 1);
    run(&e, "cloud", "list", "g6", "p5");
    assert_went_well(&e);
    assert_fits(40);
    run(&e, "cloud", "pick", "--gpus", "8");
    assert_went_well(&e);
    assert_fits(40);
    assert_prints("g4dn.metal");
    setenv("COLUMNS", "80", 1);
}

/* Every price has its region, date and source below it; unknown is a word. */
static void list_shows_what_there_is(void **state)
{
    (void)state;
    run(&e, "cloud", "list");
    assert_went_well(&e);
    static const char *const names[] = {"p3.2xlarge",    "p4d.24xlarge", "p5.48xlarge", "p6-b200.48xlarge",
                                        "g4dn.metal",    "g5.48xlarge",  "g6e.xlarge",  "inf1.xlarge",
                                        "trn2.48xlarge", "ml.g6.xlarge"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_prints(names[i]);
    assert_prints("us-east-1, of 20");
    assert_prints("; from ");
    assert_no_wide_line();
    assert_null(strstr(e.out, " 0.000"));
    assert_null(strstr(e.out, "nan"));
    run(&e, "cloud", "list", "p5e");
    assert_went_well(&e);
    assert_prints("unknown  ml.p5e.48xlarge");
    run(&e, "cloud", "list", "A100", "--budget", "25");
    assert_went_well(&e);
    assert_prints("p4d.24xlarge");
    assert_null(strstr(e.out, "p4de.24xlarge"));
}

/* A program sees the empty list and, by the status, that it is one. */
static void an_empty_list_is_a_failure(void **state)
{
    (void)state;
    run(&e, "cloud", "list", "--memory", "9999");
    assert_refused(&e, 1, "no machine of the catalogue has all of that");
    run(&e, "cloud", "list", "--memory", "9999", "--json");
    assert_int_equal(e.status, 1);
    assert_prints("\"instances\": []}");
    assert_non_null(strstr(e.err, "no machine of the catalogue has all of that"));
}

static void pick_says_why(void **state)
{
    (void)state;
    run(&e, "cloud", "pick", "--memory", "40", "--gpus", "4", "--for", "train", "--budget", "20");
    assert_went_well(&e);
    assert_int_equal(strncmp(e.out, "g6e.12xlarge  $", 15), 0);
    assert_prints("4 x L40S with 48 GB each, joined by PCIe");
    assert_prints("ml.g6e.12xlarge");
    assert_prints("paracord cloud run g6e.12xlarge");
    run(&e, "cloud", "pick", "--for", "graphics");
    assert_went_well(&e);
    assert_int_equal(strncmp(e.out, "g4dn.xlarge  $", 14), 0);
    assert_prints("(--vendor amd takes it)");
    assert_prints("(--arch arm64");
    assert_prints("(--fractions takes it)");
    setenv("COLUMNS", "96", 1);
    static const char *const left_out[][5] = {
        {"--vendor", "amd", NULL, NULL,
         "It is NVIDIA, not AMD; it is a part of a GPU (--vendor nvidia --fractions take"},
        {"--arch", "arm64", NULL, NULL, "Its CPU is x86-64, not Arm; it is a part of a GPU (--arch x86_64 --fractions"},
        {"--arch", "arm64", "--gpus", "2",
         "Its CPU is x86-64, not Arm; it is on its way out (--arch x86_64 --old take"},
        {"--vendor", "intel", "--old", NULL, "It is NVIDIA, not Intel (--vendor nvidia takes it)"},
        {"--vendor", "any", NULL, NULL, "A fraction of a GPU: 3 to 12 GB, and needs NVIDIA's GRID driver (--fractions"},
    };
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        run(&e, "cloud", "pick", left_out[i][0], left_out[i][1], left_out[i][2], left_out[i][3]);
        assert_went_well(&e);
        for (char *at = e.out; (at = strstr(at, "\n                               ")); at++) /* a reason in one line */
            memmove(at + 1, at + 32, strlen(at + 32) + 1), *at = ' ';
        assert_prints(left_out[i][4]);
    }
    setenv("COLUMNS", "80", 1);
    run(&e, "cloud", "pick", "--gpus", "4", "--budget", "1");
    assert_refused(&e, 1, "4 GPUs", "$1 an hour", "the cheapest that has the rest is g4dn.12xlarge at $");
    run(&e, "cloud", "pick", "--memory", "1000");
    assert_refused(&e, 1, "1 GPU of 1000 GB", "nearest is p6-b300.48xlarge: 8 x B300 with 270 GB each");
    static const char *const nearest[][4] = {
        {"--gpus", "100", "nearest is g4dn.metal: 8 x T4", "100 GPUs"},
        {"--vcpus", "500", "nearest is g6.48xlarge", "192 vCPUs"},
        {"--vendor", "intel", "nearest is dl1.24xlarge", "(--old takes it)"},
        {"--budget", "0.1", "the cheapest that has the rest is g4dn.xlarge", "$0.1 an hour"},
    };
    for (size_t i = 0; i < sizeof nearest / sizeof *nearest; i++) {
        run(&e, "cloud", "pick", nearest[i][0], nearest[i][1]);
        assert_refused(&e, 1, nearest[i][2], nearest[i][3]);
    }
    run(&e, "cloud", "pick", "--vendor", "amd", "--for", "train");
    assert_refused(&e, 1, "from amd, for train", "nearest is g4dn.xlarge", "(--vendor nvidia takes it)");
    run(&e, "cloud", "pick", "--arch", "arm64", "--for", "train");
    assert_refused(&e, 1, "on arm64", "nearest is p6e-gb200.36xlarge", "its price unknown");
    run(&e, "cloud", "pick", "--arch", "arm64", "--memory", "100");
    assert_refused(&e, 1, "nothing that has a known price has 1 GPU of 100 GB", "rented by the block of days only",
                   "(--by fastest takes it; paracord cloud run p6e-gb200.36xlarge says how to buy one)");
    run(&e, "cloud", "pick", "--arch", "arm64", "--memory", "100", "--by", "fastest");
    assert_went_well(&e);
    assert_int_equal(strncmp(e.out, "p6e-gb200.36xlarge  price unknown", 33), 0);
    run(&e, "cloud", "pick", "--gpus", "9", "--memory", "300");
    assert_refused(&e, 1, "9 GPUs of 300 GB", "nearest is p6-b300.48xlarge");
}

/* A rank at the end that is no verdict on the machine. */
static void unknown_speeds_are_named(void **state)
{
    (void)state;
    static const char *const orders[] = {"value", "fastest"};
    for (int i = 0; i < 2; i++) {
        run(&e, "cloud", "pick", "--for", "train", "--by", orders[i]);
        assert_went_well(&e);
        assert_prints("  Last  g7, g7e: how fast the GPU is is not known\n");
        run(&e, "cloud", "pick", "--for", "infer", "--by", orders[i]);
        assert_null(strstr(e.out, "Last "));
    }
    run(&e, "cloud", "pick", "--for", "train");
    assert_null(strstr(e.out, "Last "));
}

static void wrong_words_are_named(void **state)
{
    (void)state;
    static const char *const wrong[][5] = {
        {"cloud", "rent", NULL, NULL, "must be list, pick, cost, update or run"},
        {"cloud", NULL, NULL, NULL, "ACTION is missing: list, pick, cost, update, run"},
        {"cloud", "list", "g9", NULL, "there are p2, p3, p3dn"},
        {"cloud", "run", "g6.huge", NULL, "there are g6.xlarge, g6.2xlarge"},
        {"cloud", "list", "--region", "mars-1", "only of us-east-1"},
        {"cloud", "pick", "--region", "mars-1", "only of us-east-1"},
        {"cloud", "pik", NULL, NULL, "must be list, pick, cost, update or run; did you mean pick?"},
        {"cloud", "pick", "--region", "us-esat-1",
         "only of us-east-1; paracord cloud update --region us-esat-1 gets "
         "them; did you mean us-east-1?"},
        {"cloud", "pick", "--region", "eu-central1",
         "\"eu-central1\"; prices are known only of us-east-1; did you mean "
         "eu-central-1?"},
        {"cloud", "update", "--region", "eu-central1", "such as us-east-1 or eu-central-1; did you mean eu-central-1?"},
        {"cloud", "run", "g6.xlagre", NULL, "did you mean g6.xlarge?"},
        {"cloud", "run", "ml.g6.xlagre", NULL, "did you mean g6.xlarge?"},
        {"cloud", "list", "g6.xlagre", NULL, "did you mean g6.xlarge?"},
        {"cloud", "list", "A10O", NULL, "did you mean A10G?"},
        {"cloud", "pick", "--gpus", "0", "1 to 1000"},
        {"cloud", "pick", "--gpus", "many", "whole number"},
        {"cloud", "pick", "--memory", "-4", "more than 0"},
        {"cloud", "pick", "--memory", "nan", "a number"},
        {"cloud", "pick", "--budget", "1e99", "at most 100000"},
        {"cloud", "pick", "--for", "fun", "train, infer or graphics"},
        {"cloud", "pick", "--vendor", "acme", "nvidia, amd, aws, intel or any"},
        {"cloud", "update", "--region", "Mars", "such as us-east-1"},
        {"cloud", "update", "/none.json", NULL, "No such file"},
        {"cloud", "update", "/", NULL, "Is a directory"},
        {"cloud", "update", "--timeout", "0", "more than 0"},
        {"cloud", "list", "--catalogue", "/none.txt", "/none.txt"},
    };
    run(&e, "cloud", "pick", "--region", "us-west-1"); /* another region, and no slip */
    assert_refused(&e, 1, "cloud update --region us-west-1 gets them");
    assert_null(strstr(e.err, "did you mean"));
    static const char *const nowhere[] = {"mars-1", "eu-central-11"}; /* no dash is missing in front of the number */
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        run(&e, "cloud", "list", "--region", nowhere[i]);
        assert_refused(&e, 1, "prices are known only of us-east-1");
        assert_null(strstr(e.err, "did you mean"));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        run(&e, wrong[i][0], wrong[i][1], wrong[i][2], wrong[i][3]);
        if (e.status != 1)
            assert_refused(&e, 2, wrong[i][4]);
        else
            assert_refused(&e, 1, wrong[i][4]);
    }
}

/* The script is one that a shell reads, with names quoted; nothing is started. */
static void run_prints_and_runs_nothing(void **state)
{
    (void)state;
    test_path script = joined(root.s, "start.sh");
    run(&e, "cloud", "run", "ml.g6.xlarge", "--data", "my fa'ces");
    assert_went_well(&e);
    assert_prints("#!/bin/sh\n");
    assert_prints("--instance-type g6.xlarge");
    assert_prints("$0.80");
    assert_prints("terminate-instances");
    assert_prints("rsync -az 'my fa'\\''ces/'");
    put_bytes(root.s, "start.sh", e.out, strlen(e.out));
    char line[PATH_MAX + 16];
    snprintf(line, sizeof line, "sh -n %s", script.s);
    assert_int_equal(system(line), 0);
    run(&e, "cloud", "run", "p5e.48xlarge", "--form", "sky", "--spot");
    assert_refused(&e, 1, "p5e.48xlarge is for hire by the block of days only");
    run(&e, "cloud", "run", "p5e.48xlarge", "--form", "sky", "--data", "faces", "--command", "one\ntwo");
    assert_prints("No price by the hour is known");
    assert_prints("specific_reservations");
    assert_prints("  autostop:\n    idle_minutes: 10\n    down: true\n");
    assert_prints("  infra: \"aws/us-east-1\"\n  instance_type: \"p5e.48xlarge\"\n");
    assert_prints("  use_spot: false\n");
    assert_prints("  ~/work: \"faces\"\n");
    assert_prints("run: |\n  cd\n  one\n  two\n");
    static const char *const forms[] = {"sky", "aws"};
    for (int i = 0; i < 2; i++) {
        run(&e, "cloud", "run", "g6.xlarge", "--form", forms[i], "--spot");
        assert_prints(i ? "MarketType=spot" : "  use_spot: true\n");
        assert_prints("# Spot: it may end at any time, and its price, which moves by the hour, is not known here. On "
                      "demand:\n# $0.805 an hour, Linux, on demand, us-east-1");
    }
    run(&e, "cloud", "run", "g6.xlarge");
    assert_null(strstr(e.out, "Spot"));
    run(&e, "cloud", "run", "trn2.48xlarge"); /* the block that was bought is the script's argument */
    assert_prints("reservation=${1:?");
    assert_prints("MarketType=capacity-block");
    assert_prints("\"CapacityReservationTarget={CapacityReservationId=$reservation}\"");
    static const char *const odd[][2] = {{"-e sh", "rsync -az './-e sh/' \"$host:work/\""},
                                         {"far:away", "rsync -az ./far:away/ \"$host:work/\""},
                                         {"a/b:c", "rsync -az a/b:c/ \"$host:work/\""},
                                         {"$(reboot)`id`", "rsync -az '$(reboot)`id`/' \"$host:work/\""}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        run(&e, "cloud", "run", "g6.xlarge", "--data", odd[i][0]);
        assert_went_well(&e);
        assert_prints(odd[i][1]);
    }
    static const char *const images[][2] = {{"inf2.xlarge", "ssm:/aws/service/neuron/"},
                                            {"g5g.xlarge", "ssm:/aws/service/deeplearning/ami/arm64/"},
                                            {"g5.xlarge", "ssm:/aws/service/deeplearning/ami/x86_64/"},
                                            {"g6f.large", "The image has no driver for it"},
                                            {"p3.2xlarge", "The image has no driver for it"},
                                            {"inf1.xlarge", "The image has no driver for it"},
                                            {"g4ad.xlarge", "The image has no driver for it"}};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        run(&e, "cloud", "run", images[i][0]);
        assert_prints(images[i][1]);
    }
}

/* The printed script with aws, ssh and rsync that only write down how they are called: whether the work goes well,
 * fails or is stopped, the last thing it does is end the machine. */
static void the_script_ends_the_machine(void **state)
{
    (void)state;
    static const char *const works[] = {"true", "exit 7", "kill -INT $PPID; sleep 5"};
    test_path bin = joined(root.s, "played");
    char script[3 * PATH_MAX], line[3 * PATH_MAX];
    run(&e, "cloud", "run", "g6.xlarge", "--data", "faces", "--command", "the work");
    assert_went_well(&e);
    put_bytes(root.s, "start.sh", e.out, strlen(e.out));
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        unlink(joined(root.s, "calls").s);
        snprintf(
            script, sizeof script,
            "#!/bin/sh\necho \"aws $*\" >>%s/calls\ncase \"$*\" in *run-instances*) echo i-123 ;; *describe*) echo "
            "1.2.3.4 ;; esac\n",
            root.s);
        put_program(bin.s, "aws", script);
        snprintf(script, sizeof script, "#!/bin/sh\necho \"rsync $*\" >>%s/calls\n", root.s);
        put_program(bin.s, "rsync", script);
        snprintf(script, sizeof script,
                 "#!/bin/sh\necho \"ssh $*\" >>%s/calls\ncase \"$*\" in *'the work'*) %s ;; esac\n", root.s, works[i]);
        put_program(bin.s, "ssh", script);
        snprintf(line, sizeof line, "cd %s && PATH=%s:$PATH sh start.sh", root.s, bin.s);
        int status = system(line);
        assert_true(i == 0 ? status == 0 : status != 0);
        size_t n;
        char *calls = content(root.s, "calls", &n);
        const char *last = calls;
        for (const char *at = calls; (at = strchr(at, '\n')) && at[1]; at++)
            last = at + 1;
        assert_non_null(strstr(calls, "ssh ubuntu@1.2.3.4 the work\n"));
        assert_non_null(strstr(calls, "rsync -az faces/ ubuntu@1.2.3.4:work/\n"));
        assert_true(i == 0 ? strstr(calls, "rsync -az ubuntu@1.2.3.4:run/ run/\n") != NULL
                           : strstr(calls, ":run/ run/") == NULL);
        if (strcmp(last, "aws ec2 terminate-instances --region us-east-1 --instance-ids i-123\n") != 0)
            fail_msg("%s: the machine is left running:\n%s", works[i], calls);
        free(calls);
    }
}

/* What is told to run next means the catalogue and the region of what was just printed. */
static void the_next_command_has_the_same_prices(void **state)
{
    (void)state;
    size_t n;
    test_path file = joined(root.s, "my list");
    pc_cloud *cloud = pc_cloud_open_builtin();
    assert_non_null(cloud);
    assert_int_equal(pc_cloud_save(cloud, file.s), PC_OK);
    pc_cloud_free(cloud);
    char *catalogue = content(root.s, "my list", &n);
    for (char *at = catalogue; (at = strstr(at, "| us-east-1 |")); at += 13)
        memcpy(at, "| eu-west-3 |", 13);
    put_bytes(root.s, "my list", catalogue, n);
    free(catalogue);
    char words[PATH_MAX + 128];
    setenv("COLUMNS", "1000", 1);
    run(&e, "cloud", "pick", "--catalogue", file.s, "--region", "eu-west-3");
    assert_went_well(&e);
    snprintf(words, sizeof words, "paracord cloud run g4dn.xlarge --region eu-west-3 --catalogue '%s'\n", file.s);
    assert_prints(words);
    run(&e, "cloud", "list", "g6", "--catalogue", file.s, "--region", "eu-west-3");
    assert_prints("update --region eu-west-3");
    assert_prints("--catalogue");
    setenv("COLUMNS", "80", 1);
}

#if PC_HAVE_CJSON

static cJSON *parsed(void)
{
    cJSON *json = cJSON_Parse(e.out);
    if (e.status != 0 || !json)
        fail_msg("no JSON (status %d): %.200s%s", e.status, e.out, e.err);
    return json;
}

static double value(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const char *word(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static void json_is_json(void **state)
{
    (void)state;
    run(&e, "cloud", "list", "p5e", "g6f", "--json");
    cJSON *json = parsed(), *item;
    assert_string_equal(word(json, "catalogue"), "built in");
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "instances"))
    {
        const cJSON *usd = cJSON_GetObjectItemCaseSensitive(item, "usd_per_hour");
        bool unknown = !strcmp(word(item, "instance"), "p5e.48xlarge");
        assert_true(unknown ? cJSON_IsNull(usd) : usd->valuedouble > 0);
        assert_string_equal(word(item, "region"), "us-east-1");
        assert_int_equal(strlen(word(item, "price_date")), 10);
        assert_non_null(word(item, "price_source"));
        assert_true(value(item, "gpu_share") <= 1 && value(item, "memory_gb") > 0);
    }
    cJSON_Delete(json);
    run(&e, "cloud", "pick", "--for", "infer", "--by", "value", "--budget", "5", "--memory", "20", "--json");
    json = parsed();
    assert_string_equal(word(cJSON_GetObjectItemCaseSensitive(json, "choice"), "instance"), "g5.xlarge");
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "others")) > 5);
    cJSON_Delete(json);
    run(&e, "cloud", "cost", "mlp", data.s, "--device", "cpu", "--json", "--budget", "2");
    json = parsed();
    double before = 0;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "cheapest_first"))
    {
        assert_true(value(item, "usd") >= before && value(item, "hours") > 0);
        before = value(item, "usd");
    }
    assert_true(before > 0);
    assert_true(value(cJSON_GetObjectItemCaseSensitive(json, "measured"), "decode_seconds") > 0);
    cJSON_Delete(json);
    run(&e, "cloud", "run", "g6.xlarge", "--json");
    json = parsed();
    assert_string_equal(word(json, "instance"), "g6.xlarge");
    cJSON_Delete(json);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_shows_what_there_is),
        cmocka_unit_test(forty_columns_are_enough),
        cmocka_unit_test(an_empty_list_is_a_failure),
        cmocka_unit_test(pick_says_why),
        cmocka_unit_test(unknown_speeds_are_named),
        cmocka_unit_test(wrong_words_are_named),
        cmocka_unit_test(run_prints_and_runs_nothing),
        cmocka_unit_test(the_script_ends_the_machine),
        cmocka_unit_test(the_next_command_has_the_same_prices),
#if PC_HAVE_CJSON
        cmocka_unit_test(json_is_json),
#endif
    };
    return cmocka_run_group_tests_name("cli.cloud", tests, prepare, tidy);
}

/* paracord cloud update, as it is typed: prices from files and from the user's aws, of whom there may be two at once. */
#include "cloud.h"

#include <limits.h>
#include <paracord-tools/cloud.h>
#include <sys/file.h>

#if PC_HAVE_CJSON

#define LIST_JSON(type, region, usd)                                                                                   \
    "{\"PriceList\": [{\"product\": {\"attributes\": {\"instanceType\": \"" type "\", \"regionCode\": \"" region       \
    "\", \"operatingSystem\": \"Linux\", \"tenancy\": \"Shared\"}}, \"publicationDate\": \"2031-02-03T00:00:00Z\", "   \
    "\"terms\": {\"OnDemand\": {\"a\": {\"priceDimensions\": {\"b\": {\"unit\": \"Hrs\", \"pricePerUnit\": {\"USD\": " \
    "\"" usd "\"}}}}}}}]}"
static const char list_json[] = LIST_JSON("g6.xlarge", "us-east-1", "0.7770000000");
static const char far_json[] = LIST_JSON("g5.xlarge", "eu-central-1", "1.2580000000");

/* A command called aws, first on PATH, that does what the script says. */
static void put_aws(const char *script)
{
    test_path bin = joined(root.s, "bin");
    put_program(bin.s, "aws", script);
    setenv("PATH", bin.s, 1);
}

static void update_takes_prices(void **state)
{
    (void)state;
    test_path file = joined(root.s, "list.json"), own = joined(root.s, "paracord/cloud.txt");
    put_bytes(root.s, "list.json", list_json, sizeof list_json - 1);
    run(&e, "cloud", "update", file.s, "--dry-run");
    assert_went_well(&e);
    assert_prints("us-east-1, 2031-02-03: prices changed: 1, new: 0, as they were: 0");
    assert_prints("nothing was written");
    assert_false(exists(root.s, "paracord/cloud.txt"));
    run(&e, "cloud", "update", file.s);
    assert_went_well(&e);
    assert_prints("wrote ");
    run(&e, "cloud", "list", "g6.xlarge");
    assert_prints("0.777");
    assert_prints("of 2031-02-03; from AWS");
    assert_prints(own.s);
    run(&e, "cloud", "list", "g6"); /* two lists: each price says which it is from */
    assert_prints("0.777a ml.g6.xlarge");
    assert_prints("0.978b ml.g6.2xlarge");
    assert_prints("a: US dollars");
    assert_prints("b: US dollars");

    put_bytes(root.s, "far.json", far_json, sizeof far_json - 1); /* a region with a single known price */
    run(&e, "cloud", "update", joined(root.s, "far.json").s);
    assert_refused(&e, 1, "in us-east-1 in its 1 products; it has prices of eu-central-1 (--region)");
    run(&e, "cloud", "update", joined(root.s, "far.json").s, "--region", "eu-central-1");
    assert_went_well(&e);
    run(&e, "cloud", "pick", "--region", "eu-central-1", "--for", "infer");
    assert_int_equal(strncmp(e.out, "g5.xlarge  $1.258", 17), 0);
    assert_prints("  Start it: paracord cloud run g5.xlarge --region eu-central-1\n");
    assert_prints("  Prices unknown here of sizes of p6-b200,");
    assert_no_wide_line();
    run(&e, "cloud", "pick", "--region", "eu-central-1", "--memory", "40", "--for", "train");
    assert_refused(&e, 1, "nothing that has a known price has 1 GPU of 40 GB", "nearest is g6e.xlarge: 1 x L40S",
                   "its price unknown (--by fastest takes it; paracord cloud update --region eu-central-1 may know");

    size_t n, m; /* what fails leaves the copy as it was */
    char *before = content("", own.s, &n);
    put_bytes(root.s, "list.json", list_json, 300);
    run(&e, "cloud", "update", file.s);
    assert_refused(&e, 1, "list.json", "no JSON, or cut off");
    put_bytes(root.s, "list.json", list_json, sizeof list_json - 1);
    run_limited(&e, (job_limits){.file_bytes = 4096}, ARGUMENTS("cloud", "update", file.s)); /* a full disk */
    assert_refused(&e, 1, own.s);
    char *after = content("", own.s, &m);
    assert_true(n == m && !memcmp(before, after, n));
    free(before);
    free(after);
    assert_no_temporaries(joined(root.s, "paracord").s);

    put_bytes(root.s, "paracord/cloud.txt", "catalogue | 1 | 20", 18);
    run(&e, "cloud", "list");
    assert_refused(&e, 1, own.s, "line 1", "paracord cloud update");
    run(&e, "cloud", "update", file.s); /* which mends it */
    assert_went_well(&e);
    run(&e, "cloud", "list", "g6.xlarge");
    assert_prints("0.777");
    assert_int_equal(unlink(own.s), 0);
}

#define PRODUCT_JSON                                                                                                   \
    "{\"product\": {\"attributes\": {\"instanceType\": \"%s\", \"regionCode\": \"us-east-1\", \"operatingSystem\": "   \
    "\"Linux\", \"tenancy\": \"Shared\"}}, \"publicationDate\": \"2031-%02d-%02dT00:00:00Z\", \"terms\": "             \
    "{\"OnDemand\": "                                                                                                  \
    "{\"a\": {\"priceDimensions\": {\"b\": {\"unit\": \"Hrs\", \"pricePerUnit\": {\"USD\": \"7.5\"}}}}}}}"

/* A list has one line below, however many days its prices are of. */
static void prices_of_many_days_are_one_list(void **state)
{
    (void)state;
    test_path file = joined(root.s, "list.json");
    pc_cloud *cloud = pc_cloud_open_builtin();
    assert_not_null_ok(cloud);
    char *list = NULL;
    size_t size;
    FILE *out = open_memstream(&list, &size);
    assert_non_null(out);
    fputs("{\"PriceList\": [", out);
    for (int i = 0; i < 40; i++) /* of the first instances, a day each */
        fprintf(out, "%s" PRODUCT_JSON, i ? ", " : "", pc_cloud_instance_at(cloud, i)->name, 1 + i / 28, 1 + i % 28);
    fputs("]}", out);
    fclose(out);
    pc_cloud_free(cloud);
    put_bytes(root.s, "list.json", list, size);
    free(list);
    run(&e, "cloud", "update", file.s);
    assert_went_well(&e);
    run(&e, "cloud", "list");
    assert_went_well(&e);
    assert_prints("7.500a");
    assert_prints("a: US dollars an hour, Linux, on demand, us-east-1, of 2031-01-01 to\n        2031-02-12; from AWS");
    assert_prints("b: US dollars an hour");
    assert_null(strstr(e.out, "c: US dollars"));
    assert_null(strstr(e.out, "7.500 "));
    unlink(joined(root.s, "paracord/cloud.txt").s);
}

/* It is opened once, and serves for the whole of an update that writes nothing. */
static void a_catalogue_may_come_from_a_pipe(void **state)
{
    (void)state;
    test_path file = joined(root.s, "list.json"), own = joined(root.s, "paracord/cloud.txt");
    size_t n;
    put_bytes(root.s, "list.json", list_json, sizeof list_json - 1);
    run(&e, "cloud", "update", file.s);
    assert_went_well(&e);
    char *catalogue = content("", own.s, &n);
    unlink(own.s);
    int ends[2], before = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(write(ends[1], catalogue, n) == (ssize_t)n);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    run(&e, "cloud", "update", file.s, "--catalogue", "/dev/stdin", "--dry-run");
    dup2(before, STDIN_FILENO);
    close(before);
    close(ends[0]);
    free(catalogue);
    assert_went_well(&e);
    assert_prints("as they were: 1");
    assert_prints("nothing was written");
}

static void what_is_no_list_makes_no_folder(void **state)
{
    (void)state;
    test_path file = joined(root.s, "list.json");
    rmdir(joined(root.s, "paracord").s);
    put_bytes(root.s, "list.json", list_json, 300);
    run(&e, "cloud", "update", file.s);
    assert_refused(&e, 1, "list.json", "no JSON, or cut off");
    assert_false(exists(root.s, "paracord"));
}

static void update_runs_the_users_aws(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH"));
    test_path file = joined(root.s, "list.json");
    char script[3 * PATH_MAX];
    put_bytes(root.s, "list.json", list_json, sizeof list_json - 1);
    snprintf(script, sizeof script, "#!/bin/sh\nprintf '%%s\\n' \"$@\" >%s/asked\n/bin/cat %s\n", root.s, file.s);
    put_aws(script);
    run(&e, "cloud", "update", "--json");
    assert_went_well(&e);
    assert_prints("\"changed\": 1");
    size_t n;
    char *asked = content(root.s, "asked", &n);
    assert_non_null(strstr(asked, "pricing\nget-products\n--region\nus-east-1\n--service-code\nAmazonEC2\n"));
    assert_non_null(strstr(asked, "Type=TERM_MATCH,Field=regionCode,Value=us-east-1\n"));
    free(asked);
    unlink(joined(root.s, "paracord/cloud.txt").s);
    /* a megabyte of complaints beside the list does not block it */
    snprintf(script, sizeof script,
             "#!/bin/sh\ni=0\nwhile [ $i -lt 4000 ]; do i=$((i+1)); echo %0250d >&2; done\n/bin/cat %s\n", 7, file.s);
    put_aws(script);
    run(&e, "cloud", "update", "--dry-run");
    assert_went_well(&e);
    put_aws("#!/bin/sh\necho 'one line' >&2\necho 'Unable to locate credentials' >&2\nexit 253\n");
    run(&e, "cloud", "update");
    assert_refused(&e, 1, "aws failed: Unable to locate credentials");
    put_aws("#!/bin/sh\nkill -9 $$\n");
    run(&e, "cloud", "update");
    assert_refused(&e, 1, "aws failed");
    unlink(joined(root.s, "bin/aws").s);
    run(&e, "cloud", "update");
    assert_refused(&e, 1, "no aws command on PATH", "--print");
    setenv("PATH", path, 1);
    free(path);
    run(&e, "cloud", "update", "--print", "--region", "eu-central-1");
    assert_went_well(&e);
    assert_int_equal(strncmp(e.out, "aws pricing get-products ", 25), 0);
    assert_prints("Value=eu-central-1");
    assert_false(exists(root.s, "paracord/cloud.txt"));
}

/* The number of the process that wrote the file; 0 where it has not yet. */
static pid_t process_in(const char *file)
{
    size_t n;
    char *text = exists(root.s, file) ? content(root.s, file, &n) : strdup("");
    pid_t process = strchr(text, '\n') ? (pid_t)atoi(text) : 0;
    free(text);
    return process;
}

static void assert_ended(pid_t process)
{
    if (process && kill(process, 0) == 0)
        fail_msg("aws is still there, as process %d", (int)process);
}

/* An aws that waits for ever is ended by the clock, also one that is deaf to being asked; and by a signal. */
static void a_hanging_aws_is_ended(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH")), script[2 * PATH_MAX];
    static const char *const deaf[] = {"", "trap '' TERM\n"};
    for (int i = 0; i < 2; i++) {
        unlink(joined(root.s, "process").s);
        snprintf(script, sizeof script,
                 "#!/bin/sh\n%secho 'still asking' >&2\necho $$ >%s/process\nwhile :; do /bin/sleep 0.1; done\n",
                 deaf[i], root.s);
        put_aws(script);
        run(&e, "cloud", "update", "--timeout", "0.5");
        assert_refused(&e, 1, "aws took longer than 0.5 s", "--timeout", process_in("process") ? "still asking" : "");
        assert_ended(process_in("process"));
    }
    unlink(joined(root.s, "process").s);
    pid_t child = start_quietly(ARGUMENTS("cloud", "update"));
    while (!process_in("process"))
        usleep(10000);
    kill(child, SIGTERM);
    assert_int_equal(wait_for(child), 128 + SIGTERM);
    assert_ended(process_in("process"));
    assert_false(exists(root.s, "paracord/cloud.txt"));
    setenv("PATH", path, 1);
    free(path);
}

/* While one update waits for aws, another is done: what that has written stays. */
static void two_updates_at_once_are_both_kept(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH")), script[4 * PATH_MAX];
    test_path file = joined(root.s, "list.json"), far = joined(root.s, "far.json");
    put_bytes(root.s, "list.json", list_json, sizeof list_json - 1);
    put_bytes(root.s, "far.json", far_json, sizeof far_json - 1);
    unlink(joined(root.s, "process").s);
    snprintf(script, sizeof script,
             "#!/bin/sh\necho $$ >%s/process\nwhile [ ! -e %s/go ]; do /bin/sleep 0.02; done\n/bin/cat %s\n", root.s,
             root.s, file.s);
    put_aws(script);
    pid_t slow = start_quietly(ARGUMENTS("cloud", "update"));
    while (!process_in("process"))
        usleep(10000);
    run(&e, "cloud", "update", far.s, "--region", "eu-central-1");
    assert_went_well(&e);
    put_bytes(root.s, "go", "", 0);
    assert_int_equal(wait_for(slow), 0);
    setenv("PATH", path, 1);
    free(path);
    run(&e, "cloud", "list", "g6.xlarge");
    assert_prints("0.777");
    run(&e, "cloud", "list", "g5.xlarge", "--region", "eu-central-1");
    assert_went_well(&e);
    assert_prints("1.258");

    /* whoever writes has the folder to itself */
    int folder = open(joined(root.s, "paracord").s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(folder, LOCK_EX), 0);
    pid_t waits = start_quietly(ARGUMENTS("cloud", "update", file.s));
    usleep(300000);
    assert_int_equal(waitpid(waits, NULL, WNOHANG), 0);
    close(folder);
    assert_int_equal(wait_for(waits), 0);
    unlink(joined(root.s, "paracord/cloud.txt").s);
}

#else

static void needs_cjson(void **state)
{
    (void)state;
    put_bytes(root.s, "list.json", "{}", 2);
    run(&e, "cloud", "update", joined(root.s, "list.json").s);
    assert_refused(&e, 1, "libcjson-dev");
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if PC_HAVE_CJSON
        cmocka_unit_test(update_takes_prices),
        cmocka_unit_test(prices_of_many_days_are_one_list),
        cmocka_unit_test(a_catalogue_may_come_from_a_pipe),
        cmocka_unit_test(what_is_no_list_makes_no_folder),
        cmocka_unit_test(update_runs_the_users_aws),
        cmocka_unit_test(a_hanging_aws_is_ended),
        cmocka_unit_test(two_updates_at_once_are_both_kept),
#else
        cmocka_unit_test(needs_cjson),
#endif
    };
    return cmocka_run_group_tests_name("cli.cloud_update", tests, prepare, tidy);
}

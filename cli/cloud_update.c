/* cloud_update.c: paracord cloud update [FILE]: prices from a file, from standard input, or from the user's own aws. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cloud.h"
#include "clock.h"
#include "cloud_aws.h"
#include "text.h"

typedef struct update_settings {
    cli_cloud_settings cloud;
    double limit;
    bool show, dry;
} update_settings;

/* The price list API has no server in most regions; us-east-1 answers for all. */
#define FILTER(field, value) "Type=TERM_MATCH,Field=" field ",Value=" value
#define COMMAND_WORDS 20

static void make_command(const char *region, char filter[128], const char *words[COMMAND_WORDS])
{
    const char *const all[] = {"aws",
                               "pricing",
                               "get-products",
                               "--region",
                               "us-east-1",
                               "--service-code",
                               "AmazonEC2",
                               "--output",
                               "json",
                               "--filters",
                               filter,
                               FILTER("operatingSystem", "Linux"),
                               FILTER("tenancy", "Shared"),
                               FILTER("preInstalledSw", "NA"),
                               FILTER("capacitystatus", "Used"),
                               FILTER("marketoption", "OnDemand"),
                               NULL};
    snprintf(filter, 128, FILTER("regionCode", "%s"), region);
    memcpy(words, all, sizeof all);
}

static void print_command(const char *const *words)
{
    for (int i = 0; words[i]; i++) {
        fputs(i ? " " : "", stdout);
        cli_print_shell(stdout, words[i]);
    }
    putchar('\n');
}

/* A FIFO is not waited for: opened without, and refused, unless it is what a shell put under /dev/fd. */
static int open_list(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || !strncmp(path, "/dev/fd/", 8)))) {
        if (fd >= 0)
            fcntl(fd, F_SETFL, 0);
        return fd;
    }
    close(fd);
    errno = S_ISDIR(info.st_mode) ? EISDIR : ESPIPE;
    return -1;
}

static bool read_file(const cli_call *call, const char *path, cli_bytes *output)
{
    bool standard = !strcmp(path, "-") || !strcmp(path, "/dev/stdin");
    int file = standard ? STDIN_FILENO : open_list(path);
    errno = file >= 0 ? 0 : errno;
    while (file >= 0 && cli_read_some(file, output))
        ;
    if (errno == ESPIPE)
        cli_error(call->command, "cannot read %s: it is no regular file; - reads from a pipe", path);
    else if (errno)
        cli_error(call->command, "cannot read %s: %s", standard ? "standard input" : path, strerror(errno));
    else if (output->full)
        cli_error(call->command, "%s is no price list: it has more than %d MB", standard ? "standard input" : path,
                  CLI_BYTES_MOST >> 20);
    bool fine = !errno && !output->full;
    if (file >= 0 && !standard)
        close(file);
    return fine;
}

static void report(const pc_cloud_update_report *r, const char *path)
{
    printf("%s, %s: prices changed: %d, new: %d, as they were: %d", r->region, r->date, r->changed, r->added, r->same);
    if (r->kept)
        printf("; not in the list, and kept: %d", r->kept);
    putchar('\n');
    if (r->older)
        printf("older than what is known, and left out: %d\n", r->older);
    if (r->zero)
        printf("left out, for a price of $0, which is none: %d\n", r->zero);
    if (r->strangers)
        cli_cloud_note("New to Paracord: ", r->strangers);
    fputs(path ? "wrote " : "nothing was written", stdout);
    if (path)
        cli_print_safe(stdout, path);
    putchar('\n');
}

static void report_json(const pc_cloud_update_report *r, const char *path)
{
    printf("{\"region\": \"%s\", \"date\": \"%s\", \"products\": %d, \"changed\": %d, \"added\": %d, \"same\": %d, "
           "\"kept\": %d, \"older\": %d, \"zero\": %d, \"new_to_paracord\": ",
           r->region, r->date, r->products, r->changed, r->added, r->same, r->kept, r->older, r->zero);
    if (r->strangers)
        cli_json_text(stdout, r->strangers);
    else
        fputs("null", stdout);
    fputs(", \"wrote\": ", stdout);
    if (path)
        cli_json_text(stdout, path);
    else
        fputs("null", stdout);
    puts("}");
}

/* A broken copy of the user's is what an update is there to renew. */
static pc_cloud *open_to_update(const cli_call *call)
{
    const update_settings *s = call->settings;
    pc_cloud *cloud = pc_cloud_open(s->cloud.catalogue);
    if (!cloud && !s->cloud.catalogue && pc_error_last()->status == PC_ERR_FORMAT) {
        pc_error_clear();
        cloud = pc_cloud_open_builtin();
    }
    if (!cloud)
        cli_failed(call->command);
    return cloud;
}

/* The folder that the file is in or will be in, made where it is not there; a failure is told when the file is written.
 */
static int open_folder(const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s", realpath(path, real) ? real : path) >= (int)sizeof folder)
        return -1;
    for (char *slash = folder; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        (void)mkdir(folder, 0777);
        *slash = '/';
    }
    return open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

#define LOCK_PATIENCE_S 10 /* an update holds it for some milliseconds */

/* Two updates at once would each write back what the other has renewed. The system gives the lock back however this
 * process ends; a file system that has no locks goes without. False: an error, told. */
static bool lock_folder(const cli_call *call, const char *path, int *folder)
{
    const double end = cli_now() + LOCK_PATIENCE_S;
    *folder = open_folder(path);
    while (*folder >= 0 && flock(*folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        if (cli_now() > end) {
            cli_error(call->command, "another program has locked the folder of %s; wait until it ends", path);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return true;
}

/* Take the list into the catalogue, in memory. */
static bool put_into(const cli_call *call, pc_cloud *cloud, const cli_bytes *list, const char *name,
                     pc_cloud_update_report *r)
{
    const update_settings *s = call->settings;
    if (pc_cloud_update(cloud, list->data ? list->data : "", list->n, name, s->cloud.region, r) == PC_OK)
        return true;
    cli_failed(call->command);
    return false;
}

static int write_to(const cli_call *call, const pc_cloud *cloud, const pc_cloud_update_report *r, const char *to)
{
    const update_settings *s = call->settings;
    if (to && pc_cloud_save(cloud, s->cloud.catalogue) != PC_OK)
        return cli_failed(call->command);
    (s->cloud.json ? report_json : report)(r, to);
    return CLI_FINE;
}

/* Into the catalogue as it is by now, which another update may have renewed meanwhile, and to the disk. */
static int renew(const cli_call *call, const cli_bytes *list, const char *name, const char *to)
{
    pc_cloud_update_report r;
    int folder = -1, status = CLI_FAILED;
    pc_cloud *cloud = lock_folder(call, to, &folder) ? open_to_update(call) : NULL;
    if (cloud && put_into(call, cloud, list, name, &r))
        status = write_to(call, cloud, &r, to);
    pc_cloud_free(cloud);
    if (folder >= 0)
        close(folder);
    return status;
}

/* What is no file (a pipe) can be read once only. */
static bool can_be_read_again(const char *path)
{
    struct stat info;
    return !path || (stat(path, &info) == 0 && S_ISREG(info.st_mode));
}

/* `first` is the catalogue as it was opened before the list came. On it the list is tried: one that is none makes no
 * folder. */
static int take(const cli_call *call, pc_cloud *first, const cli_bytes *list, const char *name)
{
    const update_settings *s = call->settings;
    char *own = s->cloud.catalogue ? NULL : pc_cloud_user_path();
    const char *to = s->dry ? NULL : s->cloud.catalogue ? s->cloud.catalogue : own;
    pc_cloud_update_report r;
    int status = CLI_FAILED;
    if (!s->dry && !to)
        status = cli_failed(call->command);
    else if (put_into(call, first, list, name, &r))
        status =
            to && can_be_read_again(s->cloud.catalogue) ? renew(call, list, name, to) : write_to(call, first, &r, to);
    pc_text_free(own);
    return status;
}

static int run(const cli_call *call)
{
    const update_settings *s = call->settings;
    const char *file = call->line->values[0], *words[COMMAND_WORDS];
    char filter[128];
    if (!pc_cloud_is_region(s->cloud.region)) {
        char guess[CLI_CLOUD_TEXT_MAX];
        const char *meant = cli_cloud_guess_region(NULL, s->cloud.region, guess);
        cli_error(call->command, "--region %s: must be a region of AWS, such as us-east-1 or eu-central-1%s%s%s",
                  s->cloud.region, meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
        return CLI_WRONG_USAGE;
    }
    make_command(s->cloud.region, filter, words);
    if (s->show) {
        print_command(words);
        return CLI_FINE;
    }
    pc_cloud *cloud = open_to_update(call); /* what cannot be opened is told before aws is waited for */
    if (!cloud)
        return CLI_FAILED;
    cli_bytes list = {0};
    int status = CLI_FAILED;
    if (file)
        status = read_file(call, file, &list) ? CLI_FINE : CLI_FAILED;
    else
        status = cli_run_aws(call, words, s->limit, &list);
    if (status == CLI_FINE)
        status = take(call, cloud, &list, !file ? "aws" : !strcmp(file, "-") ? "standard input" : file);
    free(list.data);
    pc_cloud_free(cloud);
    return status;
}

static const cli_option options[] = {
    {"print", 0, CLI_FLAG, offsetof(update_settings, show), NULL, NULL,
     .help = "Print the aws command that gets the list, and run nothing"},
    {"dry-run", 'n', CLI_FLAG, offsetof(update_settings, dry), NULL, NULL,
     .help = "Say what would change, write nothing"},
    {"timeout", 0, CLI_FLOAT, offsetof(update_settings, limit), "300", "S", .help = "How long aws may take", .min = 0,
     .max = 86400, .above = true},
    CLI_CLOUD_SHARED,
    {0},
};

static const cli_argument arguments[] = {
    {"FILE", "A price list that aws pricing get-products wrote; - for standard input; without it aws is run", 0, 1,
     .complete = CLI_FILES},
    {0},
};

static const cli_example examples[] = {
    {"paracord cloud update", "Today's prices, by your own aws command and account"},
    {"paracord cloud update --region eu-central-1", "Add those of another region"},
    {"paracord cloud update --print", "The command, to run where there is a network"},
    {"paracord cloud update prices.json", "What it wrote"},
    {0},
};

const cli_command cli_cloud_update = {
    .name = "cloud update",
    .summary = "Renew the prices from AWS's price list",
    .description =
        "Runs `aws pricing get-products` with your account (pricing:GetProducts is the right it needs), or reads what "
        "it wrote, and puts the prices of one region into a catalogue of your own, in "
        "$XDG_DATA_HOME/paracord/cloud.txt "
        "(~/.local/share/...). It is written whole or not at all. Of each price the newer counts from then on, that "
        "one "
        "or the built-in one. A price that the list does not have stays as it was, with its date.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(update_settings),
    .run = run,
};

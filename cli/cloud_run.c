/* cloud_run.c: paracord cloud run INSTANCE: the commands that start it, as text; nothing is started here. */
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <paracord/api.h>

#include "cloud.h"
#include "nearest.h"
#include "text.h"

typedef struct run_settings {
    cli_cloud_settings cloud;
    const char *form, *folder, *line, *key;
    int disk;
    bool spot;
} run_settings;

/* Machine images with drivers, by the parameter that AWS keeps the newest one's number in; NULL where there is none.
 * The open driver in NVIDIA's begins with Turing, and parts of a GPU need another one; Neuron's have left Inferentia 1.
 */
static const char *driver_image(const pc_cloud_instance *i)
{
    const pc_cloud_family *f = i->family;
    if (!strcmp(f->gpu->vendor, "aws") && strcmp(f->name, "inf1") != 0)
        return "/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id";
    if (!pc_cloud_gpu_runs(f->gpu) || i->parts > 1)
        return NULL;
    if (!strcmp(f->arch, "arm64"))
        return "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id";
    return "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id";
}

static const char *image_of(const pc_cloud_instance *i)
{
    const char *image = driver_image(i);
    return image ? image : "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id";
}

/* Lines that both forms begin with. */
static void print_head(const run_settings *s, const pc_cloud_instance *i, const pc_cloud_price *price)
{
    char gpus[CLI_CLOUD_TEXT_MAX], usd[CLI_CLOUD_TEXT_MAX];
    printf("# %s: %s with %g GB, %d vCPUs\n", i->name, cli_cloud_gpus(i, gpus), i->memory_gb, i->vcpus);
    if (s->spot)
        puts("# Spot: it may end at any time, and its price, which moves by the hour, is not known here. On demand:");
    if (isnan(price->usd))
        printf("# No price by the hour is known (%s, %s)\n", price->region, price->date);
    else
        printf("# $%s an hour, Linux, on demand, %s, of %s; storage and traffic on top\n",
               cli_cloud_dollars(price->usd, usd), price->region, price->date);
    if (pc_cloud_trap(i))
        printf("# %s\n", pc_cloud_trap(i));
    if (i->family->blocks)
        printf("# Buy a block of days first:\n"
               "#   aws ec2 describe-capacity-block-offerings --region %s --instance-type %s \\\n"
               "#       --instance-count 1 --capacity-duration-hours 24\n"
               "#   aws ec2 purchase-capacity-block --region %s --instance-platform Linux/UNIX \\\n"
               "#       --capacity-block-offering-id cb-...   (it is paid for at once, used or not)\n",
               price->region, i->name, price->region);
}

static void print_option(const char *name, const char *value)
{
    printf("    %s ", name);
    cli_print_shell(stdout, value);
    puts(" \\");
}

#define UNPACK "tar -xzf paracord.tar.gz -C paracord --strip-components=1"

/* What ./dev package makes for the machine. */
static char *package_of(const pc_cloud_instance *i, char text[PATH_MAX])
{
    snprintf(text, PATH_MAX, "dist/paracord-%s-linux-%s.tar.gz", pc_version(),
             !strcmp(i->family->arch, "arm64") ? "aarch64" : "x86_64");
    return text;
}

/* What to run there: training where there is something to train on and with. */
static const char *line_of(const run_settings *s, const pc_cloud_instance *i)
{
    if (s->line)
        return s->line;
    return s->folder && pc_cloud_gpu_runs(i->family->gpu) ? "paracord/bin/paracord train work --device cuda --out run"
                                                          : "paracord/bin/paracord devices";
}

/* A file or folder here, also one whose name looks like an option or another host's. */
static const char *local(const char *path, char text[PATH_MAX])
{
    bool plain = path[0] != '-' && !memchr(path, ':', strcspn(path, "/"));
    snprintf(text, PATH_MAX, "%s%s", plain ? "" : "./", path);
    return text;
}

static void print_copy(const char *from, const char *to)
{
    char text[PATH_MAX];
    fputs("rsync -az ", stdout);
    cli_print_shell(stdout, local(from, text));
    printf(" \"$host:%s\"\n", to);
}

static void print_aws(const run_settings *s, const pc_cloud_instance *i, const pc_cloud_price *price)
{
    char text[PATH_MAX];
    puts("#!/bin/sh\n# Start a machine at AWS, do the work, end the machine. Read it, then run it: it costs money.");
    print_head(s, i, price);
    if (!driver_image(i))
        puts("# The image has no driver for it: the work has to install one first");
    puts("set -eu\n");
    if (i->family->blocks)
        puts("reservation=${1:?the capacity block: sh start.sh cr-...}\n");
    puts("id=$(aws ec2 run-instances \\");
    print_option("--region", price->region);
    print_option("--instance-type", i->name);
    snprintf(text, sizeof text, "resolve:ssm:%s", image_of(i));
    print_option("--image-id", text);
    print_option("--key-name", s->key);
    snprintf(text, sizeof text, "DeviceName=/dev/sda1,Ebs={VolumeSize=%d,VolumeType=gp3}", s->disk);
    print_option("--block-device-mappings", text);
    if (s->spot)
        print_option("--instance-market-options", "MarketType=spot");
    if (i->family->blocks) {
        print_option("--instance-market-options", "MarketType=capacity-block");
        puts("    --capacity-reservation-specification \\\n"
             "    \"CapacityReservationTarget={CapacityReservationId=$reservation}\" \\");
    }
    print_option("--instance-initiated-shutdown-behavior", "terminate");
    print_option("--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=paracord}]");
    puts("    --query 'Instances[0].InstanceId' --output text)");
    printf("\n# Whatever happens below, Ctrl-C too, the machine ends with this script.\n"
           "trap 'aws ec2 terminate-instances --region %s --instance-ids \"$id\" >/dev/null' EXIT\n"
           "trap 'exit 1' HUP INT TERM\n",
           price->region);
    printf("aws ec2 wait instance-status-ok --region %s --instance-ids \"$id\"\n", price->region);
    printf("host=ubuntu@$(aws ec2 describe-instances --region %s --instance-ids \"$id\" \\\n"
           "    --query 'Reservations[0].Instances[0].PublicIpAddress' --output text)\n\n",
           price->region);
    puts("# Paracord's package is what ./dev package makes. Your security group must let ssh in.");
    puts("ssh -o StrictHostKeyChecking=accept-new \"$host\" mkdir -p paracord work run");
    print_copy(package_of(i, text), "paracord.tar.gz");
    if (s->folder) {
        snprintf(text, sizeof text, "%s/", s->folder); /* its content */
        print_copy(text, "work/");
    }
    fputs("ssh \"$host\" ", stdout);
    cli_print_shell(stdout, UNPACK);
    fputs("\nssh \"$host\" ", stdout);
    cli_print_shell(stdout, line_of(s, i));
    puts("\nrsync -az \"$host:run/\" run/");
}

/* A YAML string in double quotes: every JSON string is one. */
static void print_yaml(const char *key, const char *value)
{
    fputs(key, stdout);
    cli_json_text(stdout, value);
    putchar('\n');
}

static void print_sky(const run_settings *s, const pc_cloud_instance *i, const pc_cloud_price *price)
{
    char text[PATH_MAX];
    puts("# A SkyPilot task:  sky launch -c paracord FILE   (ten idle minutes end the machine)\n"
         "# Its results:      rsync -az paracord:run/ run/");
    print_head(s, i, price);
    if (i->family->blocks)
        puts("# and name it in ~/.sky/config.yaml:  aws: {specific_reservations: [cr-...]}");
    if (!driver_image(i) && !strcmp(i->family->gpu->vendor, "amd"))
        puts("# SkyPilot's image has no driver for it: the work has to install one first");
    snprintf(text, sizeof text, "aws/%s", price->region);
    puts("name: paracord\n\nresources:");
    print_yaml("  infra: ", text);
    print_yaml("  instance_type: ", i->name);
    printf("  disk_size: %d\n  use_spot: %s\n  autostop:\n    idle_minutes: 10\n    down: true\n\nfile_mounts:\n",
           s->disk, s->spot ? "true" : "false");
    print_yaml("  ~/paracord.tar.gz: ", package_of(i, text));
    if (s->folder)
        print_yaml("  ~/work: ", local(s->folder, text));
    puts("\nsetup: |\n  cd && mkdir -p paracord run\n  " UNPACK "\n\nrun: |\n  cd");
    for (const char *line = line_of(s, i); *line; line += strcspn(line, "\n"), line += *line == '\n')
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
}

static void print_json(const run_settings *s, const pc_cloud_instance *i, const pc_cloud_price *price,
                       const pc_cloud *cloud)
{
    putchar('{');
    cli_cloud_json_catalogue(cloud);
    fputs(", ", stdout);
    cli_cloud_json(i, price);
    printf(", \"image_parameter\": \"%s\", \"image_has_driver\": %s, \"disk_gb\": %d, \"spot\": %s, "
           "\"capacity_block\": %s, \"command\": ",
           image_of(i), driver_image(i) ? "true" : "false", s->disk, s->spot ? "true" : "false",
           i->family->blocks ? "true" : "false");
    cli_json_text(stdout, line_of(s, i));
    puts("}");
}

static const char *guess_machine(const pc_cloud *cloud, const char *typed)
{
    const pc_cloud_instance *i;
    const char *meant = NULL;
    typed += strncmp(typed, "ml.", 3) ? 0 : 3;
    for (int k = 0; (i = pc_cloud_instance_at(cloud, k)); k++)
        meant = cli_nearer(typed, meant, i->name);
    return meant;
}

static int run(const cli_call *call)
{
    const run_settings *s = call->settings;
    pc_cloud *cloud = cli_cloud_open(call);
    if (!cloud)
        return CLI_FAILED;
    const pc_cloud_instance *i = pc_cloud_find(cloud, call->line->values[0]);
    int status = i ? CLI_FINE : cli_cloud_failed(call, guess_machine(cloud, call->line->values[0]));
    if (i && i->family->blocks && s->spot) {
        cli_error(call->command, "--spot: %s is for hire by the block of days only", i->name);
        status = CLI_FAILED;
    }
    if (status == CLI_FINE) {
        pc_cloud_price price = pc_cloud_price_of(cloud, i, s->cloud.region);
        if (s->cloud.json)
            print_json(s, i, &price, cloud);
        else
            (!strcmp(s->form, "sky") ? print_sky : print_aws)(s, i, &price);
    }
    pc_cloud_free(cloud);
    return status;
}

static const cli_choice forms[] = {
    {"aws", "a shell script for AWS's command line"}, {"sky", "a task file for SkyPilot"}, {0}};

static const cli_option options[] = {
    {"form", 0, CLI_CHOICE, offsetof(run_settings, form), "aws", "FORM", .help = "What to print", .choices = forms},
    {"data", 0, CLI_PATH, offsetof(run_settings, folder), NULL, "DIR", .help = "A folder to copy there, to ~/work"},
    {"command", 0, CLI_TEXT, offsetof(run_settings, line), NULL, "LINE",
     .help = "What to run there; without it, train on DIR, or list the devices"},
    {"key", 0, CLI_TEXT, offsetof(run_settings, key), "my-key", "NAME", .help = "Your EC2 key pair"},
    {"disk", 0, CLI_INT, offsetof(run_settings, disk), "100", "GB", .help = "Its disk", .min = 75, .max = 16384},
    {"spot", 0, CLI_FLAG, offsetof(run_settings, spot), NULL, NULL,
     .help = "Spare capacity: cheaper, and may end at any time"},
    CLI_CLOUD_SHARED,
    {0},
};

static const cli_argument arguments[] = {
    {"INSTANCE", "Its name, such as g6.xlarge", 1, 1, .offer = cli_cloud_offer_machine},
    {0},
};

static const cli_example examples[] = {
    {"paracord cloud run g6.xlarge --data faces > start.sh", "A script to read and then run"},
    {"paracord cloud run g6.xlarge --data faces --form sky > task.yaml", "A task file for SkyPilot"},
    {0},
};

const cli_command cli_cloud_run = {
    .name = "cloud run",
    .summary = "Print the commands that start a machine",
    .description =
        "Prints a script for AWS's command line or a task file for SkyPilot that starts the machine with an "
        "image that has its drivers, copies Paracord's package (./dev package) and a folder there, runs a "
        "command, brings its results back and ends the machine. It is printed and never run: it costs money.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .settings_size = sizeof(run_settings),
    .run = run,
};

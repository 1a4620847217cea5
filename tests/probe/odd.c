/* Machines whose files are odd: missing, garbage, endless, pipes, links out of the folder; recordings that are none. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <paracord-tools/doctor.h>
#include <paracord/memory.h>

#include "support.h"

#define MACHINES PC_TEST_GOLDEN "/machines/"

static char folder[] = "/tmp/paracord-odd-XXXXXX";

static void shell(const char *command)
{
    char line[2048];
    snprintf(line, sizeof line, "cd %s && %s", folder, command);
    assert_int_equal(system(line), 0);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/paracord-odd-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char line[256];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

/* Probe, examine and write everything; nothing may fail. */
static void look_at(const char *root)
{
    char *text = NULL;
    size_t n = 0;
    pc_machine *m = pc_machine(.root = root);
    assert_not_null_ok(m);
    pc_diagnosis *d = pc_diagnosis(m, .job = PC_JOB_ANY);
    assert_not_null_ok(d);
    for (int i = 0; i < m->device_count; i++)
        for (int j = 0; j < m->device_count; j++)
            assert_in_range(pc_machine_link(m, i, j).kind, PC_LINK_UNKNOWN, PC_LINK_SYS);
    FILE *out = open_memstream(&text, &n);
    assert_ok(pc_machine_json(m, out));
    fclose(out);
    assert_true(n > 2 && text[0] == '{' && text[n - 1] == '}');
    free(text);
    pc_diagnosis_free(d);
    pc_machine_free(m);
    assert_int_equal(pc_allocator_live(), 0);
}

#define GPU "sys/bus/pci/devices/0000:01:00.0"

static void an_empty_folder(void **state)
{
    (void)state;
    look_at(folder);
}

static void files_full_of_garbage(void **state)
{
    (void)state;
    shell("mkdir -p " GPU " proc/driver/nvidia etc proc/sys/kernel lib/modules/x && echo 0x030200 >" GPU "/class && "
          "head -c 5000 /dev/urandom | tee " GPU "/vendor " GPU "/device " GPU "/resource " GPU "/numa_node " GPU
          "/current_link_speed " GPU "/current_link_width " GPU "/local_cpulist proc/driver/nvidia/version "
          "etc/os-release proc/sys/kernel/osrelease lib/modules/x/modules.alias >/dev/null && ln -s . " GPU "/driver");
    look_at(folder);
}

static void numbers_that_are_none(void **state)
{
    (void)state;
    shell("mkdir -p " GPU " && echo 0x030200 >" GPU "/class && echo 0x10de >" GPU "/vendor && "
          "echo 99999999999999999999 >" GPU "/device && echo -1 >" GPU "/numa_node && echo 255 >" GPU
          "/current_link_width && echo Unknown >" GPU "/current_link_speed && : >" GPU "/max_link_width");
    pc_machine *m = pc_machine(.root = folder);
    assert_not_null_ok(m);
    assert_int_equal(m->device_count, 1);
    assert_false(m->devices[0].numa_node.known);
    assert_false(m->devices[0].pcie_width.known);
    assert_false(m->devices[0].pcie_generation.known);
    assert_non_null(strstr(m->devices[0].pcie_generation.why, "Unknown"));
    pc_machine_free(m);
    look_at(folder);
}

static void files_that_never_end(void **state)
{
    (void)state;
    shell("mkdir -p " GPU " proc/driver/nvidia usr/share/misc etc && echo 0x030200 >" GPU "/class && echo 0x10de >" GPU
          "/vendor && mkfifo " GPU "/device proc/driver/nvidia/version && truncate -s 2G usr/share/misc/pci.ids "
          "etc/os-release " GPU "/resource && ln -s /dev/zero " GPU "/revision && ln -s loop " GPU "/loop");
    look_at(folder);
}

/* A link in the copy of a machine points into the copy, not into this machine: at the end of a path, on the way, and
 * where links are read rather than followed. "outside" lies beside the copy, in the same folder. */
static void links_stay_inside(void **state)
{
    (void)state;
    char copy[64];
    shell("mkdir -p copy/proc/sys copy/inside outside/kernel outside/0000:01:00.0 && echo 6.6.6-outside "
          ">outside/kernel/osrelease && "
          "echo 1.2.3-inside >copy/inside/osrelease && ln -s $PWD/outside/kernel copy/proc/sys/kernel && "
          "mkdir -p copy/sys/bus/pci copy/sys/devices && ln -s ../../../../outside copy/sys/bus/pci/devices && "
          "echo 0x030200 >outside/0000:01:00.0/class && ln -s ../outside/driver outside/0000:01:00.0/driver");
    snprintf(copy, sizeof copy, "%s/copy", folder);
    pc_machine *m = pc_machine(.root = copy);
    assert_not_null_ok(m);
    assert_false(m->kernel.known);
    assert_int_equal(m->device_count, 0);
    pc_machine_free(m);
    shell("rm copy/proc/sys/kernel copy/sys/bus/pci/devices && ln -s /inside copy/proc/sys/kernel && "
          "mkdir -p copy/real/0000:01:00.0 && ln -s /real copy/sys/bus/pci/devices && "
          "echo 0x030200 >copy/real/0000:01:00.0/class && ln -s /drivers/nouveau copy/real/0000:01:00.0/driver");
    m = pc_machine(.root = copy);
    assert_not_null_ok(m);
    assert_true(m->kernel.known);
    assert_string_equal(m->kernel.text, "1.2.3-inside");
    assert_int_equal(m->device_count, 1);
    assert_true(m->devices[0].module.known);
    assert_string_equal(m->devices[0].module.text, "nouveau");
    pc_machine_free(m);
    shell("ln -sfn /proc/sys/kernel/osrelease copy/inside/osrelease"); /* leads in a circle */
    look_at(copy);
}

/* A log of more than is read: its end counts, and its last line may have no end. */
static void a_long_kernel_log(void **state)
{
    (void)state;
    shell("mkdir -p " GPU " var/log && echo 0x030200 >" GPU "/class && echo 0x10de >" GPU "/vendor && "
          "yes 'NVRM: nothing to tell' | head -c 5000000 >var/log/kern.log && "
          "printf '\nNVRM: Xid (PCI:0000:01:00): 79, pid=1' >>var/log/kern.log");
    pc_machine *m = pc_machine(.root = folder);
    assert_not_null_ok(m);
    pc_diagnosis *d = pc_diagnosis(m, .job = PC_JOB_ANY);
    assert_not_null_ok(d);
    bool told = false;
    for (int i = 0; i < d->finding_count; i++)
        told |= strstr(d->findings[i].how, "Xid (PCI:0000:01:00): 79, pid=1") != NULL;
    assert_true(told);
    pc_diagnosis_free(d);
    pc_machine_free(m);
}

static void write_recording(char path[64], const char *text, size_t n)
{
    strcpy(path, "/tmp/paracord-odd-file-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, n), n);
    close(file);
}

static void recordings_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } wrong[] = {{"hello\n", "first line"},
                 {"", "first line"},
                 {"paracord machine 1\nnonsense\n", ":2:"},
                 {"paracord machine 1\na b c\n", ":2: =, -> or :"},
                 {"paracord machine 1\nlike /nonexistent/machine\n", "cannot read"}};
    char path[64];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_recording(path, wrong[i].text, strlen(wrong[i].text));
        pc_error_clear();
        assert_null(pc_machine(.root = path));
        if (!strstr(pc_error_last()->message, wrong[i].words))
            fail_msg("\"%s\": want \"%s\", got %s", wrong[i].text, wrong[i].words, pc_error_last()->message);
        pc_error_clear();
        unlink(path);
    }
    assert_fails(pc_machine(.root = "/nonexistent/machine"), PC_ERR_FILE, "/nonexistent");
    assert_int_equal(pc_allocator_live(), 0);
}

static void recordings_that_take_over_one_another(void **state)
{
    (void)state;
    char path[64], text[128];
    write_recording(path, "", 0);
    snprintf(text, sizeof text, "paracord machine 1\nlike %s\n", strrchr(path, '/') + 1);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    assert_fails(pc_machine(.root = path), PC_ERR_FORMAT, "take over one another");
    unlink(path);
    assert_int_equal(pc_allocator_live(), 0);
}

/* Bytes of a real recording are changed, dropped and doubled, the same way in every run. */
static void damaged_recordings(void **state)
{
    (void)state;
    char path[64];
    FILE *file = fopen(MACHINES "healthy-h200.txt", "r");
    assert_non_null(file);
    static char text[65536], damaged[70000];
    size_t n = fread(text, 1, sizeof text, file), head = strlen("paracord machine 1\n");
    fclose(file);
    uint32_t random = 12345;
    for (int round = 0; round < 300; round++) {
        size_t length = head;
        memcpy(damaged, text, head);
        for (size_t i = head; i < n && length < sizeof damaged - 2; i++) {
            random = random * 1664525 + 1013904223;
            unsigned dice = random >> 20;
            if (dice >= 40)
                damaged[length++] = text[i];
            else if (dice >= 20)
                damaged[length++] = (char)(random >> 8);
            else if (dice >= 10) {
                damaged[length++] = text[i];
                damaged[length++] = text[i];
            }
        }
        write_recording(path, damaged, length);
        pc_machine *m = pc_machine(.root = path);
        if (m) {
            pc_machine_free(m);
            look_at(path);
        }
        pc_error_clear();
        unlink(path);
    }
    assert_int_equal(pc_allocator_live(), 0);
}

/* Whatever the driver says, line by line. */
static void damaged_answers(void **state)
{
    (void)state;
    static const char *const lines[] = {"gpu",
                                        "gpu x",
                                        "gpu 0000:01:00.0",
                                        "process",
                                        "process a b c",
                                        "process 1 2",
                                        "link 1",
                                        "link x y z",
                                        "mig",
                                        "mig = x",
                                        "cuda",
                                        "cuda x 0000:01:00.0",
                                        "cuda 0 9999:99:99.9",
                                        "= = =",
                                        "power = nan",
                                        "power = 1e999",
                                        "power =",
                                        "power",
                                        "memory_total = -5",
                                        "model =",
                                        "model = \x01\x02\xff",
                                        "hang",
                                        "hang x",
                                        "clock_reasons = %s%n",
                                        "index_pci = 1e30"};
    char path[64], text[8192];
    uint32_t random = 99;
    for (int round = 0; round < 300; round++) {
        size_t n =
            (size_t)snprintf(text, sizeof text,
                             "paracord machine 1\n" GPU "/class = 0x030200\n" GPU "/vendor = 0x10de\nanswers/nvml =\n");
        for (int i = 0; i < 30; i++) {
            random = random * 1664525 + 1013904223;
            n += (size_t)snprintf(text + n, sizeof text - n, "|%s\n",
                                  lines[(random >> 16) % (sizeof lines / sizeof *lines)]);
        }
        write_recording(path, text, n);
        look_at(path);
        unlink(path);
    }
}

/* The n-th allocation from now on fails, once. */
static long until_failure;

static void *allocate(void *context, size_t bytes, size_t alignment)
{
    void *block = NULL;
    (void)context;
    return --until_failure == 0 || posix_memalign(&block, alignment < 16 ? 16 : alignment, bytes) ? NULL : block;
}

static void *resize(void *context, void *block, size_t bytes)
{
    (void)context;
    return --until_failure == 0 ? NULL : realloc(block, bytes);
}

static void release(void *context, void *block)
{
    (void)context;
    free(block);
}

/* Without memory there is an error and no machine that lacks something; nothing leaks. */
static void any_allocation_may_fail(void **state)
{
    (void)state;
    static const pc_allocator failing = {allocate, resize, release, NULL};
    assert_ok(pc_allocator_set(&failing));
    int failures = 0;
    for (long n = 1;; n += 1 + n / 40) {
        until_failure = n;
        pc_error_clear();
        pc_machine *m = pc_machine(.root = MACHINES "fell-off-the-bus.txt");
        pc_diagnosis *d = m ? pc_diagnosis(m, .job = PC_JOB_ANY) : NULL;
        bool failed = until_failure <= 0;
        if (d && failed)
            fail_msg("allocation %ld failed, and nobody noticed", n);
        if (!d && pc_error_last()->status != PC_ERR_MEMORY)
            fail_msg("allocation %ld failed: got %s", n, pc_error_last()->message);
        if (d)
            assert_int_equal(d->wrong_count, 1);
        pc_diagnosis_free(d);
        pc_machine_free(m);
        assert_int_equal(pc_allocator_live(), 0);
        failures += failed;
        if (!failed)
            break;
    }
    pc_error_clear();
    assert_ok(pc_allocator_set(NULL));
    assert_in_range(failures, 50, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_folder, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_full_of_garbage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(numbers_that_are_none, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_that_never_end, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(links_stay_inside, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_long_kernel_log, make_folder, remove_folder),
        cmocka_unit_test(recordings_that_are_none),
        cmocka_unit_test(recordings_that_take_over_one_another),
        cmocka_unit_test(damaged_recordings),
        cmocka_unit_test(damaged_answers),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("probe.odd", tests, NULL, NULL);
}

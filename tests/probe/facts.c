/* What the probe reads from recorded machines: facts with units, unknown ones with reasons, links, displays, software.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <paracord/memory.h>
#include <paracord-tools/probe.h>

#include "support.h"

#define MACHINES PC_TEST_GOLDEN "/machines/"

static pc_machine *probe(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, MACHINES "%s", name);
    pc_machine *m = pc_machine(.root = path);
    assert_not_null_ok(m);
    return m;
}

#define assert_number(fact, want)                                                                                      \
    do {                                                                                                               \
        if (!(fact).known || (fact).number != (want))                                                                  \
            fail_msg("%s: got %s %.9g (%s), want %.9g", #fact, (fact).known ? "known" : "unknown", (fact).number,      \
                     (fact).why ? (fact).why : "", (double)(want));                                                    \
    } while (0)

#define assert_text(fact, want)                                                                                        \
    do {                                                                                                               \
        if (!(fact).known || strcmp((fact).text, (want)))                                                              \
            fail_msg("%s: got %s, want %s", #fact, (fact).known ? (fact).text : (fact).why, (want));                   \
    } while (0)

static void a_gpu_with_its_driver(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-h200.txt");
    assert_int_equal(m->device_count, 1);
    const pc_probe_device *d = &m->devices[0];
    assert_text(d->model, "NVIDIA H200");
    assert_text(d->vendor, "NVIDIA Corporation");
    assert_text(d->class_name, "3D controller");
    assert_text(d->module, "nvidia");
    assert_text(d->subsystem_id, "10de:18be");
    assert_number(d->memory_total, 150754820096);
    assert_number(d->power, 75.4);
    assert_number(d->pcie_generation_host, 5);
    assert_number(d->pcie_width_max, 16);
    assert_number(d->index_cuda, 0);
    assert_number(d->mig, 0);
    assert_int_equal(d->mig_count, 0);
    assert_text(m->driver, "580.65.06");
    assert_text(m->driver_kind, "open");
    assert_text(m->cuda_driver, "13.0");
    assert_int_equal(m->toolkit_count, 1);
    assert_string_equal(m->toolkits[0].version, "13.0.1");
    assert_string_equal(m->toolkits[0].path, "/usr/local/cuda-13.0");
    assert_true(m->toolkits[0].on_path && m->toolkits[0].on_library_path);
    pc_machine_free(m);
    assert_int_equal(pc_allocator_live(), 0);
}

/* Every fact of every device is known, or has a reason; unknown ones are never a number. */
static void unknown_has_a_reason(void **state)
{
    (void)state;
    static const char *const machines[] = {"healthy-h200.txt", "no-driver-ubuntu.txt", "healthy-amd.txt",
                                           "driver-hangs.txt", "healthy-laptop.txt",   "version-mismatch.txt"};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        pc_machine *m = probe(machines[i]);
        for (int j = 0; j < m->device_count; j++)
            for (int k = 0; pc_device_fact(k); k++) {
                const pc_fact *fact = pc_fact_of(pc_device_fact(k), &m->devices[j]);
                if (!fact->known && (!fact->why || !fact->why[0] || fact->number != 0))
                    fail_msg("%s: %s is unknown, and nobody says why", machines[i], pc_device_fact(k)->name);
            }
        for (int k = 0; pc_machine_fact(k); k++)
            if (!pc_fact_of(pc_machine_fact(k), m)->known && !pc_fact_of(pc_machine_fact(k), m)->why)
                fail_msg("%s: %s is unknown, and nobody says why", machines[i], pc_machine_fact(k)->name);
        pc_machine_free(m);
    }
}

static void without_a_driver_pci_still_tells(void **state)
{
    (void)state;
    pc_machine *m = probe("no-driver-ubuntu.txt");
    const pc_probe_device *d = &m->devices[0];
    assert_text(d->model, "GH100 [H200 SXM 141GB]");
    assert_text(d->modules, "nouveau");
    assert_false(d->module.known);
    assert_false(d->memory_total.known);
    assert_number(d->pcie_generation, 5);
    pc_machine_free(m);
}

static void what_hung_is_named(void **state)
{
    (void)state;
    pc_machine *m = probe("driver-hangs.txt");
    assert_non_null(m->hung);
    assert_text(m->devices[0].model, "NVIDIA H200");
    assert_false(m->devices[0].memory_total.known);
    assert_non_null(strstr(m->devices[0].memory_total.why, "nvmlDeviceGetMemoryInfo_v2"));
    pc_machine_free(m);
}

static void displays_belong_to_their_cards(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-laptop.txt");
    assert_int_equal(m->device_count, 2);
    assert_int_equal(m->devices[0].connector_count, 1);
    assert_string_equal(m->devices[0].connectors[0].name, "eDP-1");
    assert_string_equal(m->devices[0].connectors[0].mode, "2560x1600");
    assert_true(m->devices[0].connectors[0].in_use);
    assert_int_equal(m->devices[1].connector_count, 1);
    assert_false(m->devices[1].connectors[0].in_use);
    assert_null(m->devices[1].connectors[0].mode);
    pc_machine_free(m);
}

static const char *link_between(const pc_machine *m, int a, int b)
{
    static char text[16];
    return pc_link_text(pc_machine_link(m, a, b), text);
}

/* A recording of a real machine, whose nvidia-smi said the same. */
static void a_recorded_machine(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-2xh200-virtual.txt");
    assert_int_equal(m->device_count, 2);
    assert_text(m->container, "docker");
    assert_text(m->driver, "580.159.04");
    const pc_probe_device *d = &m->devices[1];
    assert_number(d->memory_reserved, 644939776);
    assert_number(d->numa_node, 0); /* the firmware does not say, and there is but one */
    assert_number(d->nvlinks_active, 18);
    assert_number(d->nvlink_version, 4);
    assert_text(d->fabric_state, "completed");
    assert_text(d->clock_reasons, "idle");
    assert_number(d->bar_largest, 274877906944);
    assert_false(d->pcie_width_host.known);
    assert_number(d->pcie_width_max, 16);
    assert_string_equal(link_between(m, 0, 1), "NV18");
    pc_machine_free(m);
}

static void amd_tells_in_files(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-amd.txt");
    const pc_probe_device *d = &m->devices[1];
    assert_text(d->model, "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M]");
    assert_number(d->memory_total, 25753026560);
    assert_number(d->memory_used, 1048576);
    assert_number(d->temperature, 41);
    assert_number(d->power, 23);
    assert_number(d->power_limit_enforced, 327);
    assert_number(d->clock_graphics, 52);
    assert_false(d->fan.known);
    assert_ok(pc_machine_sample(m));
    assert_number(d->utilization_gpu, 3);
    assert_number(d->pcie_width, 16);
    pc_machine_free(m);
}

static void links_are_named_as_nvidia_smi_does(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-8xh100.txt");
    assert_int_equal(m->nvswitch_count, 4);
    assert_string_equal(link_between(m, 0, 0), "X");
    assert_string_equal(link_between(m, 0, 7), "NV18");
    for (int i = 0; i < m->device_count; i++)
        m->devices[i].link_count = 0;                  /* what PCIe alone would do */
    assert_string_equal(link_between(m, 0, 1), "PIX"); /* one switch */
    assert_string_equal(link_between(m, 0, 2), "PHB"); /* two root ports of one host bridge */
    assert_string_equal(link_between(m, 0, 4), "SYS"); /* two sockets */
    assert_string_equal(link_between(m, 0, 99), "?");
    pc_machine_free(m);
}

static void paths_make_the_other_kinds(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-8xh100.txt");
    pc_probe_device *a = &m->devices[0], *b = &m->devices[1];
    a->link_count = b->link_count = 0;
    a->bus_path = "pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0/0000:1b:00.0";
    b->bus_path = "pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:01.0/0000:1c:00.0/0000:1d:00.0/0000:1e:00.0";
    assert_string_equal(link_between(m, 0, 1), "PXB");
    b->bus_path = "pci0000:38/0000:38:01.0/0000:39:00.0";
    assert_string_equal(link_between(m, 0, 1), "NODE");
    b->bus_path = NULL;
    assert_string_equal(link_between(m, 0, 1), "?");
    pc_machine_free(m);
}

static void paths_begin_at_the_host_bridge(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-device-tree.txt");
    assert_string_equal(m->devices[0].bus_path, "pci0000:40/0000:40:01.1/0000:41:00.0");
    assert_string_equal(link_between(m, 0, 1), "SYS");
    pc_machine_free(m);
}

static void facts_are_printed_with_units(void **state)
{
    (void)state;
    char text[64];
    pc_machine *m = probe("healthy-h200.txt");
    static const struct {
        const char *name, *text, *key;
    } wanted[] = {{"memory_total", "143771 MiB", "memory_total_bytes"},
                  {"power", "75.4 W", "power_watts"},
                  {"temperature", "31 C", "temperature_celsius"},
                  {"ecc", "on", "ecc"},
                  {"clock_sm", "345 MHz", "clock_sm_mhz"},
                  {"utilization_gpu", "0 %", "utilization_gpu_percent"},
                  {"fan", "unknown", "fan_percent"}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (int k = 0; pc_device_fact(k); k++) {
            const pc_fact_row *row = pc_device_fact(k);
            if (strcmp(row->name, wanted[i].name))
                continue;
            assert_string_equal(pc_fact_text(row, pc_fact_of(row, &m->devices[0]), text, sizeof text), wanted[i].text);
            assert_string_equal(pc_fact_key(row, text, sizeof text), wanted[i].key);
        }
    pc_machine_free(m);
}

static void json_has_values_and_reasons(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-laptop.txt");
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_ok(pc_machine_json(m, out));
    fclose(out);
    assert_non_null(strstr(text, "\"memory_total_bytes\": 8585740288"));
    assert_non_null(strstr(text, "\"power_limit_watts\": null"));
    assert_non_null(strstr(text, "\"power_limit_watts\": \"Not Supported\""));
    assert_non_null(strstr(text, "\"power_watts\": 2.1"));
    assert_non_null(strstr(text, "\"boot_display\": true"));
    free(text);
    pc_machine_free(m);
}

/* A copied folder tells what the recording of it tells. */
static void a_folder_is_read_like_a_recording(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-machine-XXXXXX", line[1024];
    assert_non_null(mkdtemp(folder));
    snprintf(
        line, sizeof line,
        "cd %s && mkdir -p sys/bus/pci/devices/0000:01:00.0 proc/sys/kernel answers usr/share/misc && "
        "cd sys/bus/pci/devices/0000:01:00.0 && echo 0x030200 >class && echo 0x10de >vendor && echo 0x2335 >device "
        "&& echo 16 >current_link_width && cd - >/dev/null && echo 6.1.0 >proc/sys/kernel/osrelease && "
        "printf 'gpu 0000:01:00.0\\nmodel = NVIDIA H200\\n' >answers/nvml",
        folder);
    assert_int_equal(system(line), 0);
    pc_machine *m = pc_machine(.root = folder);
    assert_not_null_ok(m);
    assert_int_equal(m->device_count, 1);
    assert_text(m->devices[0].model, "NVIDIA H200");
    assert_text(m->kernel, "6.1.0");
    assert_number(m->devices[0].pcie_width, 16);
    assert_false(m->live);
    pc_machine_free(m);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    assert_int_equal(system(line), 0);
}

static void who_made_the_card_and_which_files_lead_to_it(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-desktop-open.txt");
    assert_text(m->devices[0].board_vendor, "ASUSTeK Computer Inc.");
    assert_text(m->devices[0].device_files, "/dev/nvidia0 /dev/dri/card1 /dev/dri/renderD128");
    assert_int_equal(m->devices[0].connector_count, 2);
    for (int i = 0; i < 2; i++) {
        const pc_probe_connector *c = &m->devices[0].connectors[i];
        if (!strcmp(c->name, "DP-1")) {
            assert_string_equal(c->mode, "3840x2160");
            assert_string_equal(c->now, "2560x1440 at 144 Hz"); /* not the largest */
        } else {
            assert_null(c->now);
        }
    }
    pc_machine_free(m);
    m = probe("healthy-nixos.txt");
    assert_false(m->devices[0].board_vendor.known);
    assert_non_null(strstr(m->devices[0].board_vendor.why, "subsystem id is unknown"));
    pc_machine_free(m);
}

/* Nothing is asked of a GPU that sleeps to save power, unless its waking is wanted. */
static void who_sleeps_is_left_asleep(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-laptop-asleep.txt");
    const pc_probe_device *d = &m->devices[1];
    assert_true(d->asleep);
    assert_false(m->devices[0].asleep);
    assert_text(d->power_state, "D3cold");
    const pc_fact *const unknown[] = {&d->pcie_width, &d->pcie_generation_max, &d->temperature, &m->cuda_driver};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_false(unknown[i]->known);
        assert_non_null(strstr(unknown[i]->why, "would wake it"));
    }
    pc_machine_free(m);
    m = pc_machine(.root = MACHINES "healthy-laptop-asleep.txt", .wake = true);
    assert_not_null_ok(m);
    assert_false(m->devices[1].asleep);
    assert_null(strstr(m->devices[1].temperature.why, "would wake it"));
    pc_machine_free(m);
}

/* A GPU in no PCI tree is a device like others, also for CUDA. */
static void an_integrated_gpu(void **state)
{
    (void)state;
    pc_machine *m = probe("healthy-jetson.txt");
    assert_int_equal(m->device_count, 1);
    const pc_probe_device *d = &m->devices[0];
    assert_true(d->nvidia && d->integrated);
    assert_text(d->address, "17000000.gpu");
    assert_text(d->module, "nvgpu");
    assert_text(m->driver, "L4T 36.4.3");
    assert_number(d->utilization_gpu, 12.5);
    assert_number(d->index_cuda, 0);
    pc_machine_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_with_its_driver),
        cmocka_unit_test(unknown_has_a_reason),
        cmocka_unit_test(without_a_driver_pci_still_tells),
        cmocka_unit_test(what_hung_is_named),
        cmocka_unit_test(displays_belong_to_their_cards),
        cmocka_unit_test(a_recorded_machine),
        cmocka_unit_test(amd_tells_in_files),
        cmocka_unit_test(links_are_named_as_nvidia_smi_does),
        cmocka_unit_test(paths_make_the_other_kinds),
        cmocka_unit_test(paths_begin_at_the_host_bridge),
        cmocka_unit_test(facts_are_printed_with_units),
        cmocka_unit_test(json_has_values_and_reasons),
        cmocka_unit_test(a_folder_is_read_like_a_recording),
        cmocka_unit_test(who_made_the_card_and_which_files_lead_to_it),
        cmocka_unit_test(who_sleeps_is_left_asleep),
        cmocka_unit_test(an_integrated_gpu),
    };
    return cmocka_run_group_tests_name("probe.facts", tests, NULL, NULL);
}

/* How collectives will go: NCCL's choice of ways on recorded machines, what links carry, and what is to be changed. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <paracord-tools/probe.h>
#include <paracord/memory.h>

#include "support.h"

static pc_machine *recorded(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, PC_TEST_GOLDEN "/machines/%s.txt", name);
    pc_machine *m = pc_machine(.root = path);
    assert_not_null_ok(m);
    return m;
}

/* Two GPUs at these places of the PCI tree, and further lines of a recording. */
static pc_machine *made(const char *first, const char *second, const char *facts, const char *lines)
{
    char path[] = "/tmp/paracord-ways-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *out = fdopen(file, "w");
    fputs("paracord machine 1\n", out);
    const char *const places[] = {first, second};
    for (int i = 0; i < 2; i++) {
        const char *address = strrchr(places[i], '/') + 1;
        fprintf(out, "sys/bus/pci/devices/%s -> ../../../devices/%s\n", address, places[i]);
        fprintf(out, "sys/bus/pci/devices/%s/class = 0x030200\nsys/bus/pci/devices/%s/vendor = 0x10de\n", address,
                address);
        fprintf(out, "sys/bus/pci/devices/%s/numa_node = 0\n", address);
    }
    fprintf(out, "%sanswers/nvml =\n", lines);
    for (int i = 0; i < 2; i++)
        fprintf(out, "|gpu %s\n%s", strrchr(places[i], '/') + 1, facts);
    fclose(out);
    pc_machine *m = pc_machine(.root = path, .recording = true);
    unlink(path);
    assert_not_null_ok(m);
    return m;
}

/* The same from a recording of it, as users send theirs. */
static pc_machine *taken_along(pc_machine *m)
{
    char path[] = "/tmp/paracord-ways-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(pc_machine_record(m, path), PC_OK);
    pc_machine_free(m);
    m = pc_machine(.root = path);
    unlink(path);
    assert_not_null_ok(m);
    return m;
}

#define SWITCH_A "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0"
#define SWITCH_B "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0"
#define BRIDGE_B "pci0000:00/0000:00:02.0/0000:05:00.0"
#define SOCKET_B "pci0000:80/0000:80:01.0/0000:81:00.0"
#define GEN4 "|compute_capability = 8.9\n|pcie_generation_max = 4\n|pcie_width_max = 16\n"
#define AMD "proc/cpuinfo =\n|processor\t: 0\n|vendor_id\t: AuthenticAMD\n"
#define INTEL "proc/cpuinfo =\n|processor\t: 0\n|vendor_id\t: GenuineIntel\n"
#define SET(words) "answers/environment =\n|" words "\n"

static void assert_way(pc_machine *m, int a, int b, pc_way_kind kind, double rate, const char *why)
{
    const pc_way way = pc_machine_way(m, a, b);
    if (way.kind != kind || !strstr(way.why, why) ||
        (isnan(rate) ? !isnan(way.bandwidth) : fabs(way.bandwidth / 1e9 - rate) > 0.05))
        fail_msg("way %d, %.3f GB/s, \"%s\"; want %d, %.3f, \"%s\"", way.kind, way.bandwidth / 1e9, way.why, kind, rate,
                 why);
}

static void an_hgx_goes_by_nvlink(void **state)
{
    (void)state;
    pc_machine *m = recorded("healthy-8xh100");
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            if (i != j)
                assert_way(m, i, j, PC_WAY_NVLINK, 450, "18 links of NVLink through NVSwitches");
    const pc_ways ways = pc_machine_ways(m);
    assert_int_equal(ways.gpus, 8);
    assert_int_equal(ways.all.kind, PC_WAY_NVLINK);
    assert_close(ways.all.bandwidth, 450e9, 1e3);
    assert_non_null(strstr(ways.nvls, "available: "));
    assert_string_equal(ways.engine, "NCCL");
    assert_non_null(strstr(ways.advice, "paracord launch"));
    assert_null(strstr(ways.advice, "ACS"));
    pc_machine_free(m);
}

static void a_box_without_p2p_goes_through_the_host(void **state)
{
    (void)state;
    pc_machine *m = recorded("healthy-4xgeforce");
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_way(m, i, j, PC_WAY_HOST, 31.5, "PCIe 4.0 x16; the driver does not let GeForce cards");
    const pc_ways ways = pc_machine_ways(m);
    assert_int_equal(ways.all.kind, PC_WAY_HOST);
    assert_string_equal(ways.nvls, "not available: it takes NVSwitches");
    assert_string_equal(ways.engine, "NCCL, which is missing here");
    assert_string_equal(ways.advice, "");
    pc_machine_free(m);
}

static void a_workstation_across_sockets(void **state)
{
    (void)state;
    pc_machine *m = recorded("workstation-acs");
    assert_way(m, 0, 1, PC_WAY_P2P, 31.5, "AMD board");
    const pc_ways ways = pc_machine_ways(m);
    assert_non_null(strstr(ways.advice, "ACS sends what GPUs send to each other up to the CPU, at 0000:40:01.1"));
    assert_non_null(strstr(ways.advice, "numactl"));
    pc_machine_free(m);
    m = recorded("iommu"); /* not AMD's: through the host, unless it is told otherwise */
    assert_way(m, 0, 1, PC_WAY_HOST, 31.5, "no host bridge (CPU) is crossed");
    assert_non_null(strstr(pc_machine_ways(m).advice, "groups of type DMA-FQ): iommu=pt"));
    assert_non_null(strstr(pc_machine_ways(m).advice, "NCCL_P2P_LEVEL=SYS"));
    pc_machine_free(m);
}

static void nccl_goes_directly_below_host_bridges(void **state)
{
    (void)state;
    static const struct {
        const char *second, *lines;
        pc_way_kind kind;
        const char *why;
    } cases[] = {
        {SWITCH_B, INTEL, PC_WAY_P2P, "where no host bridge (CPU) is crossed"},
        {SWITCH_B, AMD, PC_WAY_P2P, "AMD"},
        {BRIDGE_B, INTEL, PC_WAY_HOST, "no host bridge"},
        {BRIDGE_B, "", PC_WAY_HOST, "no host bridge"},
        {BRIDGE_B, AMD, PC_WAY_P2P, "AMD"},
        {SOCKET_B, AMD, PC_WAY_P2P, "AMD"},
        {BRIDGE_B, SET("NCCL_P2P_LEVEL=PHB"), PC_WAY_P2P, "NCCL_P2P_LEVEL is PHB"},
        {SOCKET_B, SET("NCCL_P2P_LEVEL=PHB"), PC_WAY_P2P, "NCCL_P2P_LEVEL is PHB"}, /* one NUMA node */
        {BRIDGE_B, SET("NCCL_P2P_LEVEL=4"), PC_WAY_P2P, "NCCL_P2P_LEVEL is 4"},
        {SOCKET_B, SET("NCCL_P2P_LEVEL=7"), PC_WAY_P2P, "NCCL_P2P_LEVEL is 7"},
        {SWITCH_B, SET("NCCL_SHM_DISABLE=1"), PC_WAY_P2P, "where no host bridge"},
        {SWITCH_B, SET("NCCL_P2P_LEVEL=LOC"), PC_WAY_HOST, "NCCL_P2P_LEVEL is LOC"},
        {SWITCH_B, SET("NCCL_P2P_LEVEL=nonsense"), PC_WAY_P2P, "where no host bridge"},
        {SWITCH_B, SET("NCCL_P2P_DISABLE=1"), PC_WAY_HOST, "NCCL_P2P_DISABLE is set"},
        {SWITCH_B, SET("NCCL_P2P_DISABLE=0"), PC_WAY_P2P, "where no host bridge"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_machine *m = made(SWITCH_A, cases[i].second, GEN4, cases[i].lines);
        assert_way(m, 0, 1, cases[i].kind, 31.5, cases[i].why);
        m = taken_along(m);
        assert_way(m, 0, 1, cases[i].kind, 31.5, cases[i].why);
        pc_machine_free(m);
    }
}

/* Links times what one carries, in each direction. */
static void bandwidths_follow_from_links(void **state)
{
    (void)state;
    static const struct {
        const char *facts;
        double rate;
    } cases[] = {
        {"|pcie_generation_max = 1\n|pcie_width_max = 16\n", 4.0},
        {"|pcie_generation_max = 3\n|pcie_width_max = 16\n", 15.75},
        {"|pcie_generation_max = 4\n|pcie_width_max = 8\n", 15.75},
        {"|pcie_generation_max = 5\n|pcie_width_max = 16\n", 63.0},
        {"|pcie_generation_max = 6\n|pcie_width_max = 16\n", 121.0},
        {"|pcie_generation_max = 9\n|pcie_width_max = 16\n", NAN},
        {"|pcie_width_max = 16\n", NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_machine *m = made(SWITCH_A, SWITCH_B, cases[i].facts, "");
        assert_way(m, 0, 1, PC_WAY_P2P, cases[i].rate, "PCIe");
        pc_machine_free(m);
    }
    static const struct {
        const char *version, *capability;
        double rate;
    } links[] = {{"1", "6.0", 40},       {"2", "7.0", 50},   {"3", "8.0", 50},
                 {"3.1", "8.6", 28.125}, {"5", "10.0", 100}, {"6", "12.0", NAN}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        char facts[256];
        snprintf(facts, sizeof facts,
                 "|compute_capability = %s\n|nvlink_version = %s\n|link 0 gpu 0000:05:00.0\n|link 1 gpu 0000:05:00.0\n",
                 links[i].capability, links[i].version);
        pc_machine *m = made(SWITCH_A, BRIDGE_B, facts, "");
        assert_way(m, 0, 1, PC_WAY_NVLINK, links[i].rate, "2 links of NVLink");
        assert_string_equal(pc_machine_ways(m).nvls, "not available: it takes NVSwitches");
        pc_machine_free(m);
    }
}

static void multicast_has_conditions(void **state)
{
    (void)state;
    static const struct {
        const char *facts, *lines, *words;
    } cases[] = {
        {"|compute_capability = 9.0\n|fabric_state = completed\n", "", "available: "},
        {"|compute_capability = 8.0\n", "", "not available: it takes GPUs of compute capability 9.0"},
        {"|compute_capability = 10.0\n|fabric_state = in progress\n", "", "not available: the fabric manager"},
        {"|compute_capability = 9.0\n", SET("NCCL_NVLS_ENABLE=0"), "off: NCCL_NVLS_ENABLE=0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char facts[256];
        snprintf(facts, sizeof facts, "%s|nvlink_version = 4\n|link 0 switch 0000:09:00.0\n", cases[i].facts);
        pc_machine *m = made(SWITCH_A, BRIDGE_B, facts, cases[i].lines);
        const pc_ways ways = pc_machine_ways(m);
        if (strncmp(ways.nvls, cases[i].words, strlen(cases[i].words)) != 0)
            fail_msg("want \"%s\", got \"%s\"", cases[i].words, ways.nvls);
        assert_int_equal(strstr(ways.advice, "NCCL_NVLS_ENABLE") != NULL, cases[i].lines[0] != 0);
        pc_machine_free(m);
    }
}

static void networks_are_named(void **state)
{
    (void)state;
    pc_machine *by_network = made(SWITCH_A, BRIDGE_B, GEN4, SET("NCCL_SHM_DISABLE=1"));
    assert_way(by_network, 0, 1, PC_WAY_NETWORK, NAN, "NCCL_SHM_DISABLE is set");
    assert_int_equal(pc_machine_ways(by_network).all.kind, PC_WAY_NETWORK);
    assert_non_null(strstr(pc_machine_ways(by_network).advice, "NCCL_SHM_DISABLE is set: unset it"));
    pc_machine_free(by_network);
    pc_machine *m = made(SWITCH_A, SWITCH_B, GEN4,
                         "sys/class/infiniband/mlx5_0/node_guid = 1\nsys/class/infiniband/mlx5_1/node_guid = 2\n");
    assert_string_equal(pc_machine_ways(m).network, "by InfiniBand or RoCE (mlx5_0 mlx5_1)");
    m = taken_along(m);
    assert_string_equal(pc_machine_ways(m).network, "by InfiniBand or RoCE (mlx5_0 mlx5_1)");
    pc_machine_free(m);
}

static void what_is_not_there_is_unknown(void **state)
{
    (void)state;
    pc_machine *m = recorded("healthy-no-gpu");
    assert_int_equal(pc_machine_ways(m).gpus, 0);
    assert_way(m, 0, 1, PC_WAY_UNKNOWN, NAN, "");
    pc_machine_free(m);
    m = recorded("healthy-8xh100");
    assert_way(m, 0, 0, PC_WAY_UNKNOWN, NAN, "");
    assert_way(m, -1, 3, PC_WAY_UNKNOWN, NAN, "");
    assert_way(m, 3, 99, PC_WAY_UNKNOWN, NAN, "");
    pc_machine_free(m);
    assert_int_equal(pc_allocator_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hgx_goes_by_nvlink),        cmocka_unit_test(a_box_without_p2p_goes_through_the_host),
        cmocka_unit_test(a_workstation_across_sockets), cmocka_unit_test(nccl_goes_directly_below_host_bridges),
        cmocka_unit_test(bandwidths_follow_from_links), cmocka_unit_test(multicast_has_conditions),
        cmocka_unit_test(networks_are_named),           cmocka_unit_test(what_is_not_there_is_unknown),
    };
    return cmocka_run_group_tests_name("probe.ways", tests, NULL, NULL);
}

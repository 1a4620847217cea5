/* cuDNN without a GPU: the words where it cannot be used, each in this program again, since the loader reads its path
 * at the start; and, where a real one is installed, its plans for an H200 that is only described to it. */
#ifdef PC_TEST_CUDA

#include "again.h"

#include "base/base.h"
#include "cuda/attention/cudnn.h"
#include "cuda/conv/cudnn.h"

#include <paracord/tensor.h>
#include <stdio.h>

/* What is said with `folder` in front of where libraries are looked for. */
static void says(const char *folder, const char *version, const char *words)
{
    char said[512];
    ask_again(folder, (const char *const[]){"FAKE_CUDNN", version, NULL}, said, sizeof said);
    if (!strstr(said, words))
        fail_msg("version %s in %s: no \"%s\" in \"%s\"", version, folder, words, said);
}

static void another_version(void **state)
{
    (void)state;
    if (!PC__HAVE_CUDNN)
        skip();
    says(PC_TEST_PLUGINS, "8907", "cuDNN is of version 8, this build needs 9: install cuDNN 9");
    says(PC_TEST_PLUGINS, "100200", "cuDNN is of version 10, this build needs 9");
}

static void functions_missing(void **state)
{
    (void)state;
    if (!PC__HAVE_CUDNN)
        skip();
    says(PC_TEST_PLUGINS, "91900", "lacks the function cudnn");
    says(PC_TEST_PLUGINS, "0", "lacks the function cudnn");
}

static void no_library(void **state)
{
    (void)state;
    char folder[] = "/tmp/paracord-cudnn-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libcudnn_graph.so.9", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("This is no library.\n", file);
    fclose(file);
    says(folder, "", PC__HAVE_CUDNN ? "cuDNN cannot be opened: " : "this build has no cuDNN");
    unlink(path);
    rmdir(folder);
}

#if PC__HAVE_CUDNN && CUDNN_VERSION >= 90800

static const char h200[] =
    "{\"deviceName\":\"NVIDIA H200\",\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,"
    "\"multiProcessorCount\":132,\"warpSize\":32,\"maxGridSize\":[2147483647,65535,65535],"
    "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,"
    "\"totalGlobalMem\":150000000000}";

/* False where no real cuDNN is installed that takes the description. */
static bool describe(pc__cudnn_target *target)
{
    *target = (pc__cudnn_target){0};
    if (pc__cudnn_missing()) {
        print_message("skipped: %s\n", pc__cudnn_missing());
        return false;
    }
    return pc__cudnn.GetVersion() >= 90800 &&
           pc__cudnn.BackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &target->properties) ==
               CUDNN_STATUS_SUCCESS &&
           pc__cudnn.BackendSetAttribute(target->properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                         sizeof h200, h200) == CUDNN_STATUS_SUCCESS &&
           pc__cudnn.BackendFinalize(target->properties) == CUDNN_STATUS_SUCCESS;
}

static pc__conv_shape shape(int direction, pc_dtype dtype, bool tf32, int c, int o, int kernel, int stride)
{
    pc__conv_shape s;
    memset(&s, 0, sizeof s);
    s.n = 32, s.h = s.w = 56, s.c = c, s.o = o, s.kh = s.kw = kernel, s.sh = s.sw = stride, s.ph = s.pw = kernel / 2;
    s.oh = s.ow = (56 + 2 * (kernel / 2) - kernel) / stride + 1;
    s.direction = direction, s.dtype = dtype, s.tf32 = tf32;
    return s;
}

/* The engine behind a plan gives the same bits each time, float32 where that was asked for, and matrix units multiply
 * 16 bits. */
static void is_exact(const pc__cudnn_plan *plan, bool units, bool halves)
{
    bool has_units = false;
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t one, count = 0;
    assert_int_equal(pc__cudnn.BackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine), 0);
    assert_int_equal(pc__cudnn.BackendGetAttribute(plan->config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine),
                     0);
    assert_int_equal(pc__cudnn.BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes),
                     0);
    for (int64_t i = 0; i < count; i++) {
        assert_int_not_equal(notes[i], CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
        assert_int_not_equal(notes[i], CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
        assert_int_not_equal(notes[i], CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
        if (!units)
            assert_int_not_equal(notes[i], CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
        has_units |= notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    }
    assert_true(has_units || !halves);
    (void)pc__cudnn.BackendDestroyDescriptor(engine);
}

/* There are plans, and asked `twice` they are the same, in the same order. */
static void planned(const pc__cudnn_target *target, pc__conv_shape s, bool twice)
{
    pc__cudnn_plan plans[PC__CONV_WAYS], again[PC__CONV_WAYS];
    char words[512] = "";
    const int count = pc__cudnn_plans(target, &s, plans, PC__CONV_WAYS);
    if (count == 0) {
        pc__cudnn_words(words, sizeof words);
        fail_msg("no plan for direction %d, dtype %d, tf32 %d, bias %d, relu %d, %d -> %d, %d x %d, stride %d: %s",
                 s.direction, s.dtype, s.tf32, s.bias, s.relu, s.c, s.o, s.kh, s.kw, s.sh, words);
    }
    for (int i = 0; i < count; i++) {
        assert_true(plans[i].workspace >= 0 && plans[i].workspace <= 256 << 20);
        is_exact(&plans[i], s.dtype != PC_F32 || s.tf32, s.dtype != PC_F32);
        assert_true(!plans[i].bare || (s.direction == PC__CONV_FORWARD && (s.bias || s.relu)));
    }
    if (s.dtype != PC_F32 && s.bias) { /* one alone rounds once */
        assert_int_equal(pc__cudnn_plans(target, &s, again, 1), 1);
        assert_false(again[0].bare);
        pc__cudnn_plan_free(&again[0]);
    }
    if (twice)
        assert_int_equal(pc__cudnn_plans(target, &s, again, PC__CONV_WAYS), count);
    for (int i = 0; i < count; i++) {
        assert_true(!twice || plans[i].workspace == again[i].workspace);
        pc__cudnn_plan_free(&plans[i]);
        if (twice)
            pc__cudnn_plan_free(&again[i]);
    }
}

static void plans_for_a_described_gpu(void **state)
{
    (void)state;
    static const struct {
        pc_dtype dtype;
        bool tf32;
    } kinds[] = {{PC_F32, false}, {PC_F32, true}, {PC_F16, false}, {PC_BF16, false}};
    static const int sizes[][4] = {{128, 128, 3, 1}, {64, 256, 1, 1}, {64, 128, 3, 2}};
    pc__cudnn_target target;
    if (!describe(&target))
        skip();
    for (int kind = 0; kind < PC__COUNT(kinds); kind++)
        for (int i = 0; i < PC__COUNT(sizes); i++)
            for (int direction = 0; direction < PC__CONV_DIRECTIONS; direction++)
                for (int around = 0; around < (i == 0 && direction == PC__CONV_FORWARD ? 4 : 1); around++) {
                    pc__conv_shape s = shape(direction, kinds[kind].dtype, kinds[kind].tf32, sizes[i][0], sizes[i][1],
                                             sizes[i][2], sizes[i][3]);
                    s.bias = around & 1, s.relu = around >> 1;
                    planned(&target, s, i == 0 && around == 0);
                }
    (void)pc__cudnn.BackendDestroyDescriptor(target.properties);
}

/* Taps apart, and groups: shapes that networks have, in the format that is asked for, in every direction. */
static void plans_for_gaps_and_groups(void **state)
{
    (void)state;
    static const struct {
        int c, o, stride, dilation, groups;
    } list[] = {
        {128, 128, 1, 2, 1}, {256, 256, 1, 4, 1}, {256, 256, 1, 1, 32}, {256, 256, 2, 1, 8}, {128, 128, 1, 2, 4}};
    static const struct {
        pc_dtype dtype;
        bool tf32;
    } kinds[] = {{PC_F32, false}, {PC_F32, true}, {PC_F16, false}, {PC_BF16, false}};
    pc__cudnn_target target;
    if (!describe(&target))
        skip();
    for (int kind = 0; kind < PC__COUNT(kinds); kind++)
        for (int i = 0; i < PC__COUNT(list); i++)
            for (int direction = 0; direction < PC__CONV_DIRECTIONS; direction++) {
                pc__conv_shape s =
                    shape(direction, kinds[kind].dtype, kinds[kind].tf32, list[i].c, list[i].o, 3, list[i].stride);
                pc__cudnn_plan plan;
                char words[512] = "";
                s.dh = s.dw = s.ph = s.pw = list[i].dilation;
                s.groups = list[i].groups;
                s.format = s.dtype == PC_F32 && !s.tf32 ? PC__CONV_PLANES : PC__CONV_AS_IS;
                if (pc__cudnn_plans(&target, &s, &plan, 1) != 1) {
                    pc__cudnn_words(words, sizeof words);
                    fail_msg("no plan for case %d, direction %d, dtype %d, tf32 %d: %s", i, direction, s.dtype, s.tf32,
                             words);
                }
                pc__cudnn_plan_free(&plan);
            }
    (void)pc__cudnn.BackendDestroyDescriptor(target.properties);
}

/* For small pictures under many taps there are engines without matrix units alone. */
static void no_slow_engines(void **state)
{
    (void)state;
    pc__cudnn_target target;
    pc__cudnn_plan plans[PC__CONV_WAYS];
    if (!describe(&target))
        skip();
    for (int direction = 0; direction < PC__CONV_DIRECTIONS; direction++) {
        pc__conv_shape s = shape(direction, PC_BF16, false, 88, 176, 7, 1);
        s.n = 92, s.h = s.w = s.oh = s.ow = 8;
        const int count = pc__cudnn_plans(&target, &s, plans, PC__CONV_WAYS);
        for (int i = 0; i < count; i++) {
            is_exact(&plans[i], true, true);
            pc__cudnn_plan_free(&plans[i]);
        }
    }
    (void)pc__cudnn.BackendDestroyDescriptor(target.properties);
}

/* cuDNN checks a graph's shapes and types when it is written; for a plan it wants a driver, too. */
static void graphs_of_attention(void **state)
{
    (void)state;
    pc__cudnn_target target;
    if (!describe(&target))
        skip();
    for (int i = 0; i < 16; i++) {
        pc__attention_shape s;
        memset(&s, 0, sizeof s);
        s.b = 3, s.h = 5, s.l = 77, s.s = i & 1 ? 77 : 133, s.e = 40, s.ev = i & 1 ? 40 : 24;
        s.causal = i >> 1 & 1, s.backward = i >> 2 & 1;
        s.dtype = i & 8 ? PC_F16 : PC_BF16;
        for (int name = PC__ATTENTION_Q; name < PC__ATTENTION_NORMS; name++)
            s.strides[name][0] = 5 * 133 * 40L, s.strides[name][1] = 133 * 40L, s.strides[name][2] = 40;
        pc__cudnn_builder b = {.target = &target};
        (void)pc__attention_graph(&b, &s);
        char words[160];
        pc__cudnn_words(words, sizeof words);
        if (b.failed)
            fail_msg("graph %d: %s", i, words);
        pc__cudnn_destroy(b.made, b.count);
    }
    (void)pc__cudnn.BackendDestroyDescriptor(target.properties);
}

static void nothing_for_what_does_not_exist(void **state)
{
    (void)state;
    pc__cudnn_target target;
    pc__cudnn_plan plans[PC__CONV_WAYS];
    if (!describe(&target))
        skip();
    pc__conv_shape s = shape(PC__CONV_FORWARD, PC_BF16, false, 64, 64, 3, 1);
    s.oh = 7; /* of another convolution */
    assert_int_equal(pc__cudnn_plans(&target, &s, plans, PC__CONV_WAYS), 0);
    s = shape(PC__CONV_FORWARD, PC_BF16, false, 0, 64, 3, 1);
    assert_int_equal(pc__cudnn_plans(&target, &s, plans, PC__CONV_WAYS), 0);
    (void)pc__cudnn.BackendDestroyDescriptor(target.properties);
}

#endif

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "ask"))
        return printf("%s", pc__cudnn_missing() ? pc__cudnn_missing() : "there") < 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_version),
        cmocka_unit_test(functions_missing),
        cmocka_unit_test(no_library),
#if PC__HAVE_CUDNN && CUDNN_VERSION >= 90800
        cmocka_unit_test(plans_for_a_described_gpu),
        cmocka_unit_test(plans_for_gaps_and_groups),
        cmocka_unit_test(no_slow_engines),
        cmocka_unit_test(graphs_of_attention),
        cmocka_unit_test(nothing_for_what_does_not_exist),
#endif
    };
    return cmocka_run_group_tests_name("device.cudnn", tests, NULL, NULL);
}

#else
#include "no_plug_in.h"
#endif

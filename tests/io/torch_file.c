/* Files of torch.save (golden/torch_files.py makes them): what they hold, what is refused, and damaged ones. */
#include "device.h"
#include "../train/faults.h"

#include "io/file.h"

#include <math.h>
#include <paracord/module.h>
#include <paracord/weights.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static const char *golden(const char *name)
{
    static char file[512];
    snprintf(file, sizeof file, "%s/torch/%s", PC_TEST_GOLDEN, name);
    return file;
}

/* Tensor `name` is the numbers i % 7 - less, from number `from` on. */
static void check(const pc_weights *file, const char *name, pc_dtype dtype, pc_shape shape, int from, int less)
{
    PC_SCOPE {
        pc_tensor *t = pc_weights_read(file, name, test_device());
        assert_not_null_ok(t);
        assert_int_equal(pc_tensor_dtype(t), dtype);
        const pc_shape got = pc_tensor_shape(t);
        assert_int_equal(got.ndim, shape.ndim);
        for (int i = 0; i < shape.ndim; i++)
            assert_int_equal(got.dim[i], shape.dim[i]);
        double values[32];
        assert_ok(pc_read(pc_cast(t, PC_F64), values, (size_t)pc_tensor_count(t) * sizeof *values));
        for (int i = 0; i < pc_tensor_count(t); i++) {
            const double want = (from + i) % 7 - less;
            assert_true(values[i] == (dtype == PC_BOOL ? want != 0 : want));
        }
    }
}

static void check_state(const char *name)
{
    static const struct {
        const char *name;
        pc_dtype dtype;
        int less;
    } types[] = {{"of.float32", PC_F32, 2},   {"of.float64", PC_F64, 2}, {"of.float16", PC_F16, 2},
                 {"of.bfloat16", PC_BF16, 2}, {"of.int64", PC_I64, 2},   {"of.int32", PC_I32, 2},
                 {"of.int16", PC_I32, 2},     {"of.int8", PC_I32, 2},    {"of.uint8", PC_U8, 0},
                 {"of.bool", PC_BOOL, 0}};
    pc_weights *file = pc_weights_open(golden(name));
    assert_not_null_ok(file);
    assert_int_equal(pc_weights_count(file), 16);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        check(file, types[i].name, types[i].dtype, PC_SHAPE(2, 3), 0, types[i].less);
    check(file, "rows.all", PC_F32, PC_SHAPE(4, 5), 0, 2);
    check(file, "rows.again", PC_F32, PC_SHAPE(4, 5), 0, 2);
    check(file, "rows.last", PC_F32, PC_SHAPE(2, 5), 10, 2);
    check(file, "parameter", PC_F32, PC_SHAPE(3), 0, 2);
    check(file, "empty", PC_F32, PC_SHAPE(0, 4), 0, 0);
    PC_SCOPE {
        assert_true(pc_item(pc_weights_read(file, "scalar", PC_DEVICE_CPU)) == 5);
    }
    pc_weights_free(file);
}

static void state_dicts_are_read(void **state)
{
    (void)state;
    check_state("new.pth");
    check_state("old.pth");
    check_state("training.pth");
    check_state("protocol4.pth");
    check_state("old4.pth");
    assert_no_leak();
}

/* Dtypes without a storage class of their own are typed bytes. */
static void later_dtypes_are_read(void **state)
{
    (void)state;
    pc_weights *file = pc_weights_open(golden("unsigned.pth"));
    assert_not_null_ok(file);
    assert_int_equal(pc_weights_count(file), 5);
    check(file, "uint16", PC_I32, PC_SHAPE(2, 3), 0, 0);
    check(file, "uint32", PC_I64, PC_SHAPE(2, 3), 0, 0);
    check(file, "last", PC_I64, PC_SHAPE(1, 3), 3, 0);
    static const char *const others[] = {"uint64", "complex64"}, *const types[] = {"U64", "C64"};
    for (int i = 0; i < 2; i++) {
        pc_weights_entry entry;
        assert_ok(pc_weights_find(file, others[i], &entry));
        assert_string_equal(entry.type, types[i]);
        assert_false(entry.readable);
        assert_fails(pc_weights_read(file, others[i], PC_DEVICE_CPU), PC_ERR_UNSUPPORTED, types[i]);
    }
    pc_weights_free(file);
    assert_no_leak();
}

/* Tensors that lie in another order than C's come in that, such as weights that are channels-last. */
static void turned_tensors_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        pc_dtype dtype;
        pc_shape shape;
        int64_t steps[4]; /* from number to number of what was turned */
    } all[] = {{"turned", PC_F32, {2, {5, 4}}, {1, 5}},
               {"last", PC_F32, {4, {2, 3, 4, 5}}, {60, 1, 15, 3}},
               {"one", PC_I32, {3, {4, 1, 5}}, {1, 4, 4}}};
    pc_weights *file = pc_weights_open(golden("turned.pth"));
    assert_not_null_ok(file);
    for (int i = 0; i < 3; i++)
        PC_SCOPE {
            double values[120];
            pc_tensor *t = pc_weights_read(file, all[i].name, test_device());
            assert_not_null_ok(t);
            assert_int_equal(pc_tensor_dtype(t), all[i].dtype);
            const int64_t n = pc_tensor_count(t);
            assert_ok(pc_read(pc_cast(t, PC_F64), values, (size_t)n * sizeof *values));
            for (int64_t at = 0; at < n; at++) {
                int64_t number = 0, left = at;
                for (int k = all[i].shape.ndim - 1; k >= 0; left /= all[i].shape.dim[k--]) {
                    assert_int_equal(pc_tensor_size(t, k), all[i].shape.dim[k]);
                    number += left % all[i].shape.dim[k] * all[i].steps[k];
                }
                assert_true(values[at] == (double)(number % 7 - 2));
            }
        }
    PC_SCOPE {
        assert_int_equal(pc_tensor_count(pc_weights_read(file, "empty", PC_DEVICE_CPU)), 0);
    }
    pc_weights_free(file);
    assert_no_leak();
}

/* A value is number first + i * step[0] + k * step[1] of what the piece is of. */
static void pieces_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        pc_dtype dtype;
        pc_shape shape;
        int first, step[2];
    } all[] = {{"every.second", PC_F32, {1, {4}}, 0, {2, 0}}, {"columns", PC_F32, {2, {3, 2}}, 7, {6, 1}},
               {"expanded", PC_I64, {2, {3, 4}}, 0, {1, 0}},  {"wider", PC_I32, {2, {3, 2}}, 1, {2, 12}},
               {"nothing", PC_F32, {2, {4, 0}}, 0, {0, 0}},   {"sound", PC_F32, {1, {3}}, 0, {1, 0}}};
    pc_weights *file = pc_weights_open(golden("pieces.pth"));
    assert_not_null_ok(file);
    assert_int_equal(pc_weights_count(file), PC__COUNT(all));
    for (int n = 0; n < PC__COUNT(all); n++)
        PC_SCOPE {
            double values[12];
            const int rows = (int)all[n].shape.dim[0], columns = all[n].shape.ndim > 1 ? (int)all[n].shape.dim[1] : 1;
            pc_tensor *t = pc_weights_read(file, all[n].name, test_device());
            assert_not_null_ok(t);
            assert_int_equal(pc_tensor_dtype(t), all[n].dtype);
            assert_int_equal(pc_tensor_count(t), rows * columns);
            assert_true(pc_tensor_is_contiguous(t));
            if (rows * columns > 0)
                assert_ok(pc_read(pc_cast(t, PC_F64), values, (size_t)(rows * columns) * sizeof *values));
            for (int i = 0; i < rows * columns; i++) {
                const int number = all[n].first + i / columns * all[n].step[0] + i % columns * all[n].step[1];
                assert_true(values[i] == number % 7 - 2);
            }
        }
    pc_weights_free(file);
    assert_no_leak();
}

/* Where there are no numbers, it does not matter where they would begin. */
static void one_behind_its_storage(void **state)
{
    (void)state;
    pc_weights *file = pc_weights_open(golden("empty.pth"));
    assert_not_null_ok(file);
    check(file, "empty", PC_F32, PC_SHAPE(0), 0, 0);
    check(file, "sound", PC_F32, PC_SHAPE(3), 0, 2);
    pc_weights_free(file);
    assert_no_leak();
}

static pc_tensor *pass(void *context, pc_tensor *x)
{
    (void)context;
    return x;
}

/* What cannot be read leaves the rest of its file as it is. */
static void one_that_is_to_be_negated(void **state)
{
    (void)state;
    pc_weights_entry entry;
    pc_weights *file = pc_weights_open(golden("negated.pth"));
    assert_not_null_ok(file);
    assert_ok(pc_weights_find(file, "negated", &entry));
    assert_false(entry.readable);
    assert_fails(pc_weights_read(file, "negated", PC_DEVICE_CPU), PC_ERR_UNSUPPORTED, "\"negated\" is to be negated");
    check(file, "sound", PC_F32, PC_SHAPE(3), 0, 2);
    pc_weights_free(file);
    pc_module *net = pc_function_module(pass, NULL);
    pc_tensor *four = pc_zeros(PC_SHAPE(4), PC_F32, PC_DEVICE_CPU),
              *three = pc_zeros(PC_SHAPE(3), PC_F32, PC_DEVICE_CPU);
    assert_ok(pc_module_add_parameter(net, "negated", four));
    assert_ok(pc_module_add_parameter(net, "sound", three));
    pc_tensor_free(four);
    pc_tensor_free(three);
    assert_fails(pc_weights_load(net, golden("negated.pth"), (pc_weights_options){0}), PC_ERR_UNSUPPORTED,
                 "in Python .resolve_neg() does that");
    assert_ok(pc_weights_load(net, golden("negated.pth"), (pc_weights_options){.leave = "negated"}));
    pc_module_free(net);
    assert_no_leak();
}

/* Nothing is left out without a word. */
static void dictionaries_in_dictionaries(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int n;
    } all[] = {{"generator.0.bias", 2},  {"generator.0.weight", 6}, {"list.0", 3}, {"list.2.0", 2}, {"other.", 1},
               {"other.body.0.bias", 2}, {"other.body.0.weight", 6}};
    pc_weights *file = pc_weights_open(golden("nested.pth"));
    assert_not_null_ok(file);
    assert_int_equal(pc_weights_count(file), 9);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check(file, all[i].name, PC_F32, all[i].n == 6 ? PC_SHAPE(2, 3) : PC_SHAPE(all[i].n), 0, 2);
    check(file, "optimizer.state.0.exp_avg", PC_F32, PC_SHAPE(2, 3), 0, 2);
    pc_weights_free(file);
    pc_module *net = on_device(pc_sequential(pc_linear(3, 2)));
    assert_ok(pc_weights_load(net, golden("settings.pth"), (pc_weights_options){0}));
    assert_ok(pc_weights_load(net, golden("nested.pth"), (pc_weights_options){.prefix = "generator."}));
    assert_ok(pc_weights_load(net, golden("parallel.pth"), (pc_weights_options){.prefix = "module."}));
    assert_fails(pc_weights_load(net, golden("parallel.pth"), (pc_weights_options){0}), PC_ERR_NOT_FOUND,
                 "but \"module.0.weight\"; the prefix \"module.\" chooses that");
    assert_fails(pc_weights_load(net, golden("twice.pth"), (pc_weights_options){0}), PC_ERR_NOT_FOUND,
                 "but \"model.0.weight\" and others that end so; the prefix \"model.\" chooses that");
    pc_module_free(net);
    assert_no_leak();
}

static void what_is_no_weights_is_refused(void **state)
{
    (void)state;
    assert_fails(pc_weights_open(golden("round.pth")), PC_ERR_FORMAT, "contain each other");
    assert_fails(pc_weights_open(golden("keyed.pth")), PC_ERR_FORMAT,
                 "neither text nor a whole number: \"?.0.weight\"");
    assert_fails(pc_weights_open(golden("network.pth")), PC_ERR_UNSUPPORTED, "torch.nn.modules.linear.Linear");
    assert_fails(pc_weights_open(golden("harm.pth")), PC_ERR_UNSUPPORTED, "posix.system");
    assert_fails(pc_weights_open(golden("packed.pth")), PC_ERR_UNSUPPORTED, "is packed");
    assert_int_not_equal(access("/tmp/paracord-harm", F_OK), 0);
    assert_no_leak();
}

static void write_bytes(const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

/* Read all that there is, if it opens. */
static bool opens(void)
{
    pc_weights *file = pc_weights_open(path);
    for (int i = 0; file && i < pc_weights_count(file); i++)
        PC_SCOPE {
            pc_weights_entry entry;
            assert_ok(pc_weights_query(file, i, &entry));
            if (entry.readable)
                assert_not_null_ok(pc_weights_read(file, entry.name, PC_DEVICE_CPU));
        }
    const bool fine = file != NULL;
    pc_weights_free(file);
    pc_error_clear();
    return fine;
}

/* Cut anywhere, or with any byte changed, a file is an error or is read; some changes nobody sees. */
static void damaged(const char *name)
{
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__file_read(golden(name), &bytes, &n));
    for (size_t i = 0; i < n; i += 1 + n / 400) {
        write_bytes(bytes, i);
        assert_false(opens());
    }
    for (size_t i = 0; i < n; i++) {
        const uint8_t was = bytes[i], others[] = {(uint8_t)(was ^ 1), (uint8_t)~was};
        for (int k = 0; k < 2; k++) {
            bytes[i] = others[k];
            write_bytes(bytes, n);
            (void)opens();
        }
        bytes[i] = was;
    }
    pc__free(bytes);
}

static void damaged_files_are_errors(void **state)
{
    (void)state;
    damaged("new.pth");
    damaged("old.pth");
    damaged("old4.pth");
    damaged("unsigned.pth");
    damaged("turned.pth");
    damaged("pieces.pth");
    assert_no_leak();
}

static void write_storages(int keys)
{
    enum { VALUES = 1 << 20 };
    static const uint8_t front[] = "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.K\1.K\1.";
    static const char kept[] = "(U\7storagectorch\nFloatStorage\nU\1kU\3cpuK\1tQ}.]";
    uint8_t *file = malloc(VALUES + (size_t)keys * 12 + 256), *at = file;
    assert_non_null(file);
    memcpy(at, front, sizeof front - 1), at += sizeof front - 1;
    memset(at, 'N', VALUES), at += VALUES;
    memcpy(at, kept, sizeof kept - 1), at += sizeof kept - 1;
    for (int i = 0; i < keys; i++, at += 4)
        memcpy(at, "U\1ka", 4);
    *at++ = '.';
    memset(at, 0, (size_t)keys * 8), at += (size_t)keys * 8;
    write_bytes(file, (size_t)(at - file));
    free(file);
}

/* Each of many storages is found without a look at each of many values. */
static void many_storages_of_many_values(void **state)
{
    (void)state;
    write_storages(100000);
    assert_fails(pc_weights_open(path), PC_ERR_FORMAT, "no tensors by name");
    write_storages((1 << 20) + 1);
    assert_fails(pc_weights_open(path), PC_ERR_UNSUPPORTED, "has 1048577 storages, and 1048576 are the most");
    assert_no_leak();
}

static void pickles_that_make_no_sense(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *words;
    } wrong[] = {
#define PICKLE(text, words) {text, sizeof text - 1, words}
        PICKLE("u.", "makes no sense"),
        PICKLE("(u.", "makes no sense"),
        PICKLE("}(K\1u.", "makes no sense"),
        PICKLE("R.", "makes no sense"),
        PICKLE("}R.", "makes no sense"),
        PICKLE("K\1K\1R.", "makes no sense"),
        PICKLE("h\7.", "makes no sense"),
        PICKLE("]r\0\0@\0.", "makes no sense"), /* a place in the memo beyond all that there can be */
        PICKLE("(q\0.", "makes no sense"),
        PICKLE("X\377\377\377\377.", "makes no sense"),
        PICKLE("\x87.", "makes no sense"),
        PICKLE("(.", "makes no sense"),
        PICKLE("a.", "makes no sense"),
        PICKLE("b.", "makes no sense"),
        PICKLE("\x80\6.", "makes no sense"),
        PICKLE("\x95\1.", "makes no sense"),
        PICKLE("\x94.", "makes no sense"),
        PICKLE("\x93.", "makes no sense"),
        PICKLE("\x8c\1aK\1\x93.", "makes no sense"),
        PICKLE("\x8c\2aa", "makes no sense"),
        PICKLE("\x8d\1\0\0\0\0\0\0\x80"
               "a.",
               "makes no sense"),
        PICKLE("\x8c\2os\x8c\6system\x93.", "os.system"),
        PICKLE("K\1.", "no tensors by name"),
        PICKLE("}.", "no tensors by name"),
        PICKLE("cos\nsystem\n.", "os.system"),
        PICKLE("i.", "opcode 0x69"),
        PICKLE("\x81.", "opcode 0x81"),
        PICKLE("ctorch\nFloatStorage", "makes no sense"),
        PICKLE("}X\1\0\0\0actorch._utils\n_rebuild_tensor_v2\n)Rs.", "does not say what the tensor \"a\" is"),
        PICKLE("}X\1\0\0\0actorch._utils\n_rebuild_tensor_v3\n((U\7storagectorch."
               "storage\nUntypedStorage\nU\1kU\3cpuK\0tQK\0))"
               "\x89}K\1tRs.",
               "does not say what the tensor \"a\" is"),
        PICKLE("}X\1\0\0\0actorch._utils\n_rebuild_tensor_v2\n((U\7storagectorch\nFloatStorage\nU\1kU\3cpuK\1"
               "(U\1vK\0K\1ttQK\0(K\1t(K\1t\x89}tRs.",
               "does not say what the tensor \"a\" is"), /* a part of the storage of another name */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint8_t file[256];
        static const uint8_t front[] = "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.K\1.K\1.";
        memcpy(file, front, sizeof front - 1);
        memcpy(file + sizeof front - 1, wrong[i].bytes, wrong[i].n);
        memcpy(file + sizeof front - 1 + wrong[i].n, "].", 2);
        write_bytes(file, sizeof front + 1 + wrong[i].n);
        pc_weights *opened = pc_weights_open(path);
        if (opened || !strstr(pc_error_last()->message, wrong[i].words))
            fail_msg("pickle %zu: %s", i, opened ? "opened" : pc_error_last()->message);
        pc_error_clear();
    }
    assert_no_leak();
}

static bool open_one(void *name)
{
    pc_weights *file = pc_weights_open(golden(name));
    pc_weights_free(file);
    return file != NULL;
}

static void memory_that_runs_out(void **state)
{
    (void)state;
    fail_each("open a file", open_one, "training.pth", false);
    fail_each("open an older one", open_one, "old.pth", false);
    fail_each("open one of many networks", open_one, "nested.pth", false);
}

static int make_path(void **state)
{
    (void)state;
    const bool in_memory = access("/dev/shm", W_OK) == 0; /* thousands of files */
    snprintf(path, sizeof path, "%s/paracord-torch-XXXXXX", in_memory ? "/dev/shm" : "/tmp");
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int drop_path(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_runs_out), /* while nothing else is alive */
        cmocka_unit_test(state_dicts_are_read),
        cmocka_unit_test(later_dtypes_are_read),
        cmocka_unit_test(pieces_are_read),
        cmocka_unit_test(one_behind_its_storage),
        cmocka_unit_test(one_that_is_to_be_negated),
        cmocka_unit_test(turned_tensors_are_read),
        cmocka_unit_test(dictionaries_in_dictionaries),
        cmocka_unit_test(what_is_no_weights_is_refused),
        cmocka_unit_test(pickles_that_make_no_sense),
        cmocka_unit_test(many_storages_of_many_values),
        cmocka_unit_test(damaged_files_are_errors),
    };
    return cmocka_run_group_tests_name("io.torch_file", tests, make_path, drop_path);
}

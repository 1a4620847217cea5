/* .npy files: round trips, headers as NumPy writes them, Fortran order, and files that are wrong. */
#include "device.h"
#include "io/file.h"
#include "io/npy.h"

#include <unistd.h>

/* A file made of a version, a header and data; its length in *n. Static storage. */
static const uint8_t *file(int version, const char *header, const void *data, size_t bytes, size_t *n)
{
    static uint8_t out[1024];
    size_t length = strlen(header), field = version == 1 ? 2 : 4;
    memcpy(out, "\x93NUMPY\0\0", 8);
    out[6] = (uint8_t)version;
    for (size_t i = 0; i < field; i++)
        out[8 + i] = (uint8_t)(length >> 8 * i);
    memcpy(out + 8 + field, header, length);
    memcpy(out + 8 + field + length, data, bytes);
    *n = 8 + field + length + bytes;
    return out;
}

static void every_type_comes_back(void **state)
{
    (void)state;
    static const uint8_t bytes[48] = {1, 0, 1, 1, 0, 0, 0, 63, 7};
    char path[] = "/tmp/paracord-npy-XXXXXX";
    close(mkstemp(path));
    for (int type = 0; type < PC__NPY_TYPE_COUNT; type++)
        for (int rank = 0; rank <= 3; rank++) {
            pc__npy out = {.type = (pc__npy_type)type, .rank = rank, .shape = {1, 2, 3}, .data = (void *)bytes}, in;
            if (type == PC__NPY_BOOL && rank == 3)
                out.shape[2] = 2;
            assert_ok(pc__npy_write(path, &out));
            assert_ok(pc__npy_read(path, &in));
            assert_int_equal(in.type, type);
            assert_int_equal(in.rank, rank);
            assert_memory_equal(in.shape, out.shape, (size_t)rank * sizeof *in.shape);
            assert_memory_equal(in.data, bytes, pc__npy_bytes(&in));
            pc__npy_free(&in);
        }
    unlink(path);
}

static void the_bytes_are_numpys(void **state)
{
    (void)state;
    static const char want[] = "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    char path[] = "/tmp/paracord-npy-XXXXXX";
    close(mkstemp(path));
    float data[] = {1, 2};
    uint8_t *bytes;
    size_t n;
    assert_ok(pc__npy_write(path, &(pc__npy){.type = PC__NPY_F32, .rank = 1, .shape = {2}, .data = data}));
    assert_ok(pc__file_read(path, &bytes, &n));
    assert_int_equal(n, 128 + 8);
    assert_memory_equal(bytes, want, sizeof want - 1);
    for (size_t i = sizeof want - 1; i < 127; i++)
        assert_int_equal(bytes[i], ' ');
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, data, 8);
    pc__free(bytes);
    unlink(path);
}

static void other_headers(void **state)
{
    (void)state;
    static const struct {
        int version;
        const char *header;
        int type, rank;
    } good[] = {
        {1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }      \n", PC__NPY_I32, 2},
        {2, "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n", PC__NPY_I32, 2},
        {3, "{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<i4\"}", PC__NPY_I32, 1},
        {1, "{'descr': '<i4', 'fortran_order': False, 'shape': (6L,)}", PC__NPY_I32, 1},
        {1, "{'descr': '<u1', 'fortran_order': False, 'shape': ()}", PC__NPY_U8, 0},
        {1, "{'descr': '<f8', 'fortran_order': True, 'shape': (0, 3)}", PC__NPY_F64, 2},
    };
    int32_t data[] = {1, 2, 3, 4, 5, 6};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        pc__npy in;
        size_t n;
        const uint8_t *bytes = file(good[i].version, good[i].header, data, sizeof data, &n);
        assert_ok(pc__npy_parse("x.npy", bytes, n, &in));
        assert_int_equal(in.type, good[i].type);
        assert_int_equal(in.rank, good[i].rank);
        assert_memory_equal(in.data, data, pc__npy_bytes(&in));
        pc__npy_free(&in);
    }
}

static void fortran_order_is_transposed(void **state)
{
    (void)state;
    uint8_t data[24];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                data[i + 2 * j + 6 * k] = (uint8_t)(12 * i + 4 * j + k);
    pc__npy in;
    size_t n;
    const uint8_t *bytes =
        file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}", data, sizeof data, &n);
    assert_ok(pc__npy_parse("x.npy", bytes, n, &in));
    for (int i = 0; i < 24; i++)
        assert_int_equal(((uint8_t *)in.data)[i], i);
    pc__npy_free(&in);
}

static void odd_booleans_become_true(void **state)
{
    (void)state;
    pc__npy in;
    size_t n;
    const uint8_t *bytes = file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\2\377", 3, &n);
    assert_ok(pc__npy_parse("x.npy", bytes, n, &in));
    assert_memory_equal(in.data, "\0\1\1", 3);
    pc__npy_free(&in);
}

static void wrong_files(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        pc_status status;
        const char *words;
    } wrong[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", PC_ERR_UNSUPPORTED, "type '>f4' is not supported"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", PC_ERR_UNSUPPORTED, "type '<c8'"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", PC_ERR_UNSUPPORTED, "type '|O'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", PC_ERR_UNSUPPORTED, "records"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", PC_ERR_UNSUPPORTED, "more than 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,)}", PC_ERR_FORMAT, "truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", PC_ERR_FORMAT, "truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", PC_ERR_FORMAT, "absurd"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", PC_ERR_FORMAT, "cannot be understood"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", PC_ERR_FORMAT, "cannot be understood"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", PC_ERR_FORMAT, "cannot be understood"},
        {"{'descr': '<f4', 'shape': (2,)}", PC_ERR_FORMAT, "cannot be understood"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", PC_ERR_FORMAT,
         "cannot be understood"},
        {"{'descr': '<f4', 'other': 1}", PC_ERR_FORMAT, "cannot be understood"},
        {"{'descr': '<f4", PC_ERR_FORMAT, "not"},
        {"", PC_ERR_FORMAT, "cannot be understood"},
    };
    float data[6] = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pc__npy in;
        size_t n;
        const uint8_t *bytes = file(1, wrong[i].header, data, sizeof data, &n);
        if (strcmp(wrong[i].words, "not") == 0)
            assert_int_not_equal(pc__npy_parse("x.npy", bytes, n, &in), PC_OK);
        else
            assert_fails(pc__npy_parse("x.npy", bytes, n, &in), wrong[i].status, wrong[i].words);
        pc_error_clear();
        assert_null(in.data);
    }
}

static void cut_and_flipped_files(void **state)
{
    (void)state;
    float data[6] = {1, 2, 3, 4, 5, 6};
    size_t n;
    const uint8_t *bytes =
        file(2, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", data, sizeof data, &n);
    int64_t before = pc_allocator_live();
    for (size_t cut = 0; cut <= n; cut++) {
        pc__npy in;
        uint8_t *copy = malloc(cut ? cut : 1); /* exact, so that the sanitizer sees one byte too far */
        memcpy(copy, bytes, cut);
        assert_int_equal(pc__npy_parse("x.npy", copy, cut, &in) == PC_OK, cut == n);
        pc__npy_free(&in);
        pc_error_clear();
        free(copy);
    }
    for (size_t i = 0; i < 256 * n; i++) {
        pc__npy in;
        uint8_t *copy = malloc(n);
        memcpy(copy, bytes, n);
        copy[i / 256] = (uint8_t)i;
        (void)!pc__npy_parse("x.npy", copy, n, &in);
        pc__npy_free(&in);
        pc_error_clear();
        free(copy);
    }
    assert_int_equal(pc_allocator_live(), before);
}

static void files_that_are_not_there(void **state)
{
    (void)state;
    pc__npy in;
    assert_fails(pc__npy_read("/nowhere/x.npy", &in), PC_ERR_FILE, "/nowhere/x.npy");
    assert_fails(pc__npy_parse("x.npz", "PK\3\4hello", 9, &in), PC_ERR_FORMAT,
                 "x.npz is an archive, as .npz files are");
    assert_fails(pc__npy_parse("x.npy", "hello", 5, &in), PC_ERR_FORMAT, "x.npy is not a .npy file");
    assert_fails(pc__npy_parse("x.npy", "\x93NUMPY\7\0......", 14, &in), PC_ERR_UNSUPPORTED, "version 7");
    assert_fails(pc__npy_write("/nowhere/x.npy", &(pc__npy){.rank = 9}), PC_ERR_ARGUMENT, "rank");
}

/* Tensors in any order of memory, to a file and back onto the device. */
static void tensors(void **state)
{
    (void)state;
    char path[] = "/tmp/paracord-npy-XXXXXX";
    close(mkstemp(path));
    PC_SCOPE {
        pc_tensor *t = pc_reshape(pc_arange(0, 6, 1, PC_F32, test_device()), PC_SHAPE(2, 3));
        assert_ok(pc_npy_save(pc_transpose(t, 0, 1), path));
        pc_tensor *back = pc_npy_load(path, test_device());
        const float want[] = {0, 3, 1, 4, 2, 5};
        float got[6];
        assert_ok(pc_read(back, got, sizeof got));
        assert_memory_equal(got, want, sizeof got);
        assert_int_equal(pc_tensor_size(back, 0), 3);
        assert_true(pc_device_equal(pc_tensor_device(back), test_device()));
    }
    unlink(path);
    assert_no_leak();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(the_bytes_are_numpys),
        cmocka_unit_test(other_headers),
        cmocka_unit_test(fortran_order_is_transposed),
        cmocka_unit_test(odd_booleans_become_true),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(cut_and_flipped_files),
        cmocka_unit_test(files_that_are_not_there),
        cmocka_unit_test(tensors),
    };
    return cmocka_run_group_tests_name("io.npy", tests, NULL, NULL);
}

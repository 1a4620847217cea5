/* Loaders of .npy files: read as batches need them, whatever order and type they have; and files that are not whole. */
#include "device.h"

#include <math.h>
#include <paracord.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 11 };

static char x_path[64], y_path[64];

static int make(void **state)
{
    (void)state;
    snprintf(x_path, sizeof x_path, "/tmp/paracord-npy-%d-x.npy", (int)getpid());
    snprintf(y_path, sizeof y_path, "/tmp/paracord-npy-%d-y.npy", (int)getpid());
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    (void)!unlink(y_path);
    return unlink(x_path);
}

static void save(pc_dtype x, pc_dtype y)
{
    PC_SCOPE {
        pc_tensor *t = pc_reshape(pc_arange(0, ROWS * 6, 1, PC_F32, PC_DEVICE_CPU), PC_SHAPE(ROWS, 2, 3));
        assert_ok(pc_npy_save(pc_cast(t, x), x_path));
        assert_ok(pc_npy_save(pc_cast(pc_arange(0, ROWS, 1, PC_I64, PC_DEVICE_CPU), y), y_path));
    }
}

static void check_rows(pc_loader *loader, pc_dtype x, pc_dtype y)
{
    pc_batch b;
    int64_t seen = 0;
    assert_not_null_ok(loader);
    while (pc_loader_next(loader, &b))
        PC_SCOPE {
            float values[ROWS * 6], labels[ROWS];
            assert_int_equal(pc_tensor_dtype(b.x), x);
            assert_int_equal(pc_tensor_dtype(b.y), y);
            assert_int_equal(pc_tensor_ndim(b.x), 3);
            assert_ok(pc_read(pc_cast(b.x, PC_F32), values, (size_t)b.n * 6 * sizeof *values));
            assert_ok(pc_read(pc_cast(b.y, PC_F32), labels, (size_t)b.n * sizeof *labels));
            for (int64_t i = 0; i < b.n; i++) {
                assert_true(labels[i] == (y == PC_BOOL ? (float)(b.sample[i] != 0) : (float)b.sample[i]));
                for (int k = 0; k < 6; k++)
                    assert_true(values[i * 6 + k] == (float)(b.sample[i] * 6 + k));
            }
            seen += b.n;
        }
    assert_ok(pc_error_last()->status);
    assert_int_equal(seen, ROWS);
    pc_loader_free(loader);
}

static void every_type_is_read(void **state)
{
    (void)state;
    static const pc_dtype types[] = {PC_F32, PC_F64, PC_F16, PC_I32, PC_I64, PC_U8};
    for (int i = 0; i < 6; i++)
        for (int shuffle = 0; shuffle < 2; shuffle++) {
            const pc_dtype y = i == 0 ? PC_BOOL : types[5 - i];
            save(types[i], y);
            check_rows(pc_loader_from_npy(x_path, y_path, .batch = 4, .shuffle = shuffle, .device = test_device()),
                       types[i] == PC_F64 ? PC_F32 : types[i], y == PC_F64 ? PC_F32 : y);
        }
}

static void put(const char *to, const char *header, const void *data, size_t n)
{
    FILE *f = fopen(to, "wb");
    assert_non_null(f);
    const size_t length = strlen(header);
    const unsigned char front[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, 0};
    fwrite(front, 1, 10, f);
    fwrite(header, 1, length, f);
    fwrite(data, 1, n, f);
    assert_int_equal(fclose(f), 0);
}

static void fortran_order_is_turned(void **state)
{
    (void)state;
    float turned[6][ROWS];
    save(PC_F32, PC_I64);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++)
                turned[j * 2 + i][r] = (float)(r * 6 + i * 3 + j);
    put(x_path, "{'descr': '<f4', 'fortran_order': True, 'shape': (11, 2, 3), }\n", turned, sizeof turned);
    check_rows(pc_loader_from_npy(x_path, y_path, .batch = 4, .device = test_device()), PC_F32, PC_I64);
}

/* Infinities and NaN of a float64 file are what they are; a finite number that would become one is told. */
static void float64_beyond_float32_is_refused(void **state)
{
    (void)state;
    double data[ROWS * 6] = {0};
    float got[ROWS * 6];
    pc_batch b;
    data[3] = INFINITY, data[7] = NAN, data[8] = 3.4e38, data[9] = 1e-60;
    for (int fortran = 0; fortran < 2; fortran++) {
        const char *header = fortran ? "{'descr': '<f8', 'fortran_order': True, 'shape': (11, 2, 3), }\n"
                                     : "{'descr': '<f8', 'fortran_order': False, 'shape': (11, 2, 3), }\n";
        const int beyond = fortran ? 4 + ROWS + 2 * 2 * ROWS : 4 * 6 + 5;
        put(x_path, header, data, sizeof data);
        pc_loader *loader = pc_loader_from_npy(x_path, NULL, .batch = ROWS);
        assert_not_null_ok(loader);
        assert_true(pc_loader_next(loader, &b));
        assert_ok(pc_read(b.x, got, sizeof got));
        assert_true(fortran || (isinf(got[3]) && isnan(got[7]) && got[8] == 3.4e38f && got[9] == 0));
        pc_loader_free(loader);
        data[beyond] = -1e39;
        put(x_path, header, data, sizeof data);
        data[beyond] = 0;
        loader = pc_loader_from_npy(x_path, NULL, .batch = 4);
        assert_true(pc_loader_next(loader, &b));
        assert_fails(pc_loader_next(loader, &b), PC_ERR_RANGE, "row 4, number 5: -1e+39 is beyond float32");
        pc_loader_free(loader);
    }
}

static void files_that_are_not_whole_are_refused(void **state)
{
    (void)state;
    const float data[6] = {0};
    save(PC_F32, PC_I64);
    put(x_path, "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }\n", data, sizeof data);
    assert_fails(pc_loader_from_npy(x_path, NULL), PC_ERR_FORMAT, "truncated");
    put(x_path, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 16), }\n", data, sizeof data);
    assert_fails(pc_loader_from_npy(x_path, NULL), PC_ERR_FORMAT, "truncated");
    put(x_path, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", data, sizeof data);
    assert_fails(pc_loader_from_npy(x_path, y_path), PC_ERR_SHAPE, "has 6 rows");
    put(x_path, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", data, sizeof data);
    assert_fails(pc_loader_from_npy(x_path, NULL), PC_ERR_SHAPE, "no rows");
    put(x_path, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }\n", data, sizeof data);
    assert_fails(pc_loader_from_npy(x_path, NULL), PC_ERR_NOT_FOUND, "no samples");
    put(x_path, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", data, sizeof data);
    assert_fails(pc_loader_from_npy(x_path, NULL), PC_ERR_UNSUPPORTED, "'|O'");
    put(x_path, "nonsense", data, sizeof data);
    assert_fails(pc_loader_from_npy(x_path, NULL), PC_ERR_FORMAT, "cannot be understood");
    assert_fails(pc_loader_from_npy("/nowhere.npy", NULL), PC_ERR_FILE, "/nowhere.npy");
}

static void a_file_that_shrinks_is_an_error_of_its_batch(void **state)
{
    (void)state;
    pc_batch b;
    save(PC_F32, PC_I64);
    pc_loader *loader = pc_loader_from_npy(x_path, y_path, .batch = 4, .prefetch = -1);
    assert_not_null_ok(loader);
    assert_int_equal(truncate(x_path, 300), 0); /* row 7 ends there */
    assert_true(pc_loader_next(loader, &b));
    assert_fails(pc_loader_next(loader, &b), PC_ERR_FILE, "became shorter");
    pc_loader_free(loader);
}

static void changes_show_in_the_fingerprint(void **state)
{
    (void)state;
    save(PC_F32, PC_I64);
    pc_loader *loader = pc_loader_from_npy(x_path, y_path);
    const uint64_t before = pc_loader_fingerprint(loader);
    pc_loader_free(loader);
    loader = pc_loader_from_npy(x_path, y_path);
    assert_true(pc_loader_fingerprint(loader) == before);
    pc_loader_free(loader);
    save(PC_F16, PC_I64);
    loader = pc_loader_from_npy(x_path, y_path);
    assert_true(pc_loader_fingerprint(loader) != before);
    pc_loader_free(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(fortran_order_is_turned),
        cmocka_unit_test(float64_beyond_float32_is_refused),
        cmocka_unit_test(files_that_are_not_whole_are_refused),
        cmocka_unit_test(a_file_that_shrinks_is_an_error_of_its_batch),
        cmocka_unit_test(changes_show_in_the_fingerprint),
    };
    return cmocka_run_group_tests(tests, make, tidy);
}

/* CSV files as tensors and loaders: columns by name and number, quotes, missing values, classes, and errors that name the
 * line. */
#include "support.h"

#include <paracord.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static int make(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/paracord-csv-%d.csv", (int)getpid());
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    return unlink(path);
}

static void put_bytes(const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void put(const char *text)
{
    put_bytes(text, strlen(text));
}

#define READ(...) pc_csv_read(path, PC_OPTIONS(pc_csv_options, __VA_ARGS__), &x, &y)

static void assert_values(const pc_tensor *t, int64_t rows, int64_t columns, const float *want)
{
    float got[64];
    assert_non_null(t);
    assert_int_equal(pc_tensor_size(t, 0), rows);
    assert_int_equal(pc_tensor_size(t, 1), columns);
    assert_ok(pc_read(t, got, (size_t)(rows * columns) * sizeof *got));
    for (int i = 0; i < rows * columns; i++)
        assert_close((double)got[i], (double)want[i], 0);
}

static const char houses[] = "age, rooms,price\n10,3,1.5e5\r\n20 ,4,2e5\n\n30,5,2.5e+5";

static void columns_have_names_and_numbers(void **state)
{
    (void)state;
    pc_tensor *x, *y;
    put(houses);
    PC_SCOPE {
        assert_ok(READ(.y = "price"));
        assert_values(x, 3, 2, (const float[]){10, 3, 20, 4, 30, 5});
        assert_values(y, 3, 1, (const float[]){150000, 200000, 250000});
        assert_ok(READ(.x = "rooms", .y = "3, age"));
        assert_values(x, 3, 1, (const float[]){3, 4, 5});
        assert_values(y, 3, 2, (const float[]){150000, 10, 200000, 20, 250000, 30});
        assert_ok(READ(.x = "1-3"));
        assert_values(x, 3, 3, (const float[]){10, 3, 150000, 20, 4, 200000, 30, 5, 250000});
        assert_null(y);
        put("2,1\n7,8\n");
        assert_ok(READ(.y = "1")); /* a name counts before a number */
        assert_values(y, 1, 1, (const float[]){8});
        put("1;2\n3;4");
        assert_ok(READ(.no_header = true, .separator = ';', .y = "2"));
        assert_values(x, 2, 1, (const float[]){1, 3});
    }
}

static void fields_may_be_in_quotes(void **state)
{
    (void)state;
    pc_tensor *x, *y;
    PC_SCOPE {
        put("\xef\xbb\xbf\"a, \"\"b\"\"\",\"c\nd\"\n\"1\",\"2\"\r\n3,4\r\n");
        assert_ok(pc_csv_read(path, (pc_csv_options){0}, &x, NULL));
        assert_values(x, 2, 2, (const float[]){1, 2, 3, 4});
        assert_fails(READ(.y = "e"), PC_ERR_NOT_FOUND, "no column \"e\"; the first is \"a, \"b\"\"");
        put("a,b\n\"1\",\"2\n");
        assert_fails(READ(.y = "b"), PC_ERR_FORMAT, ".csv:2: a quote is not closed");
        put("a,b\n\"1\"x,2\n");
        assert_fails(READ(.y = "b"), PC_ERR_FORMAT, ".csv:2: text behind a closing quote");
    }
}

static void classes_become_labels(void **state)
{
    (void)state;
    pc_tensor *x, *y;
    int64_t got[4];
    PC_SCOPE {
        put("width,kind\n1,rose\n2,\"lily, white\"\n3,rose\n4,iris\n");
        assert_ok(READ(.y = "kind", .classes = true));
        assert_int_equal(pc_tensor_dtype(y), PC_I64);
        assert_int_equal(pc_tensor_ndim(y), 1);
        assert_ok(pc_read(y, got, sizeof got));
        assert_memory_equal(got, ((const int64_t[]){2, 1, 2, 0}), sizeof got);
        static const char *const names[] = {"rose", "iris", "lily, white"};
        assert_ok(READ(.y = "kind", .classes = true, .class_names = names, .class_count = 3));
        assert_ok(pc_read(y, got, sizeof got));
        assert_memory_equal(got, ((const int64_t[]){0, 2, 0, 1}), sizeof got);
        assert_fails(READ(.y = "kind", .classes = true, .class_names = names, .class_count = 2), PC_ERR_NOT_FOUND,
                     ".csv:3: \"lily, white\" is none of the 2 classes");
        assert_fails(READ(.y = "1-2", .classes = true), PC_ERR_ARGUMENT, "2 columns");
        put("d,y\n1,10\n2,9\n3,10\n4,-1\n"); /* numbers by their size */
        assert_ok(READ(.y = "y", .classes = true));
        assert_ok(pc_read(y, got, sizeof got));
        assert_memory_equal(got, ((const int64_t[]){2, 1, 2, 0}), sizeof got);
        put("d,y\n1,20000000000000000000\n2,3000000000000000000\n3,1e300\n4,5\n"); /* of any size */
        assert_ok(READ(.y = "y", .classes = true));
        assert_ok(pc_read(y, got, sizeof got));
        assert_memory_equal(got, ((const int64_t[]){2, 1, 3, 0}), sizeof got);
        put("d,y\n1,10\n2,9\n3,10\n4,-1\n");
    }
    pc_loader *loader =
        pc_loader_from_csv(path, PC_OPTIONS(pc_csv_options, .y = "y", .classes = true), .batch = 3, .shuffle = true);
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_class_count(loader), 3);
    assert_string_equal(pc_loader_class_name(loader, 0), "-1");
    pc_batch b;
    int64_t seen = 0;
    while (pc_loader_next(loader, &b))
        for (int64_t i = 0; i < b.n; i++) {
            const float *x_row = pc_data(b.x);
            const int64_t *label = pc_data(b.y);
            assert_true(x_row[i] == (float)(b.sample[i] + 1));
            assert_int_equal(label[i], ((const int64_t[]){2, 1, 2, 0})[b.sample[i]]);
            seen++;
        }
    assert_int_equal(seen, 4);
    pc_loader_free(loader);
}

static void missing_values_are_dealt_with_as_asked(void **state)
{
    (void)state;
    pc_tensor *x, *y;
    PC_SCOPE {
        put("a,b\n1,2\n,3\nNA,4\n5,?\n6, nan \n7,8\n");
        assert_fails(READ(.y = "b"), PC_ERR_FORMAT, ".csv:3: column \"a\": a value is missing");
        assert_ok(READ(.y = "b", .missing = PC_CSV_MISSING_SKIPS));
        assert_values(x, 2, 1, (const float[]){1, 7});
        assert_ok(pc_csv_read(path, PC_OPTIONS(pc_csv_options, .missing = PC_CSV_MISSING_FILLS, .fill = -1), &x, NULL));
        assert_values(x, 6, 2, (const float[]){1, 2, -1, 3, -1, 4, 5, -1, 6, -1, 7, 8});
        assert_fails(READ(.y = "b", .missing = PC_CSV_MISSING_FILLS), PC_ERR_FORMAT,
                     ".csv:5: column \"b\": \"?\" is missing");
        put("a,b\n,1\n2,\n");
        assert_fails(READ(.y = "b", .missing = PC_CSV_MISSING_SKIPS), PC_ERR_NOT_FOUND,
                     "no rows: a value is missing in each");
    }
    put("a,b\n,1\n2,3\n");
    pc_loader *loader = pc_loader_from_csv(path, PC_OPTIONS(pc_csv_options, .y = "b", .missing = PC_CSV_MISSING_SKIPS));
    assert_not_null_ok(loader);
    assert_int_equal(pc_loader_skipped(loader), 1);
    assert_int_equal(pc_loader_count(loader), 1);
    pc_loader_free(loader);
}

/* Of one column an empty line is a value that is missing, but at the end. */
static void lines_of_one_column(void **state)
{
    (void)state;
    pc_tensor *x, *y;
    PC_SCOPE {
        put("\na\n1\n\r\n2\n\n\n");
        assert_fails(READ(0), PC_ERR_FORMAT, ".csv:4: column \"a\": a value is missing");
        assert_ok(READ(.missing = PC_CSV_MISSING_FILLS, .fill = 7));
        assert_values(x, 3, 1, (const float[]){1, 7, 2});
        assert_ok(READ(.missing = PC_CSV_MISSING_SKIPS));
        assert_values(x, 2, 1, (const float[]){1, 2});
        put("a\n1\n\n\n2");
        assert_ok(READ(.missing = PC_CSV_MISSING_FILLS, .fill = 7));
        assert_values(x, 4, 1, (const float[]){1, 7, 7, 2});
        put("a,b\n1,2\n\n3,4\n");
        assert_ok(READ(0));
        assert_values(x, 2, 2, (const float[]){1, 2, 3, 4});
    }
}

static void blanks_around_classes(void **state)
{
    (void)state;
    static const char *const names[] = {"red", "dark blue"};
    pc_tensor *x, *y;
    PC_SCOPE {
        put("a, kind\n1, red\n2,dark blue \t\n3,\" red \"\n");
        for (int given = 0; given < 2; given++) {
            assert_ok(
                READ(.y = "kind", .classes = true, .class_names = given ? names : NULL, .class_count = given ? 2 : 0));
            int64_t labels[3];
            assert_ok(pc_read(y, labels, sizeof labels));
            assert_int_equal(labels[0], given ? 0 : 1);
            assert_int_equal(labels[1], given ? 1 : 0);
            assert_int_equal(labels[2], labels[0]);
        }
        put("a,kind\n1,  \n");
        assert_fails(READ(.y = "kind", .classes = true), PC_ERR_FORMAT, "is missing");
    }
}

static void what_is_no_table_is_refused(void **state)
{
    (void)state;
    pc_tensor *x, *y;
    static const struct {
        const char *text;
        pc_status status;
        const char *words;
    } wrong[] = {
        {"", PC_ERR_NOT_FOUND, "is empty"},
        {"\n\r\n\n", PC_ERR_NOT_FOUND, "is empty"},
        {"a,b\n", PC_ERR_NOT_FOUND, "has no rows"},
        {"a,b\n1,2\n3\n", PC_ERR_FORMAT, ".csv:3: 1 fields, and the first line has 2"},
        {"a,b\n1,2,\n", PC_ERR_FORMAT, ".csv:2: 3 fields"},
        {"a,b\n1,2\n\n3,four\n", PC_ERR_FORMAT, ".csv:4: column \"b\": \"four\" is no finite number"},
        {"a,b\n0x10,2\n", PC_ERR_FORMAT, "\"0x10\" is no finite number"},
        {"a,b\n1e999,2\n", PC_ERR_FORMAT, "no finite number"},
        {"a,b\ninf,2\n", PC_ERR_FORMAT, "no finite number"},
        {"a,b\n\"1\n1\",2\n", PC_ERR_FORMAT, ".csv:2: column \"a\""},
        {"b\n1\n", PC_ERR_NOT_FOUND, "no columns beside"},
        {"a,b\n1,2\n-3.5e38,2\n", PC_ERR_FORMAT, ".csv:3: column \"a\": \"-3.5e38\" is beyond float32"},
        {"a,b\n1,1e39\n", PC_ERR_FORMAT, "\"1e39\" is beyond float32"},
        {"a,b,c, b \n1,2,3,4\n", PC_ERR_ARGUMENT, "the columns 2 and 4 are both called \"b\"; choose by number"},
    };
    PC_SCOPE {
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            put(wrong[i].text);
            assert_fails(READ(.y = "b"), wrong[i].status, wrong[i].words);
            assert_true(!x && !y);
        }
        put_bytes("a,b\n1\0,2\n", 9);
        assert_fails(READ(.y = "b"), PC_ERR_FORMAT, ".csv:2: a zero byte");
        put(houses);
        assert_fails(READ(.y = "3-9"), PC_ERR_NOT_FOUND, "it has 3");
        put("a,b,b\n1,2,3.4028235e38\n");
        assert_ok(READ(.y = "3"));
        assert_values(y, 1, 1, (const float[]){3.4028235e38f});
        assert_ok(READ(.y = "a"));
        assert_values(x, 1, 2, (const float[]){2, 3.4028235e38f});
        put(houses);
        assert_fails(READ(.y = ","), PC_ERR_NOT_FOUND, "no column \"\"");
        assert_fails(READ(.separator = '"'), PC_ERR_ARGUMENT, "separated by");
        assert_fails(READ(.missing = (pc_csv_missing)9), PC_ERR_ARGUMENT, "9 is no way");
        assert_fails(pc_csv_read("/nowhere.csv", (pc_csv_options){0}, &x, NULL), PC_ERR_FILE, "/nowhere.csv");
        assert_fails(pc_csv_read(path, PC_OPTIONS(pc_csv_options, .y = "age"), &x, NULL), PC_ERR_ARGUMENT, "y is NULL");
    }
}

/* Whatever bytes there are, an answer or an error. */
static void drawn_bytes_do_no_harm(void **state)
{
    (void)state;
    static const char alphabet[] = "01.e-,,\"\"\n\n\r;a \0";
    uint32_t seed = 1;
    for (int round = 0; round < 3000; round++) {
        char text[48];
        size_t n = (size_t)(round % (int)sizeof text);
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            text[i] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
        }
        put_bytes(text, n);
        PC_SCOPE {
            pc_tensor *x, *y;
            (void)!READ(.no_header = round & 1, .y = round & 2 ? "1" : NULL, .classes = round & 2,
                        .missing = (pc_csv_missing)(round % 3));
        }
        pc_error_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_names_and_numbers),
        cmocka_unit_test(fields_may_be_in_quotes),
        cmocka_unit_test(lines_of_one_column),
        cmocka_unit_test(blanks_around_classes),
        cmocka_unit_test(classes_become_labels),
        cmocka_unit_test(missing_values_are_dealt_with_as_asked),
        cmocka_unit_test(what_is_no_table_is_refused),
        cmocka_unit_test(drawn_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, make, tidy);
}

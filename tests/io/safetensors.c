/* safetensors files: what Hugging Face's library writes is read, what is written here comes back, modules by name, and
 * files that are wrong. */
#include "device.h"
#include "io/file.h"

#include <paracord/autograd.h>
#include <paracord/weights.h>

#include <math.h>
#include <unistd.h>

static char path[] = "/tmp/paracord-safetensors-XXXXXX";

static int make_path(void **state)
{
    (void)state;
    close(mkstemp(path));
    return 0;
}

static int drop_path(void **state)
{
    (void)state;
    return unlink(path);
}

/* A file of a header and so many bytes of zeros. */
static void write_file(const char *header, size_t zeros)
{
    pc__text out = {0};
    const uint64_t n = strlen(header);
    pc__text_append(&out, (const char *)&n, 8);
    pc__text_append(&out, header, n);
    for (size_t i = 0; i < zeros; i++)
        pc__text_append(&out, "", 1);
    assert_ok(pc__file_write(path, out.data, out.length));
    pc__text_free(&out);
}

static void has(const pc_weights *file, const char *name, pc_dtype dtype, int ndim, const double *want)
{
    pc_weights_entry entry;
    assert_ok(pc_weights_find(file, name, &entry));
    assert_int_equal(entry.dtype, dtype);
    assert_int_equal(entry.shape.ndim, ndim);
    pc_tensor *t = pc_weights_read(file, name, test_device());
    assert_not_null_ok(t);
    assert_int_equal(pc_tensor_dtype(t), dtype);
    pc_tensor *wide = pc_cast(t, dtype == PC_I64 ? PC_I64 : PC_F64);
    for (int64_t i = 0; i < pc_tensor_count(t); i++) {
        pc_tensor *flat = pc_reshape(wide, PC_SHAPE(-1)), *one = pc_slice(flat, 0, i, i + 1, 1);
        if (dtype == PC_I64)
            assert_true(pc_item_i64(one) == (int64_t)want[i]);
        else
            assert_true(pc_item(one) == want[i]);
        pc_tensor_free(one);
        pc_tensor_free(flat);
    }
    pc_tensor_free(wide);
    pc_tensor_free(t);
}

static void what_others_write_is_read(void **state)
{
    (void)state;
    pc_weights *file = pc_weights_open(PC_TEST_GOLDEN "/types.safetensors");
    assert_not_null_ok(file);
    assert_int_equal(pc_weights_count(file), 17);
    has(file, "truth", PC_BOOL, 1, (double[]){1, 0, 1});
    has(file, "bytes", PC_U8, 2, (double[]){0, 1, 200, 255});
    has(file, "small", PC_I32, 1, (double[]){-128, -1, 127});
    has(file, "short", PC_I32, 1, (double[]){-32768, -1, 32767});
    has(file, "short.positive", PC_I32, 1, (double[]){0, 40000, 65535});
    has(file, "int", PC_I32, 2, (double[]){-0x1p31, 0x1p31 - 1});
    has(file, "int.positive", PC_I64, 1, (double[]){0, 0x1p32 - 1});
    has(file, "long", PC_I64, 0, (double[]){-0x1p62});
    has(file, "half", PC_F16, 1, (double[]){1.5, -65504, 0x1p-24});
    has(file, "brain", PC_BF16, 1, (double[]){1.5, -0x1.c4p127});
    has(file, "float", PC_F32, 3, (double[]){0, .25, .5, .75, 1, 1.25});
    has(file, "double", PC_F64, 1, (double[]){1.0 / 3});
    has(file, "none", PC_F32, 2, NULL);
    has(file, "\u00e4\"\\\n\U0001f600", PC_F32, 1, (double[]){7});
    assert_string_equal(pc_weights_note(file, "format"), "pt");
    assert_string_equal(pc_weights_note(file, "who"), "\u00e4 \"quoted\"");
    assert_null(pc_weights_note(file, "nobody"));
    assert_false(pc_failed());
    pc_weights_entry entry;
    assert_ok(pc_weights_find(file, "eight", &entry));
    assert_false(entry.readable);
    assert_string_equal(entry.type, "F8_E4M3");
    assert_fails(pc_weights_read(file, "eight", test_device()), PC_ERR_UNSUPPORTED, "1 dimensions of F8_E4M3");
    assert_fails(pc_weights_read(file, "long.positive", test_device()), PC_ERR_UNSUPPORTED, "U64");
    assert_fails(pc_weights_read(file, "many", test_device()), PC_ERR_UNSUPPORTED, "9 dimensions");
    assert_fails(pc_weights_read(file, "no", test_device()), PC_ERR_NOT_FOUND, "has no tensor \"no\"");
    assert_fails(pc_weights_query(file, 17, &entry), PC_ERR_RANGE, "has no tensor 17; it has 17");
    pc_weights_free(file);
}

/* Numbers of less than a byte, of which so many stand in a file as fill whole ones. */
static void types_that_are_not_read(void **state)
{
    (void)state;
    static const char header[] = "{\"four\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]},"
                                 "\"six\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[3,6]},"
                                 "\"eight\":{\"dtype\":\"F8_E4M3FNUZ\",\"shape\":[2],\"data_offsets\":[6,8]},"
                                 "\"one\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[8,10]}}";
    write_file(header, 10);
    pc_weights *file = pc_weights_open(path);
    assert_not_null_ok(file);
    assert_int_equal(pc_weights_count(file), 4);
    assert_fails(pc_weights_read(file, "four", test_device()), PC_ERR_UNSUPPORTED, "2 dimensions of F4");
    assert_fails(pc_weights_read(file, "six", test_device()), PC_ERR_UNSUPPORTED, "F6_E2M3");
    assert_fails(pc_weights_read(file, "eight", test_device()), PC_ERR_UNSUPPORTED, "F8_E4M3FNUZ");
    pc_tensor *one = pc_weights_read(file, "one", test_device());
    assert_not_null_ok(one);
    pc_tensor_free(one);
    pc_weights_free(file);
}

static pc_module *small_net(void)
{
    return on_device(pc_sequential(pc_linear(3, 4), pc_batch_norm1d_new(4, (pc_batch_norm_options){0}),
                                   pc_linear(4, 2, .no_bias = true)));
}

static double sum_of(const pc_module *net, const char *name, bool buffer)
{
    pc_tensor *t = buffer ? pc_module_buffer(net, name) : pc_module_parameter(net, name);
    double sum = NAN;
    PC_SCOPE {
        sum = pc_item(pc_sum(pc_detach(t)));
    }
    return sum;
}

static void modules_come_back(void **state)
{
    (void)state;
    pc_seed(1);
    pc_module *one = small_net(), *other = small_net();
    assert_ok(pc_fill(pc_module_buffer(one, "1.num_batches_tracked"), 5));
    assert_ok(pc_fill(pc_module_buffer(one, "1.running_var"), 3));
    assert_ok(pc_weights_save(one, path));
    assert_ok(pc_weights_load(other, path, (pc_weights_options){0}));
    static const char *const names[] = {"0.weight", "0.bias", "1.weight", "2.weight"};
    for (int i = 0; i < 4; i++)
        assert_true(sum_of(one, names[i], false) == sum_of(other, names[i], false));
    assert_int_equal(pc_item_i64(pc_module_buffer(other, "1.num_batches_tracked")), 5);
    assert_true(sum_of(other, "1.running_var", true) == 12);
    pc_module_free(one);
    pc_module_free(other);
}

static void dtypes_are_converted(void **state)
{
    (void)state;
    pc_module *half = small_net(), *whole = small_net();
    assert_ok(pc_module_to(half, test_device(), PC_BF16));
    assert_ok(pc_weights_save(half, path));
    assert_ok(pc_weights_load(whole, path, (pc_weights_options){0}));
    assert_close(sum_of(whole, "0.weight", false), sum_of(half, "0.weight", false), 0.05);
    assert_int_equal(pc_tensor_dtype(pc_module_parameter(whole, "0.weight")), PC_F32);
    pc_module_free(half);
    pc_module_free(whole);
}

static void parts_by_prefix(void **state)
{
    (void)state;
    pc_module *whole = small_net(), *part = on_device(pc_linear(3, 4));
    assert_ok(pc_weights_save(whole, path));
    assert_fails(pc_weights_load(part, path, (pc_weights_options){0}), PC_ERR_NOT_FOUND,
                 "has no tensor \"weight\", which the module has");
    assert_fails(pc_weights_load(part, path, (pc_weights_options){0}), PC_ERR_NOT_FOUND,
                 "but \"0.weight\" and others that end so; the prefix \"0.\" chooses that");
    assert_ok(pc_weights_load(part, path, (pc_weights_options){.prefix = "0."}));
    pc_module *smaller = on_device(pc_linear(3, 4, .no_bias = true));
    assert_fails(pc_weights_load(smaller, path, (pc_weights_options){.prefix = "0."}), PC_ERR_NOT_FOUND,
                 "has a tensor \"0.bias\", which the module does not have; take the network that the file is of, or "
                 "in a program leave it out by .partial");
    pc_module_free(smaller);
    assert_fails(pc_weights_load(part, path, (pc_weights_options){.prefix = "nowhere.", .partial = true}),
                 PC_ERR_NOT_FOUND, "none of the module's tensors with the prefix \"nowhere.\"");
    assert_ok(pc_weights_load(part, path, (pc_weights_options){.prefix = "0.", .partial = true}));
    assert_true(sum_of(part, "weight", false) == sum_of(whole, "0.weight", false));
    const double before = sum_of(part, "weight", false);
    assert_fails(pc_weights_load(part, path, (pc_weights_options){.prefix = "2.", .partial = true}), PC_ERR_SHAPE,
                 "\"2.weight\" has shape [2, 4] in the file and [4, 3] in the module");
    assert_true(sum_of(part, "weight", false) == before);
    pc_module_free(whole);
    pc_module_free(part);
}

static void wrong_kinds_of_numbers(void **state)
{
    (void)state;
    pc_module *part = on_device(pc_linear(1, 2, .no_bias = true));
    write_file("{\"weight\":{\"dtype\":\"I32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}", 8);
    assert_fails(pc_weights_load(part, path, (pc_weights_options){0}), PC_ERR_DTYPE,
                 "\"weight\" is I32 in the file and float32 in the module");
    write_file("{\"weight\":{\"dtype\":\"F8_E5M2\",\"shape\":[2,1],\"data_offsets\":[0,2]}}", 2);
    assert_fails(pc_weights_load(part, path, (pc_weights_options){0}), PC_ERR_UNSUPPORTED, "the type F8_E5M2");
    pc_module_free(part);
}

static void writing(void **state)
{
    (void)state;
    pc_tensor *t = pc_full(PC_SHAPE(2), 3, PC_BF16, test_device()),
              *none = pc_zeros(PC_SHAPE(0), PC_F32, test_device());
    pc_parameter list[] = {{"a", t}, {"b\"", none}, {"a", t}};
    const pc_weights_note_pair notes[] = {{"k\n", "v"}, {NULL, NULL}};
    assert_fails(pc_weights_write(path, list, 3, notes), PC_ERR_ARGUMENT, "two tensors are called \"a\"");
    assert_fails(pc_weights_write(path, list, -1, NULL), PC_ERR_ARGUMENT, "-1 tensors");
    assert_fails(pc_weights_write("/nowhere/x", list, 2, NULL), PC_ERR_FILE, "cannot write /nowhere/x");
    list[2] = (pc_parameter){"x", NULL};
    assert_fails(pc_weights_write(path, list, 3, NULL), PC_ERR_ARGUMENT, "the tensor \"x\" is NULL");
    list[2] = (pc_parameter){"\xff", t};
    assert_fails(pc_weights_write(path, list, 3, NULL), PC_ERR_ARGUMENT, "the name of tensor 2 is not UTF-8");
    const pc_weights_note_pair odd[] = {{"class", "\xc3"}, {NULL, NULL}};
    assert_fails(pc_weights_write(path, list, 2, odd), PC_ERR_ARGUMENT, "the note \"class\" is not UTF-8");
    list[2] = (pc_parameter){"__metadata__", t};
    assert_fails(pc_weights_write(path, list, 3, NULL), PC_ERR_ARGUMENT, "__metadata__");
    assert_ok(pc_weights_write(path, list, 2, notes));
    pc_weights *file = pc_weights_open(path);
    assert_not_null_ok(file);
    has(file, "a", PC_BF16, 1, (double[]){3, 3});
    has(file, "b\"", PC_F32, 1, NULL);
    assert_string_equal(pc_weights_note(file, "k\n"), "v");
    pc_weights_free(file);
    assert_ok(pc_weights_write(path, NULL, 0, NULL));
    file = pc_weights_open(path);
    assert_int_equal(pc_weights_count(file), 0);
    pc_weights_free(file);
    pc_tensor_free(t);
    pc_tensor_free(none);
}

/* As the format's own reader has it. */
static void space_and_more_keys(void **state)
{
    (void)state;
    static const char *const headers[] = {
        " \t\r\n{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"by\":\"me\",\"dtype\":\"F32\",\"shape\":[2],\"by\":{\"x\":[1,-2.5e3,null,true,{}]},"
        "\"data_offsets\":[0,8],\"\":1}}"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        write_file(headers[i], 8);
        pc_weights *file = pc_weights_open(path);
        assert_not_null_ok(file);
        assert_int_equal(pc_weights_count(file), 1);
        has(file, "a", PC_F32, 1, (double[]){0, 0});
        pc_weights_free(file);
    }
}

static void wrong_files(void **state)
{
    (void)state;
#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
    static const struct {
        const char *header;
        size_t bytes;
        const char *words;
    } wrong[] = {
        {"{" A "}", 7, "truncated: the tensor \"a\" ends at byte 8 of 7"},
        {"{" A "}", 9, "behind its tensors, which end at byte 8, there are 1 more"},
        {"{" A "," A "}", 8, "begins at byte 0, and the one in front of it ends at 8"},
        {"{" A ",\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}", 12, "two tensors are called \"a\""},
        {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]}}", 16, "\"b\" begins at byte 12"},
        {"{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "begins at byte 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "bytes 8 to 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "which its shape does not need"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}}", 8, "absurd shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[0,8]}}", 8, "does not need"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8, "cannot be understood"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, "cannot be understood"},
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "of the type \"F31\""},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "does not need"},
        {"{\"a\":{\"dtype\":\"F6_E3M2\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "does not need"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "cannot be understood"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "cannot be understood"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}", 8, "cannot be understood"},
        {"{\"a\\u0000\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "cannot be understood"},
        {"{\"\\ud800\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "cannot be understood"},
        {"{\"\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "cannot be understood"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "cannot be understood"},
        {"{" A "} x", 8, "cannot be understood"},
        {"{" A, 8, "cannot be understood"},
        {"{\"a\"", 8, "cannot be understood"},
        {"[]", 0, "is not a safetensors file"},
        {"        ", 0, "cannot be understood"},
        {"\f{}", 0, "is not a safetensors file"},
        {"{\"a\":{\"x\":nul,\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "cannot be understood"},
        {"{\"a\":{\"x\":1}}", 0, "cannot be understood"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_file(wrong[i].header, wrong[i].bytes);
        assert_fails(pc_weights_open(path), PC_ERR_FORMAT, wrong[i].words);
    }
    assert_ok(pc__file_write(path, "", 0));
    assert_fails(pc_weights_open(path), PC_ERR_FORMAT, "is not a safetensors file");
    assert_ok(pc__file_write(path, "\377\0\0\0\0\0\0\0{}", 10));
    assert_fails(pc_weights_open(path), PC_ERR_FORMAT, "truncated in its header");
    assert_ok(pc__file_write(path, "\377\377\377\377\377\377\377\377{}", 10));
    assert_fails(pc_weights_open(path), PC_ERR_FORMAT, "is not a safetensors file");
    const char *pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n";
    assert_ok(pc__file_write(path, pointer, strlen(pointer)));
    assert_fails(pc_weights_open(path), PC_ERR_FORMAT, "Git LFS pointer");
    assert_fails(pc_weights_open("/nowhere"), PC_ERR_FILE, "/nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_write_is_read),
        cmocka_unit_test(types_that_are_not_read),
        cmocka_unit_test(modules_come_back),
        cmocka_unit_test(dtypes_are_converted),
        cmocka_unit_test(parts_by_prefix),
        cmocka_unit_test(wrong_kinds_of_numbers),
        cmocka_unit_test(writing),
        cmocka_unit_test(space_and_more_keys),
        cmocka_unit_test(wrong_files),
    };
    return cmocka_run_group_tests(tests, make_path, drop_path);
}

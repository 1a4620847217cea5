/* Weights in several files: an index beside them opens them as one, and says what is wrong with it. */
#include "device.h"
#include "io/file.h"
#include "train/faults.h"

#include <paracord/weights.h>

#include <unistd.h>

static char folder[] = "/tmp/paracord-index-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = 1 - turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static const char *const names[] = {"a.safetensors", "b.safetensors", "index.json"};

static int tidy(void **state)
{
    (void)state;
    for (int i = 0; i < PC__COUNT(names); i++)
        unlink(in_folder(names[i]));
    return rmdir(folder);
}

static void write_text(const char *name, const char *text)
{
    assert_ok(pc__file_write(in_folder(name), text, strlen(text)));
}

#define GOOD                                                                                                           \
    "{\"metadata\": {\"total_size\": 32, \"x\": [1]},\n \"weight_map\": {\"w\": \"a.safetensors\", \"more\": "         \
    "\"b.safetensors\", \"steps\": \"a.safetensors\"}}\n"

/* "w" and "steps" in one file, "more" in another, which has a tensor that the index does not name. */
static void write_all(void)
{
    static const float w[] = {1, 2, 3, 4, 5, 6}, more[] = {7, 8};
    static const int64_t steps[] = {1LL << 40};
    PC_SCOPE {
        const pc_parameter first[] = {{"w", pc_from_data(w, PC_SHAPE(2, 3), PC_F32, PC_DEVICE_CPU)},
                                      {"steps", pc_from_data(steps, PC_SHAPE(1), PC_I64, PC_DEVICE_CPU)}},
                           second[] = {{"hidden", pc_from_data(w, PC_SHAPE(6), PC_F32, PC_DEVICE_CPU)},
                                       {"more", pc_from_data(more, PC_SHAPE(2), PC_F32, PC_DEVICE_CPU)}};
        assert_ok(pc_weights_write(in_folder("a.safetensors"), first, 2, NULL));
        assert_ok(pc_weights_write(in_folder("b.safetensors"), second, 2, NULL));
    }
    write_text("index.json", GOOD);
}

static int prepare(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    write_all();
    return 0;
}

static void check(const char *path)
{
    float w[6], more[2];
    int64_t steps;
    pc_weights *file = pc_weights_open(path);
    pc_weights_entry entry;
    assert_not_null_ok(file);
    assert_int_equal(pc_weights_count(file), 3);
    assert_ok(pc_weights_query(file, 0, &entry));
    assert_string_equal(entry.name, "more");
    assert_int_equal(entry.shape.dim[0], 2);
    PC_SCOPE {
        assert_ok(pc_read(pc_weights_read(file, "w", test_device()), w, sizeof w));
        assert_ok(pc_read(pc_weights_read(file, "more", test_device()), more, sizeof more));
        assert_ok(pc_read(pc_weights_read(file, "steps", test_device()), &steps, sizeof steps));
    }
    for (int i = 0; i < 6; i++)
        assert_true(w[i] == (float)(i + 1));
    assert_true(more[0] == 7 && more[1] == 8 && steps == 1LL << 40);
    assert_fails(pc_weights_read(file, "hidden", test_device()), PC_ERR_NOT_FOUND, "no tensor \"hidden\"");
    pc_weights_free(file);
}

static void files_are_as_one(void **state)
{
    (void)state;
    char here[4096];
    check(in_folder("index.json"));
    assert_non_null(getcwd(here, sizeof here)); /* an index in the current folder, without a slash */
    assert_int_equal(chdir(folder), 0);
    check("index.json");
    assert_int_equal(chdir(here), 0);
}

static void modules_of_several_files(void **state)
{
    (void)state;
    pc_seed(1);
    pc_module *net = on_device(pc_sequential(pc_linear(3, 4), pc_linear(4, 2))),
              *other = on_device(pc_sequential(pc_linear(3, 4), pc_linear(4, 2)));
    pc_parameter list[4], again[4];
    assert_int_equal(pc_module_parameter_list(net, list, 4), 4);
    assert_int_equal(pc_module_parameter_list(other, again, 4), 4);
    assert_ok(pc_weights_write(in_folder("a.safetensors"), list, 1, NULL));
    assert_ok(pc_weights_write(in_folder("b.safetensors"), list + 1, 3, NULL));
    write_text("index.json", "{\"weight_map\":{\"0.weight\":\"a.safetensors\",\"0.bias\":\"b.safetensors\","
                             "\"1.weight\":\"b.safetensors\",\"1.bias\":\"b.safetensors\"}}");
    assert_ok(pc_weights_load(other, in_folder("index.json"), (pc_weights_options){0}));
    PC_SCOPE {
        for (int i = 0; i < 4; i++)
            assert_true(pc_item(pc_all(pc_eq(list[i].tensor, again[i].tensor))) == 1);
    }
    pc_module_free(net);
    pc_module_free(other);
}

static void wrong_indexes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pc_status status;
        const char *words;
    } wrong[] = {
        {"{}", PC_ERR_FORMAT, "no index of such files, as it has no \"weight_map\""},
        {"{\"weight_map\": [1]}      ", PC_ERR_FORMAT, "cannot be understood"},
        {"{\"weight_map\": {\"w\": 1}}", PC_ERR_FORMAT, "cannot be understood"},
        {"{\"weight_map\": {\"w\": \"a.safetensors\"}", PC_ERR_FORMAT, "cannot be understood"},
        {"{\"weight_map\": {\"w\": \"a.safetensors\"}} x", PC_ERR_FORMAT, "cannot be understood"},
        {"{\"weight_map\": {\"w\": \"\"}}", PC_ERR_FORMAT, "no name of a file beside it"},
        {"{\"weight_map\": {\"w\": \"../a.safetensors\"}}", PC_ERR_FORMAT, "\"../a.safetensors\" is no name"},
        {"{\"weight_map\": {\"w\": \"/etc/passwd\"}}", PC_ERR_FORMAT, "no name of a file beside it"},
        {"{\"weight_map\": {\"w\": \"..\"}}", PC_ERR_FILE, "/.."},
        {"{\"weight_map\": {\"w\": \"c.safetensors\"}}", PC_ERR_FILE, "c.safetensors"},
        {"{\"weight_map\": {\"w\": \"index.json\"}}", PC_ERR_FORMAT, "is not a safetensors file"},
        {"{\"weight_map\": {\"w\": \"b.safetensors\"}}", PC_ERR_FORMAT, "\"w\" is not in"},
        {"{\"weight_map\": {\"w\": \"a.safetensors\", \"w\": \"a.safetensors\"}}", PC_ERR_FORMAT,
         "names the tensor \"w\" twice"},
    };
    write_all();
    for (int i = 0; i < PC__COUNT(wrong); i++) {
        write_text("index.json", wrong[i].text);
        assert_fails(pc_weights_open(in_folder("index.json")), wrong[i].status, wrong[i].words);
    }
    write_text("index.json", GOOD);
    assert_int_equal(truncate(in_folder("b.safetensors"), 60), 0);
    assert_fails(pc_weights_open(in_folder("index.json")), PC_ERR_FORMAT, "b.safetensors is truncated");
}

static bool open_index(void *unused)
{
    (void)unused;
    pc_weights *file = pc_weights_open(in_folder("index.json"));
    pc_weights_free(file);
    return file != NULL;
}

static void out_of_memory(void **state)
{
    (void)state;
    only_on_the_cpu();
    fail_each("an index", open_index, NULL, false);
    fail_each("an index, all later ones too", open_index, NULL, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_are_as_one), cmocka_unit_test(out_of_memory),
                                       cmocka_unit_test(modules_of_several_files), cmocka_unit_test(wrong_indexes)};
    return cmocka_run_group_tests_name("io.weights_index", tests, prepare, tidy);
}

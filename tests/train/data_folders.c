/* Which folders of a data set are its parts, and which are classes. */
#include "folder.h"

#include "train/data_folders.h"

#include <paracord/memory.h>

static test_path root;

static int prepare(void **state)
{
    (void)state;
    root = folder_in_memory();
    return 0;
}

static int tidy(void **state)
{
    (void)state;
    remove_root(&root);
    assert_int_equal(pc_allocator_live(), 0);
    return 0;
}

/* What is found in the set `name`, "" for nothing. */
static void assert_parts(const char *name, const char *train, const char *test)
{
    const char *const want[] = {train, test};
    const test_path data = joined(root.s, name);
    for (int i = 0; i < 2; i++) {
        char *path;
        assert_ok(i ? pc__find_test_folder(data.s, &path) : pc__find_train_folder(data.s, &path));
        assert_string_equal(path ? path + strlen(data.s) + 1 : "", want[i]);
        pc__free(path);
    }
}

static void put(const char *const *names)
{
    for (; *names; names++)
        put_bytes(root.s, *names, "x", 1);
}

static void parts_by_name(void **state)
{
    (void)state;
    put((const char *[]){"a/train/cat/1.jpg", "a/test/cat/1.jpg", "b/Train/cat/1.jpg", "b/VAL/cat/1.jpg", "c/cat/1.jpg",
                         "c/dog/1.jpg", "d/training_set/cat/1.jpg", "d/test_set/cat/1.jpg", "e/train/cat/1.jpg",
                         "e/other/1.jpg", NULL});
    assert_parts("a", "train", "test");
    assert_parts("b", "Train", "VAL");
    assert_parts("c", "", "");
    assert_parts("d", "training_set", "test_set");
    assert_parts("e", "train", "");
    assert_parts("nowhere", "", "");
}

/* Vehicles have a class of trains; pictures without folders of classes are a mistake that is told, and no classes. */
static void classes_of_such_names(void **state)
{
    (void)state;
    put((const char *[]){"f/train/1.jpg", "f/car/1.jpg", "f/bus/1.jpg", "g/train/cat.1.jpg", "g/test/1.jpg",
                         "h/train/1.jpg", "h/test/1.jpg", "h/.git/1", NULL});
    assert_parts("f", "", "");
    assert_parts("g", "train", "test");
    assert_parts("h", "train", "test");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_by_name),
        cmocka_unit_test(classes_of_such_names),
    };
    return cmocka_run_group_tests_name("train.data_folders", tests, prepare, tidy);
}

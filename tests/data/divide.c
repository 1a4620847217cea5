/* The share for testing: of each class's pictures that can be decoded, never all of them, the same each time. */
#include "pictures.h"

#include "data/gather.h"

#include <paracord/loader.h>

static const char *const two[] = {"cat", "dog"};

static pc_loader_options options_of(pc_split split, double share, heard *h)
{
    return (pc_loader_options){
        .size = 4, .split = split, .validation_share = share, .skipped = h ? hear : NULL, .context = h};
}

static int count_class(const pc_loader *loader, int label)
{
    int n = 0;
    for (int64_t i = 0; i < pc_loader_count(loader); i++)
        n += pc__loader_label(loader, i) == label;
    return n;
}

static const char *path_of(const pc_loader *loader, int64_t i)
{
    pc_picture picture;
    assert_ok(pc_loader_picture(loader, i, &picture));
    return picture.path;
}

/* Every share: the parts are what int(n * share) says, and all files together. */
static void parts_cover_all(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, two, 1, 7);
    put_classes(root.s, two + 1, 1, 12);
    pc_loader *all = pc_loader_new(root.s, options_of(PC_SPLIT_ALL, 0, NULL));
    assert_not_null_ok(all);
    for (double share = 0.15; share < 0.95; share += 0.05) {
        pc_loader *train = pc_loader_new(root.s, options_of(PC_SPLIT_TRAINING, share, NULL));
        pc_loader *rest = pc_loader_new(root.s, options_of(PC_SPLIT_VALIDATION, share, NULL));
        assert_not_null_ok(train);
        assert_not_null_ok(rest);
        const int cats = (int)(7 * share), dogs = (int)(12 * share);
        assert_int_equal(pc_loader_count(rest), cats + dogs);
        assert_int_equal(pc_loader_count(train), 19 - cats - dogs);
        assert_int_equal(count_class(rest, 0), cats);
        for (int i = 0, t = 0, v = 0; i < 19; i++) {
            const bool validation = i < 7 ? i < cats : i - 7 < dogs;
            assert_string_equal(validation ? path_of(rest, v++) : path_of(train, t++), path_of(all, i));
        }
        pc_loader_free(train);
        pc_loader_free(rest);
    }
    pc_loader_free(all);
    remove_root(&root);
}

/* The first picture of five is broken: the share is one of the other four, and both parts tell of it. */
static void broken_files_are_in_no_part(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, two, 2, 5);
    put_bytes(root.s, "cat/a00.jpg", "nothing", 7);
    for (int part = 0; part < 2; part++) {
        heard h = {{0}, 0};
        pc_loader *loader = pc_loader_new(root.s, options_of(part ? PC_SPLIT_VALIDATION : PC_SPLIT_TRAINING, 0.25, &h));
        assert_not_null_ok(loader);
        assert_int_equal(count_class(loader, 0), part ? 1 : 3);
        assert_int_equal(count_class(loader, 1), part ? 1 : 4);
        assert_string_equal(path_of(loader, 0), part ? "cat/a03.png" : "cat/b01.png");
        assert_int_equal(h.count, 1);
        pc_loader_free(loader);
    }
    remove_root(&root);
}

/* Two cats, of which a fifth is none, and one dog that is whole: all of them are for training. */
static void small_classes_stay(void **state)
{
    (void)state;
    test_path root = new_root();
    put_classes(root.s, two, 1, 10);
    put_picture(root.s, "dog/1.jpg", 1);
    put_bytes(root.s, "dog/0.jpg", "nothing", 7);
    pc_loader *train, *test;
    assert_ok(pc__loader_new_parts(root.s, options_of(PC_SPLIT_ALL, 0.2, NULL), options_of(PC_SPLIT_ALL, 0.2, NULL),
                                   &train, &test));
    assert_int_equal(pc_loader_count(test), 2);
    assert_int_equal(count_class(test, 1), 0);
    assert_int_equal(count_class(train, 0), 8);
    assert_int_equal(count_class(train, 1), 1);
    assert_int_equal(pc_loader_class_count(test), 2);
    assert_int_equal(pc_loader_skipped(train) + pc_loader_skipped(test), 1);
    pc_loader_free(train);
    pc_loader_free(test);
    assert_ok(pc__loader_new_parts(root.s, options_of(PC_SPLIT_ALL, 0.05, NULL), options_of(PC_SPLIT_ALL, 0.05, NULL),
                                   &train, &test));
    assert_int_equal(pc_loader_count(train), 11);
    assert_null(test);
    pc_loader_free(train);
    assert_fails(pc_loader_new(root.s, options_of(PC_SPLIT_VALIDATION, 0.05, NULL)), PC_ERR_NOT_FOUND,
                 "no pictures for validation: a share of 0.05 is none of any class");
    remove_root(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_cover_all),
        cmocka_unit_test(broken_files_are_in_no_part),
        cmocka_unit_test(small_classes_stay),
    };
    return cmocka_run_group_tests_name("data.divide", tests, NULL, NULL);
}

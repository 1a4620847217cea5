/* Folders of pictures: what is found, in which order, which part, and which files are broken. */
#include "data/folder.h"
#include "data/pictures.h"

#include "pictures.h"

#include <paracord/loader.h>
#include <paracord/memory.h>
#include <sys/resource.h>
#include <unistd.h>

static void assert_paths(const pc__folder *folder, const char *const *paths, int count)
{
    for (int i = 0; i < count && i < folder->count; i++)
        assert_string_equal(folder->files[i].path, paths[i]);
    assert_int_equal(folder->count, count);
}

static pc__folder scanned(const char *root)
{
    pc__folder folder;
    assert_ok(pc__folder_scan(root, &folder));
    return folder;
}

static void touch(const char *root, const char *name)
{
    put_bytes(root, name, "", 0);
}

static void files_are_sorted_by_class_and_path(void **state)
{
    (void)state;
    test_path root = new_root();
    const char *names[] = {"dog/b.jpg",   "dog/a.PNG",   "dog/B.jpeg",  "cat/2/x.jpg", "cat/10.jpg",
                           "cat/2.jpg",   "cat/1.webp",  "cat/2/1.jpg", "Zebra/a.gif", "cat/2/deep/er/y.tiff",
                           "Zebra/b.PPM", "Zebra/c.heic"};
    for (int i = 0; i < PC__COUNT(names); i++)
        touch(root.s, names[i]);
    pc__folder folder = scanned(root.s);
    assert_int_equal(folder.class_count, 3);
    assert_string_equal(folder.classes[0], "Zebra");
    assert_string_equal(folder.classes[1], "cat");
    assert_string_equal(folder.classes[2], "dog");
    const char *want[] = {"Zebra/a.gif", "Zebra/b.PPM", "Zebra/c.heic", "cat/1.webp",
                          "cat/10.jpg",  "cat/2.jpg",   "cat/2/1.jpg",  "cat/2/deep/er/y.tiff",
                          "cat/2/x.jpg", "dog/B.jpeg",  "dog/a.PNG",    "dog/b.jpg"};
    assert_paths(&folder, want, PC__COUNT(want));
    assert_int_equal(folder.files[0].label, 0);
    assert_int_equal(folder.files[8].label, 1);
    assert_int_equal(folder.files[9].label, 2);
    char *path = pc__folder_path(&folder, 3);
    assert_string_equal(path, joined(root.s, "cat/1.webp").s);
    pc__free(path);
    pc__folder_free(&folder);
    remove_root(&root);
}

static void what_is_no_picture_is_left_alone(void **state)
{
    (void)state;
    test_path root = new_root();
    const char *names[] = {"cat/1.jpg",     "cat/notes.txt", "cat/.hidden.jpg", "cat/.git/2.jpg", "cat/jpg",
                           "cat/x.jpg.bak", "dog/1.jpg",     ".cache/1.jpg",    "stray.jpg"};
    for (int i = 0; i < PC__COUNT(names); i++)
        touch(root.s, names[i]);
    assert_int_equal(mkfifo(joined(root.s, "cat/pipe.jpg").s, 0666), 0);
    touch(root.s, "cat/folder.jpg/3.png");
    pc__folder folder = scanned(root.s);
    /* the pipe is called a picture: that it is none, its reader says */
    const char *want[] = {"cat/1.jpg", "cat/folder.jpg/3.png", "cat/pipe.jpg", "dog/1.jpg"};
    assert_paths(&folder, want, PC__COUNT(want));
    pc__folder_free(&folder);
    test_path slashes = joined(root.s, "//");
    folder = scanned(slashes.s);
    assert_string_equal(folder.root, root.s);
    pc__folder_free(&folder);
    remove_root(&root);
}

static void links_are_followed_and_end(void **state)
{
    (void)state;
    test_path root = new_root();
    touch(root.s, "store/1.jpg");
    touch(root.s, "store/2.jpg");
    test_path classes = joined(root.s, "classes");
    put_link(root.s, "classes/cat", "../store");
    touch(root.s, "classes/dog/3.jpg");
    put_link(root.s, "classes/dog/self", ".");
    put_link(root.s, "classes/dog/up", "..");
    put_link(root.s, "classes/dog/file.jpg", "../../store/1.jpg");
    put_link(root.s, "classes/dog/nowhere.png", "gone.png");
    put_link(root.s, "classes/dog/nowhere.txt", "gone.txt");
    put_link(root.s, "classes/nowhere", "gone");
    pc__folder folder = scanned(classes.s);
    const char *want[] = {"cat/1.jpg", "cat/2.jpg", "dog/3.jpg", "dog/file.jpg", "dog/nowhere.png"};
    assert_paths(&folder, want, PC__COUNT(want));
    assert_int_equal(folder.class_count, 2);
    pc__folder_free(&folder);
    remove_root(&root);
}

static void what_cannot_be_looked_at_is_an_error(void **state)
{
    (void)state;
    test_path root = new_root();
    touch(root.s, "cat/1.jpg");
    put_bad_link(root.s, "cat/odd.jpg"); /* its reader says that it is broken */
    pc__folder folder = scanned(root.s);
    assert_int_equal(folder.count, 2);
    pc__folder_free(&folder);
    put_bad_link(root.s, "cat/odd");
    assert_fails(pc__folder_scan(root.s, &folder) == PC_OK, PC_ERR_FILE, "cat/odd");
    remove_root(&root);
}

/* Not with files that are open already, whose number the limit is set to. */
static void too_many_open_files_break_no_picture(void **state)
{
    (void)state;
    test_path root = new_root();
    touch(root.s, "cat/1.jpg");
    put_bad_link(root.s, "cat/odd.jpg");
    touch(root.s, "dog/1.jpg");
    pc__folder folder = scanned(root.s);
    const pc__decode_options options = {.frame = {.width = 2, .height = 2, .channels = 3}};
    pc__decoded decoded[3];
    struct rlimit before, none;
    const int next = dup(0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const pc_status status = pc__pictures_decode(&folder, &options, NULL, 0, decoded);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, PC_ERR_FILE);
    assert_non_null(strstr(pc_error_last()->message, "cannot open"));
    assert_string_equal(pc_error_last()->cause, "Too many open files");
    pc_error_clear();
    assert_ok(pc__pictures_decode(&folder, &options, NULL, 0, decoded));
    for (int i = 0; i < 3; i++)
        assert_int_equal(decoded[i], PC__DECODED_BROKEN); /* empty, or no file at all */
    pc__folder_free(&folder);
    remove_root(&root);
}

static void too_deep_is_an_error(void **state)
{
    (void)state;
    test_path root = new_root();
    char name[400] = "cat";
    for (int i = 0; i < 70; i++)
        strcat(name, "/d");
    strcat(name, "/1.jpg");
    touch(root.s, name);
    pc__folder folder;
    assert_fails(pc__folder_scan(root.s, &folder) == PC_OK, PC_ERR_FILE, "folders deep");
    assert_int_equal(folder.count, 0);
    assert_fails(pc__folder_scan(joined(root.s, "nothing").s, &folder) == PC_OK, PC_ERR_FILE, "nothing");
    remove_root(&root);
}

static void names_give_the_order(void **state)
{
    (void)state;
    test_path root = new_root();
    const char *names[] = {"ant/1.jpg", "bee/2.jpg", "bee/1.jpg", "cow/1.jpg"};
    for (int i = 0; i < PC__COUNT(names); i++)
        touch(root.s, names[i]);
    pc__folder folder = scanned(root.s);
    assert_ok(pc__folder_relabel(&folder, (const char *[]){"cow", "ant", "bee"}, 3));
    const char *want[] = {"cow/1.jpg", "ant/1.jpg", "bee/1.jpg", "bee/2.jpg"};
    assert_paths(&folder, want, PC__COUNT(want));
    assert_string_equal(folder.classes[0], "cow");
    assert_string_equal(folder.classes[2], "bee");
    assert_int_equal(folder.files[3].label, 2);
    assert_ok(pc__folder_check(&folder));
    assert_fails(pc__folder_relabel(&folder, (const char *[]){"cow", "ant", "bee", "elk"}, 4) == PC_OK,
                 PC_ERR_NOT_FOUND, "elk");
    assert_fails(pc__folder_relabel(&folder, (const char *[]){"cow", "bee"}, 2) == PC_OK, PC_ERR_NOT_FOUND, "/ant");
    assert_fails(pc__folder_relabel(&folder, (const char *[]){"cow", "ant", "bee", "ant"}, 4) == PC_OK, PC_ERR_ARGUMENT,
                 "twice");
    pc__folder_free(&folder);
    remove_root(&root);
}

static void a_check_names_the_broken(void **state)
{
    (void)state;
    test_path root = new_root();
    put_picture(root.s, "train/cat/1.jpg", 1);
    put_picture(root.s, "train/dog/1.png", 2);
    put_picture(root.s, "test/cat/1.jpg", 3);
    put_picture(root.s, "test/dog/nested/1.jpg", 4);
    put_picture(root.s, "loose.jpg", 5);
    put_bytes(root.s, "test/dog/text.jpg", "hello there", 11);
    put_bytes(root.s, "test/cat/empty.jpg", "", 0);
    put_picture(root.s, "train/dog/cut.png", 6);
    cut(root.s, "train/dog/cut.png", 0.5);
    heard h = {.count = 0};
    pc_folder_report report;
    assert_ok(pc_pictures_check(root.s, &(pc_folder_callbacks){&h, hear, NULL}, &report));
    assert_int_equal(report.pictures, 8);
    assert_int_equal(report.broken, 3);
    assert_int_equal(report.classes, 2);
    char want[2 * sizeof root.s + 128];
    snprintf(want, sizeof want, "%s/test/cat/empty.jpg: is an empty file\n%s/test/dog/text.jpg: is a text file", root.s,
             root.s);
    assert_memory_equal(h.lines, want, strlen(want));
    assert_non_null(strstr(h.lines, "train/dog/cut.png: "));
    assert_false(pc_failed());
    assert_ok(pc_pictures_check(joined(root.s, "train/cat").s, NULL, &report));
    assert_int_equal(report.pictures, 1);
    assert_int_equal(report.classes, 0);
    remove_root(&root);
    assert_fails(pc_pictures_check(root.s, NULL, &report) == PC_OK, PC_ERR_FILE, root.s);
    assert_fails(pc_pictures_check(NULL, NULL, NULL) == PC_OK, PC_ERR_ARGUMENT, "folder is NULL");
    assert_int_equal(pc_allocator_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_sorted_by_class_and_path),
        cmocka_unit_test(what_is_no_picture_is_left_alone),
        cmocka_unit_test(links_are_followed_and_end),
        cmocka_unit_test(what_cannot_be_looked_at_is_an_error),
        cmocka_unit_test(too_many_open_files_break_no_picture),
        cmocka_unit_test(too_deep_is_an_error),
        cmocka_unit_test(names_give_the_order),
        cmocka_unit_test(a_check_names_the_broken),
    };
    return cmocka_run_group_tests_name("data.folder", tests, NULL, NULL);
}

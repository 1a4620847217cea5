/* Keras files that were made to harm who reads them: wild copies, loops, memory without end. Each is an error that
 * names the file, and takes no more than its share. */
#include "support.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "base/site.h"
#include "io/keras_h5_ask.h"
#include "io/keras_support.h"

#include <fcntl.h>
#include <paracord/memory.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Damage makes HDF5 lose some blocks of its own. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static uint8_t *content;
static size_t content_size;

/* The golden file in memory, to be bent and written. */
static void load_golden(void)
{
    assert_ok(pc__file_read(golden("keras3_adam.h5"), &content, &content_size));
}

static const char *bent(void)
{
    const char *path = in_folder("wrong.h5");
    assert_ok(pc__file_write(path, content, content_size));
    pc__free(content);
    content = NULL;
    return path;
}

/* Where `n` bytes stand the next time from `at` on. */
static size_t find(size_t at, const void *bytes, size_t n)
{
    const uint8_t *found = memmem(content + at, content_size - at, bytes, n);
    assert_non_null(found);
    return (size_t)(found - content);
}

static void put(size_t at, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        content[at + (size_t)i] = (uint8_t)(value >> 8 * i);
}

/* The type of a text of variable length has a size beside its class: 16, whatever else a file says. */
static void texts_of_odd_width(void **state)
{
    (void)state;
    static const uint32_t widths[] = {0, 1, 8, 15};
    static const char *const names[] = {"model_config", "layer_names", "weight_names"};
    static const uint8_t type[] = {0x19, 0x01};
    pc__keras_model model;
    for (int i = 0; i < PC__COUNT(widths) * PC__COUNT(names); i++) {
        load_golden();
        const char *name = names[i % PC__COUNT(names)];
        const size_t at = find(find(0, name, strlen(name) + 1), type, sizeof type);
        put(at + 4, widths[i / PC__COUNT(names)], 4);
        pc_error_clear();
        assert_int_not_equal(pc__keras_read(bent(), &model), PC_OK);
        assert_int_equal(pc_error_last()->status, PC_ERR_FORMAT);
        assert_non_null(strstr(pc_error_last()->message, "wrong.h5"));
        assert_non_null(strstr(pc_error_last()->message, "damaged"));
    }
    load_golden();
    put(find(find(0, "model_config", 13), type, sizeof type) + 4, 1, 4);
    assert_fails(pc__keras_read(bent(), &model), PC_ERR_FORMAT, "1 texts of variable length in 1 bytes");
}

#define KERNEL "model_weights/conv2d/tiny/conv2d/kernel"

/* The golden file, open with another kernel in it, packed in chunks. */
static const char *with_kernel(const hsize_t shape[4], const hsize_t chunk[4], hid_t type, hid_t *file, hid_t *id)
{
    static const hsize_t unlimited[4] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
    load_golden();
    const char *path = bent();
    hid_t space = H5Screate_simple(4, shape, unlimited), creation = H5Pcreate(H5P_DATASET_CREATE);
    *file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(*file >= 0 && H5Ldelete(*file, KERNEL, H5P_DEFAULT) >= 0);
    H5Pset_chunk(creation, 4, chunk);
    H5Pset_deflate(creation, 6);
    *id = H5Dcreate2(*file, KERNEL, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Pclose(creation), H5Sclose(space);
    return path;
}

/* One chunk whose bytes in the file are `stored`. */
static const char *with_chunk(const hsize_t shape[4], const hsize_t chunk[4], size_t stored)
{
    static const hsize_t first[4] = {0};
    hid_t file, id;
    const char *path = with_kernel(shape, chunk, H5T_IEEE_F32LE, &file, &id);
    void *bytes = calloc(1, stored);
    assert_true(H5Dwrite_chunk(id, H5P_DEFAULT, 0, first, stored, bytes) >= 0);
    free(bytes);
    H5Dclose(id), H5Fclose(file);
    return path;
}

static void chunks_of_gigabytes(void **state)
{
    (void)state;
    pc__keras_model model;
    const hsize_t small[4] = {3, 3, 2, 2}, large[4] = {3, 3, 2, 1 << 24}, wide[4] = {3, 3, 2, (1 << 24) + 1};
    assert_fails(pc__keras_read(with_chunk(small, large, 3 << 20), &model), PC_ERR_FORMAT,
                 "the kernel of layer 'conv2d', in chunks larger than itself, takes 1208 MB of memory, and a file of "
                 "3.2 MB gets 268 MB");
    assert_fails(pc__keras_read(with_chunk(small, wide, 1 << 10), &model), PC_ERR_FORMAT, "h5repack -f NONE");
}

static void all_of_it_has_one_limit(void **state)
{
    (void)state;
    pc__keras_model model;
    const pc__h5_limits before = pc__h5_limit;
    load_golden();
    const char *path = bent();
    pc__h5_limit.memory = 1000;
    assert_ok(pc__keras_read(path, &model)); /* a file gets 16 times its size */
    pc__keras_free(&model);
    pc__h5_limit = before;
}

/* A free list of a local heap that comes back to itself: libhdf5 follows it for ever, and keeps a block for each step.
 */
static void a_heap_that_is_a_ring(void **state)
{
    (void)state;
    enum { FREE_LIST = 16, ADDRESS = 24 };
    pc__keras_model model;
    const pc__h5_limits before = pc__h5_limit;
    pc__h5_limit = (pc__h5_limits){.memory = 64 << 20, .seconds = 1};
    load_golden();
    const size_t heap = find(0, "HEAP", 4);
    uint64_t head, address;
    memcpy(&head, content + heap + FREE_LIST, 8);
    memcpy(&address, content + heap + ADDRESS, 8);
    put(address + head, head, 8);
    assert_fails(pc__keras_read(bent(), &model), PC_ERR_FORMAT, "made to harm who reads it");
    pc__h5_limit = before;
}

static int open_files(void)
{
    int count = 0;
    for (int file = 0; file < 1000; file++)
        count += fcntl(file, F_GETFD) >= 0;
    return count;
}

/* A reader that its file has killed is asked nothing more, nor is anybody else in its place; and all of it is given
 * back. */
static void a_reader_that_died(void **state)
{
    (void)state;
    const int before = open_files();
    pc__h5_node root, inner;
    char *text;
    load_golden();
    assert_ok(pc__h5_open_bytes("inner.h5", content, content_size, &root));
    assert_ok(pc__h5_group("inner.h5", root, "model_weights", &inner));
    kill(root.file->jail.child, SIGKILL);
    assert_fails(pc__h5_text("inner.h5", root, "keras_version", &text), PC_ERR_FORMAT, "cannot read inner.h5");
    const hid_t ours = H5Screate(H5S_SCALAR); /* of this process: its number means something else in the other */
    assert_fails(pc__h5_text("inner.h5", (pc__h5_node){root.file, ours}, "a", &text), PC_ERR_FORMAT,
                 "cannot read inner.h5");
    H5Sclose(ours);
    pc__h5_close(inner);
    pc__h5_close(root);
    pc_error_clear();
    pc__free(content);
    assert_int_equal(open_files(), before);
}

/* Notes are written by a child too; the file is another one then, or the old one as a whole. */
static void notes_in_files_of_strangers(void **state)
{
    (void)state;
    struct stat old, new;
    char note[] = "{}";
    const pc__keras_model model = {.name = "other", .note = note};
    pc__keras_model read;
    load_golden();
    const char *path = bent();
    assert_int_equal(stat(path, &old), 0);
    for (int i = 0; i < 2; i++) {
        setenv("PARACORD_JAIL", i ? "off" : "on", 1);
        assert_ok(pc__keras_note(path, &model));
        unsetenv("PARACORD_JAIL");
        assert_int_equal(stat(path, &new), 0);
        assert_int_not_equal(old.st_ino, new.st_ino);
        old = new;
        assert_ok(pc__keras_read(path, &read));
        assert_string_equal(read.note, "{}");
        assert_string_equal(read.name, "other");
        pc__keras_free(&read);
    }
    load_golden();
    assert_ok(pc__file_write(path, content, content_size / 2));
    pc__free(content);
    assert_fails(pc__keras_note(path, &model), PC_ERR_FORMAT, "wrong.h5");
}

/* What does not stand in the file as it is in memory comes through the memory that both processes share. */
static void packed_weights(void **state)
{
    (void)state;
    static const hsize_t shape[4] = {3, 3, 2, 2}, chunk[4] = {3, 3, 1, 2};
    double values[36];
    for (int i = 0; i < 36; i++)
        values[i] = i / 8.0 - 1;
    hid_t file, id;
    const char *path = with_kernel(shape, chunk, H5T_IEEE_F64BE, &file, &id);
    assert_true(H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(id), H5Fclose(file);
    pc__keras_model model;
    assert_ok(pc__keras_read(path, &model));
    for (int i = 0; i < 36; i++)
        assert_true(model.layers[0].weights[0].value[i] == (float)values[i]);
    pc__keras_free(&model);
}

/* A reader that was taken over by its file: answers of any bytes, now and then with one field as it should be. */
static void lie(const pc__jail_cell *cell, void *context)
{
    (void)context;
    static char rest[65536];
    static const uint64_t sizes[] = {0, 1, 144, 4096, (uint64_t)1 << 20, UINT64_MAX, PC__H5_NOWHERE};
    uint32_t random = 1;
    while (recv(cell->socket, rest, sizeof rest, 0) > 0) {
        pc__h5_answer answer;
        uint8_t *bytes = (uint8_t *)&answer;
        for (size_t i = 0; i < sizeof answer; i++)
            bytes[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        answer.error.status = random >> 16 & 3 ? PC_OK : answer.error.status;
        answer.bytes = sizes[random >> 20 & 7 ? (random >> 20 & 7) - 1 : 0];
        answer.place = random >> 24 & 1 ? PC__H5_NOWHERE : answer.place;
        answer.rank = (int)(random >> 25 & 7) - 1;
        answer.count = (int)(random >> 28) - 1;
        for (int i = 0; i < PC__KERAS_RANK_MAX && random >> 27 & 1; i++)
            answer.shape[i] = i < 2 ? 3 : 2;
        pc__cell_answer(cell, &answer, sizeof answer);
    }
}

static void answers_that_lie(void **state)
{
    (void)state;
    pc__jail_plan plan = {.serve = lie, .file = -1, .room = 1 << 20, .memory = 1 << 28, .seconds = 60};
    const int64_t alive = pc_allocator_live();
    pc__h5_file file = {.path = "lies.h5", .source = {.fd = -1, .bytes = (const uint8_t *)"lies", .size = 4}};
    file.source.limit = file.left = (int64_t)1 << 40;
    file.apart = true;
    assert_true(pc__jail_start(&file.jail, &plan));
    const pc__h5_node node = {&file, 1};
    for (int i = 0; i < 2000; i++) {
        int64_t shape[PC__KERAS_RANK_MAX] = {3, 3, 2, i % 2 ? 2 : -1}, integer;
        char *text;
        float *values;
        pc__names names = {0};
        int rank;
        double real;
        if (pc__h5_text("lies.h5", node, "a", &text) == PC_OK)
            pc__free(text);
        if (pc__h5_names("lies.h5", node, "a", &names, NULL) == PC_OK)
            pc__names_free(&names);
        if (pc__h5_floats("lies.h5", node, "a", "it", 4, shape, &values) == PC_OK) {
            assert_in_range(shape[3], 1, 1 << 20);
            pc__free(values);
        }
        pc__h5_shape(node, "a", &rank, shape);
        assert_in_range(rank + 1, 0, PC__KERAS_RANK_MAX + 1);
        (void)pc__h5_integer(node, "a", &integer);
        (void)pc__h5_real(node, "a", &real);
        (void)pc__h5_has(node, "a");
        pc_error_clear();
    }
    pc__jail_end(&file.jail);
    assert_int_equal(pc_allocator_live(), alive);
}

/* In this process all is the same but for that. */
static void without_a_child(void **state)
{
    (void)state;
    pc__keras_model apart, here;
    assert_ok(pc__keras_read(golden("keras3_adam.h5"), &apart));
    setenv("PARACORD_JAIL", "off", 1);
    assert_ok(pc__keras_read(golden("keras3_adam.h5"), &here));
    unsetenv("PARACORD_JAIL");
    assert_int_equal(apart.layer_count, here.layer_count);
    for (int i = 0; i < here.layer_count; i++)
        assert_memory_equal(apart.layers[i].weights[0].value, here.layers[i].weights[0].value,
                            (size_t)pc__keras_weight_size(&here.layers[i].weights[0]) * sizeof(float));
    pc__keras_free(&apart);
    pc__keras_free(&here);
}

/* What a file system has is not read through its name: HDF5 is given bytes. */
static void files_in_memory(void **state)
{
    (void)state;
    pc__h5_node root, group;
    char *text;
    load_golden();
    assert_ok(pc__h5_open_bytes("inner.h5", content, content_size, &root));
    assert_ok(pc__h5_text("inner.h5", root, "keras_version", &text));
    assert_string_equal(text, "3.15.1");
    pc__free(text);
    assert_true(pc__h5_has(root, "model_weights"));
    assert_false(pc__h5_has(root, "nothing"));
    assert_ok(pc__h5_group("inner.h5", root, "model_weights", &group));
    pc__h5_close(group);
    const uintptr_t *place;
    assert_int_equal(pc__h5_group("inner.h5", root, "nothing", &group), PC_ERR_FORMAT);
    assert_true(pc__site_addresses(pc_error_last()->site, &place) > 0); /* whoever asked, though a child has found it */
    assert_non_null(strstr(pc_error_last()->message, "inner.h5: the group 'nothing'"));
    pc_error_clear();
    pc__h5_close(root);
    assert_fails(pc__h5_open_bytes("inner.h5", content, 100, &root), PC_ERR_FORMAT, "inner.h5: it is damaged");
    assert_fails(pc__h5_open_bytes("inner.h5", "", 0, &root), PC_ERR_FORMAT, "inner.h5 is empty");
    pc__free(content);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_odd_width),      cmocka_unit_test(chunks_of_gigabytes),
        cmocka_unit_test(all_of_it_has_one_limit), cmocka_unit_test(a_heap_that_is_a_ring),
        cmocka_unit_test(without_a_child),         cmocka_unit_test(files_in_memory),
        cmocka_unit_test(answers_that_lie),        cmocka_unit_test(packed_weights),
        cmocka_unit_test(a_reader_that_died),      cmocka_unit_test(notes_in_files_of_strangers),
    };
    return cmocka_run_group_tests_name("io.keras_harm", tests, make_folder, remove_folder);
}

#else

int main(void)
{
    return 0; /* io.keras has the one test of a build without the libraries */
}

#endif

/* Fuzz target: files of torch.save of any bytes: opened, all that is readable in them read, and loaded into a network. As they
 * are, and as the pickle of a whole archive, whose front and directory are right, so that what comes after those is
 * reached. */
#include "fuzz/fuzz.h"

#include <paracord/weights.h>
#include <string.h>

static void load(const char *path)
{
    pc_weights *weights = pc_weights_open(path);
    for (int i = 0; weights && i < pc_weights_count(weights); i++) {
        pc_weights_entry entry;
        if (pc_weights_query(weights, i, &entry) != PC_OK)
            abort();
        pc_tensor_free(pc_weights_read(weights, entry.name, PC_DEVICE_CPU));
        pc_error_clear();
    }
    pc_weights_free(weights);
    pc_error_clear();
    pc_module *net = pc_linear(2, 3);
    (void)!pc_weights_load(net, path, (pc_weights_options){.partial = true});
    pc_module_free(net);
    pc_error_clear();
}

enum { LOCAL = 30, ENTRY = 46, END = 22 };

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
    return n ? (uint8_t *)memcpy(at, bytes, n) + n : at;
}

static uint8_t *put_number(uint8_t *at, size_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (uint8_t)(number >> 8 * i);
    return at;
}

typedef struct member {
    const char *name;
    const void *bytes;
    size_t n, begin;
} member;

/* What stands in front of a file in an archive, and again, with more around it, in the directory: nothing is packed. */
static uint8_t *put_head(uint8_t *at, const member *m, bool directory)
{
    at = put(at, directory ? "PK\1\2" : "PK\3\4", 4);
    memset(at, 0, ENTRY);
    at += directory ? 16 : 14; /* versions, flags, method, time, sum */
    at = put_number(at, m->n, 4);
    at = put_number(at, m->n, 4);
    at = put_number(at, strlen(m->name), 2);
    at += directory ? 12 : 2;
    at = directory ? put_number(at, m->begin, 4) : at;
    return put(at, m->name, strlen(m->name));
}

/* An archive with that pickle and a storage of 24 numbers, as torch.save would have it. */
static void load_pickle(const uint8_t *pickle, size_t n)
{
    static const uint8_t numbers[96] = {1, 2, 3};
    member members[] = {{"a/data.pkl", pickle, n, 0}, {"a/data/0", numbers, sizeof numbers, 0}};
    uint8_t *archive = malloc(n + 1024), *at = archive;
    if (!archive)
        abort();
    for (int i = 0; i < 2; i++) {
        members[i].begin = (size_t)(at - archive);
        at = put_head(at, &members[i], false);
        at = put(at, members[i].bytes, members[i].n);
    }
    const size_t begin = (size_t)(at - archive);
    for (int i = 0; i < 2; i++)
        at = put_head(at, &members[i], true);
    const size_t bytes = (size_t)(at - archive) - begin;
    at = put(at, "PK\5\6\0\0\0\0\2\0\2\0", 12);
    at = put_number(put_number(at, bytes, 4), begin, 4);
    at = put_number(at, 0, 2);
    load(pc__fuzz_file(archive, (size_t)(at - archive)));
    free(archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    load(pc__fuzz_file(bytes, n));
    load_pickle(bytes, n);
    return 0;
}

/* keras_h5_heap.c: texts of variable length. HDF5 1.10 trusts the places that such a text names in the global heap and
 * reads wild memory when a file is damaged there. So HDF5 hands over the raw references, and the heap is read here. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5_raw.h"

/* In the file: bytes (4), address of a heap collection (8), number of an object in it (4). All little-endian. */
#define REFERENCE PC__H5_REFERENCE

/* One collection: "GCOL", version, 3 zeros, its size (8); then objects: number (2), uses (2), 4 zeros, size (8), data
 * padded to 8; number 0 is the free rest. */
typedef struct collection {
    uint64_t address;
    uint8_t *bytes;
    size_t size;
} collection;
#define COLLECTION_HEAD 16
#define OBJECT_HEAD 16

static uint64_t little(const uint8_t *bytes, int n)
{
    uint64_t value = 0;
    while (n--)
        value = value << 8 | bytes[n];
    return value;
}

/* The raw references are what is in the buffer already. */
static herr_t leave_raw(hid_t from, hid_t to, H5T_cdata_t *data, size_t count, size_t stride, size_t background_stride,
                        void *buffer, void *background, hid_t transfer)
{
    (void)from, (void)to, (void)count, (void)stride, (void)background_stride, (void)buffer, (void)background,
        (void)transfer;
    data->need_bkg = H5T_BKG_NO;
    return 0;
}

/* Ask for text as opaque bytes; there is no conversion for that, so one is registered for as long as it takes. */
static bool read_references(hid_t attribute, uint8_t *references)
{
    static const char name[] = "paracord raw text";
    hid_t text = H5Tcopy(H5T_C_S1), raw = H5Tcreate(H5T_OPAQUE, REFERENCE);
    bool good = text >= 0 && raw >= 0 && H5Tset_size(text, H5T_VARIABLE) >= 0 &&
                H5Tregister(H5T_PERS_SOFT, name, text, raw, leave_raw) >= 0;
    if (good) {
        good = H5Aread(attribute, raw, references) >= 0;
        H5Tunregister(H5T_PERS_SOFT, name, text, raw, leave_raw);
    }
    if (raw >= 0)
        H5Tclose(raw);
    if (text >= 0)
        H5Tclose(text);
    return good;
}

static pc_status load(const pc__h5_source *source, uint64_t base, uint64_t address, collection *heap, bool *good)
{
    uint8_t head[COLLECTION_HEAD];
    *good = false;
    if (!pc__h5_bytes(source, base + address, head, sizeof head) || memcmp(head, "GCOL\1", 5) != 0)
        return PC_OK;
    uint64_t size = little(head + 8, 8);
    if (size < COLLECTION_HEAD || size > PC__KERAS_TEXT_MAX || size > source->size)
        return PC_OK;
    uint8_t *bytes = pc__realloc(heap->bytes, (size_t)size);
    if (!bytes)
        return PC_ERR_MEMORY;
    *heap = (collection){address, bytes, (size_t)size};
    *good = pc__h5_bytes(source, base + address, bytes, (size_t)size);
    return PC_OK;
}

/* Object `number` of the collection, when it has `length` bytes. */
static const char *find(const collection *heap, uint64_t number, size_t length)
{
    for (size_t at = COLLECTION_HEAD; heap->size - at >= OBJECT_HEAD;) {
        uint64_t this = little(heap->bytes + at, 2), size = little(heap->bytes + at + 8, 8);
        size_t left = heap->size - at - OBJECT_HEAD;
        if (!this || size > left)
            return NULL;
        if (this == number)
            return length <= size ? (const char *)heap->bytes + at + OBJECT_HEAD : NULL;
        at += OBJECT_HEAD + PC__MIN(left, (size_t)((size + 7) & ~(uint64_t)7));
    }
    return NULL;
}

static pc_status add_text(const pc__h5_source *source, uint64_t base, const uint8_t *reference, collection *heap,
                          pc__names *names, bool *good)
{
    size_t length = (size_t)little(reference, 4);
    uint64_t address = little(reference + 4, 8);
    *good = true;
    if (!length)
        return pc__names_add(names, "", 0);
    if (!heap->bytes || heap->address != address)
        PC__TRY(load(source, base, address, heap, good));
    const char *text = *good ? find(heap, little(reference + 12, 4), length) : NULL;
    *good = text != NULL;
    return text ? pc__names_add(names, text, strnlen(text, length)) : PC_OK;
}

pc_status pc__h5_heap_texts(const char *path, const char *name, hid_t attribute, int64_t count, pc__names *names)
{
    const pc__h5_source *source;
    uint64_t base;
    collection heap = {0};
    uint8_t *references = pc__calloc((size_t)count, REFERENCE);
    if (!references)
        return PC_ERR_MEMORY;
    pc_status status = PC_OK;
    bool good = read_references(attribute, references) && pc__h5_raw(attribute, &source, &base);
    for (int64_t i = 0; i < count && good && status == PC_OK; i++)
        status = add_text(source, base, references + i * REFERENCE, &heap, names, &good);
    if (status == PC_OK && !good)
        status = pc__fail(PC_ERR_FORMAT, "%s: the texts of the attribute '%s' are damaged", path, name);
    pc__free(heap.bytes);
    pc__free(references);
    return status;
}

#endif

/* keras_h5_check.c: may HDF5 look at the attributes of an object? HDF5 1.10 copies as many bytes as an attribute claims
 * to have, whether its message has them or not. Object headers of version 1 (all that h5py writes by default) are
 * looked through here first; later versions carry checksums. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5_raw.h"

enum { CONTINUATION = 0x10, ATTRIBUTE = 0x0C, SHARED = 0x02, CHUNKS_MAX = 1000 };

/* A run of bytes of the file, taken from the front; `good` falls when it is too short. */
typedef struct run {
    const uint8_t *at;
    size_t left;
    bool good;
} run;

static uint64_t take(run *from, int n)
{
    uint64_t value = 0;
    from->good = from->good && from->left >= (size_t)n;
    for (int i = n; from->good && i--;)
        value = value << 8 | from->at[i];
    if (from->good)
        from->at += n, from->left -= (size_t)n;
    return value;
}

static run cut(run *from, size_t n)
{
    run part = {from->at, n, from->good && from->left >= n};
    from->good = part.good;
    if (part.good)
        from->at += n, from->left -= n;
    return part;
}

/* The number of elements of a dataspace message. */
static uint64_t elements(run *space)
{
    uint64_t version = take(space, 1), rank = take(space, 1), count = 1;
    cut(space, version == 1 ? 6 : 2);
    for (uint64_t i = 0; space->good && i < rank; i++)
        space->good = !__builtin_mul_overflow(count, take(space, 8), &count) && space->good;
    return count;
}

static bool attribute_fits(run message)
{
    uint64_t version = take(&message, 1), sizes[3], bytes;
    take(&message, 1);
    for (int i = 0; i < 3; i++) {
        sizes[i] = take(&message, 2);
        if (version == 1)
            sizes[i] = (sizes[i] + 7) & ~(uint64_t)7;
    }
    if (version == 3)
        take(&message, 1);
    run name = cut(&message, sizes[0]), type = cut(&message, sizes[1]), space = cut(&message, sizes[2]);
    cut(&type, 4);
    bool overflow = __builtin_mul_overflow(take(&type, 4), elements(&space), &bytes);
    return version >= 1 && version <= 3 && message.good && type.good && space.good && !overflow &&
           bytes <= message.left && memchr(name.at, 0, name.left);
}

/* All messages of one chunk; the place of the next chunk when one of them says so. */
static bool chunk_fits(run chunk, uint64_t *next, uint64_t *next_size)
{
    while (chunk.left >= 8) {
        uint64_t kind = take(&chunk, 2), size = take(&chunk, 2), flags = take(&chunk, 1);
        cut(&chunk, 3);
        run message = cut(&chunk, size);
        if (!message.good)
            return false;
        if (kind == CONTINUATION) {
            if (*next_size) /* two in one chunk: no writer does that */
                return false;
            *next = take(&message, 8), *next_size = take(&message, 8);
            if (!message.good)
                return false;
        } else if (kind == ATTRIBUTE && !(flags & SHARED) && !attribute_fits(message)) {
            return false;
        }
    }
    return true;
}

static pc_status check_header(const pc__h5_source *source, uint64_t base, uint64_t address, bool *good)
{
    uint8_t head[16];
    *good = pc__h5_bytes(source, base + address, head, sizeof head);
    if (!*good || head[0] != 1)
        return PC_OK;
    run size_field = {head + 8, 4, true};
    uint64_t next = address + sizeof head, size = take(&size_field, 4);
    for (int chunks = 0; size && *good; chunks++) {
        *good = chunks < CHUNKS_MAX && size <= PC__KERAS_TEXT_MAX;
        uint8_t *bytes = *good ? pc__alloc((size_t)size) : NULL;
        if (*good && !bytes)
            return PC_ERR_MEMORY;
        run chunk = {bytes, (size_t)size, true};
        *good = *good && pc__h5_bytes(source, base + next, bytes, (size_t)size);
        size = 0;
        *good = *good && chunk_fits(chunk, &next, &size);
        pc__free(bytes);
    }
    return PC_OK;
}

pc_status pc__h5_attributes_check(const char *path, hid_t object, const char *name)
{
#if H5_VERSION_GE(1, 12, 0)
    H5O_info1_t info;
#else
    H5O_info_t info;
#endif
    const pc__h5_source *source;
    uint64_t base;
    bool good = H5Oget_info2(object, &info, H5O_INFO_BASIC) >= 0 && pc__h5_raw(object, &source, &base);
    if (good)
        PC__TRY(check_header(source, base, info.addr, &good));
    return good ? PC_OK : pc__fail(PC_ERR_FORMAT, "%s: what should have the attribute '%s' is damaged", path, name);
}

#endif

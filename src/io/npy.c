/* npy.c: NumPy's .npy files. A file is "\x93NUMPY", a version, the length of a header, and the header: a Python literal
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } padded with spaces and ended by a newline; then the data.
 */
#include "io/npy.h"
#include "io/file.h"

#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
#define ROW(code, name, size) [code] = {name, size},
    PC__NPY_TYPES(ROW)
#undef ROW
};

static const char magic[] = "\x93NUMPY";

/* The header, read from the front. */
typedef struct reader {
    const char *path, *at, *end;
    bool fortran;
    bool seen[3]; /* descr, fortran_order, shape */
} reader;

size_t pc__npy_element_bytes(pc__npy_type type)
{
    return (unsigned)type < PC__NPY_TYPE_COUNT ? types[type].size : 0;
}

size_t pc__npy_bytes(const pc__npy *array)
{
    size_t bytes = pc__npy_element_bytes(array->type);
    for (int i = 0; i < array->rank; i++)
        bytes *= (size_t)array->shape[i];
    return bytes;
}

void pc__npy_free(pc__npy *array)
{
    pc__free(array->data);
    *array = (pc__npy){0};
}

static pc_status bad_header(const reader *from)
{
    return pc__fail(PC_ERR_FORMAT, "%s: the header of the .npy file cannot be understood", from->path);
}

/* Pass over `word` and the space before it. */
static bool skip(reader *from, const char *word)
{
    while (from->at < from->end && isspace((unsigned char)*from->at))
        from->at++;
    size_t n = strlen(word);
    if ((size_t)(from->end - from->at) < n || memcmp(from->at, word, n) != 0)
        return false;
    from->at += n;
    return true;
}

static bool ahead(reader *from, char mark)
{
    return skip(from, "") && from->at < from->end && *from->at == mark;
}

/* 'text' or "text". */
static bool take_string(reader *from, char *text, size_t room)
{
    char quote = skip(from, "'") ? '\'' : skip(from, "\"") ? '"' : 0;
    size_t n = 0;
    while (quote && from->at < from->end && *from->at != quote && n + 1 < room)
        text[n++] = *from->at++;
    text[n] = 0;
    if (!quote || from->at >= from->end || *from->at != quote)
        return false;
    from->at++;
    return true;
}

static pc_status take_type(reader *from, pc__npy *array)
{
    char name[32];
    if (!take_string(from, name, sizeof name))
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: arrays of records are not supported", from->path);
    for (int i = 0; i < PC__NPY_TYPE_COUNT; i++) {
        bool sizeless = types[i].size == 1; /* '<u1' and 'u1' mean '|u1' */
        const char *kind = sizeless && strchr("<>=|", name[0]) ? name + 1 : name;
        if (strcmp(name, types[i].name) == 0 || (sizeless && strcmp(kind, types[i].name + 1) == 0)) {
            array->type = (pc__npy_type)i;
            return PC_OK;
        }
    }
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s: the element type '%s' is not supported; supported are little-endian f8, f4, f2, "
                    "i8, i4, and u1, b1",
                    from->path, name);
}

static pc_status take_size(reader *from, int64_t *size)
{
    int digits = 0;
    *size = 0;
    skip(from, "");
    for (; from->at < from->end && isdigit((unsigned char)*from->at); from->at++, digits++)
        if (__builtin_mul_overflow(*size, 10, size) || __builtin_add_overflow(*size, *from->at - '0', size))
            return pc__fail(PC_ERR_FORMAT, "%s: the array claims an absurd shape", from->path);
    skip(from, "L"); /* as Python 2 wrote them */
    return digits ? PC_OK : bad_header(from);
}

static pc_status take_shape(reader *from, pc__npy *array)
{
    if (!skip(from, "("))
        return bad_header(from);
    while (!skip(from, ")")) {
        if (array->rank == PC__NPY_RANK_MAX)
            return pc__fail(PC_ERR_UNSUPPORTED, "%s: the array has more than %d dimensions", from->path,
                            PC__NPY_RANK_MAX);
        PC__TRY(take_size(from, &array->shape[array->rank++]));
        if (!skip(from, ",") && !ahead(from, ')'))
            return bad_header(from);
    }
    return PC_OK;
}

static pc_status take_entry(reader *from, pc__npy *array)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[32];
    int which = 0;
    if (!take_string(from, key, sizeof key) || !skip(from, ":"))
        return bad_header(from);
    while (which < 3 && strcmp(key, keys[which]) != 0)
        which++;
    if (which == 3 || from->seen[which])
        return bad_header(from);
    from->seen[which] = true;
    if (which == 0)
        return take_type(from, array);
    if (which == 2)
        return take_shape(from, array);
    from->fortran = skip(from, "True");
    return from->fortran || skip(from, "False") ? PC_OK : bad_header(from);
}

static pc_status take_header(reader *from, pc__npy *array)
{
    if (!skip(from, "{"))
        return bad_header(from);
    while (!skip(from, "}")) {
        PC__TRY(take_entry(from, array));
        if (!skip(from, ",") && !ahead(from, '}'))
            return bad_header(from);
    }
    return from->seen[0] && from->seen[1] && from->seen[2] ? PC_OK : bad_header(from);
}

/* Where the data begins. */
static pc_status find_header(const char *path, const uint8_t *bytes, size_t n, reader *from)
{
    if (n > 4 && memcmp(bytes, "PK\3\4", 4) == 0)
        return pc__fail(PC_ERR_FORMAT, "%s is an archive, as .npz files are, of several arrays; numpy.save writes one",
                        path);
    if (n < 10 || memcmp(bytes, magic, 6) != 0)
        return pc__fail(PC_ERR_FORMAT, "%s is not a .npy file", path);
    if (bytes[6] < 1 || bytes[6] > 3)
        return pc__fail(PC_ERR_UNSUPPORTED, "%s: version %d of .npy is not supported", path, bytes[6]);
    size_t field = bytes[6] == 1 ? 2 : 4, length = 0;
    if (n < 8 + field)
        return pc__fail(PC_ERR_FORMAT, "%s: the .npy file is truncated in its header", path);
    for (size_t i = field; i--;)
        length = length << 8 | bytes[8 + i];
    if (n - 8 - field < length)
        return pc__fail(PC_ERR_FORMAT, "%s: the .npy file is truncated in its header", path);
    const char *start = (const char *)bytes + 8 + field;
    *from = (reader){.path = path, .at = start, .end = start + length};
    return PC_OK;
}

/* From first-index-fastest to last-index-fastest: walk the output in order and step through the input. */
static void transpose(const pc__npy *array, const uint8_t *from, uint8_t *to)
{
    size_t size = pc__npy_element_bytes(array->type), count = pc__npy_bytes(array) / size, at = 0;
    size_t step[PC__NPY_RANK_MAX], index[PC__NPY_RANK_MAX] = {0}, next = 1;
    for (int d = 0; d < array->rank; d++)
        step[d] = next, next *= (size_t)array->shape[d];
    for (size_t i = 0; i < count; i++) {
        memcpy(to + i * size, from + at * size, size);
        for (int d = array->rank - 1; d >= 0; d--) {
            at += step[d];
            if (++index[d] < (size_t)array->shape[d])
                break;
            at -= step[d] * index[d];
            index[d] = 0;
        }
    }
}

/* Does the array lie in `left` bytes? Also keeps all later sums from overflowing, where a size is 0 too. */
static bool fits(const pc__npy *array, size_t left)
{
    size_t bytes = pc__npy_element_bytes(array->type);
    bool empty = false;
    for (int i = 0; i < array->rank; i++) {
        empty = empty || array->shape[i] == 0;
        if (array->shape[i] && __builtin_mul_overflow(bytes, (size_t)array->shape[i], &bytes))
            return false;
    }
    return empty || bytes <= left;
}

static pc_status fail_truncated(const char *path, size_t left)
{
    return pc__fail(PC_ERR_FORMAT, "%s: the .npy file is truncated: it has %zu bytes of data and its shape needs more",
                    path, left);
}

static pc_status take_data(const char *path, const uint8_t *bytes, size_t left, bool fortran, pc__npy *array)
{
    if (!fits(array, left))
        return fail_truncated(path, left);
    size_t n = pc__npy_bytes(array);
    uint8_t *data = pc__alloc(n);
    if (!data)
        return PC_ERR_MEMORY;
    if (fortran && array->rank > 1)
        transpose(array, bytes, data);
    else
        memcpy(data, bytes, n);
    for (size_t i = 0; array->type == PC__NPY_BOOL && i < n; i++)
        data[i] = data[i] != 0;
    array->data = data;
    return PC_OK;
}

pc_status pc__npy_parse(const char *path, const void *bytes, size_t n, pc__npy *array)
{
    reader from = {.path = path};
    *array = (pc__npy){0};
    PC__TRY(find_header(path, bytes, n, &from));
    pc_status status = take_header(&from, array);
    const uint8_t *data = (const uint8_t *)from.end;
    if (status == PC_OK)
        status = take_data(path, data, n - (size_t)(data - (const uint8_t *)bytes), from.fortran, array);
    if (status != PC_OK)
        pc__npy_free(array);
    return status;
}

/* The header is written to be small: 64 KiB hold all of version 1. */
pc_status pc__npy_find(const char *path, int fd, pc__npy_place *place)
{
    enum { HEAD = 10 + 65536 };
    struct stat info;
    reader from = {.path = path};
    *place = (pc__npy_place){0};
    if (fstat(fd, &info) != 0)
        return pc__fail_file(errno, "cannot read %s", path);
    if (!S_ISREG(info.st_mode))
        return pc__fail(PC_ERR_FILE, "cannot read %s row by row: it is no regular file", path);
    uint8_t *head = pc__alloc(HEAD);
    if (!head)
        return PC_ERR_MEMORY;
    const ssize_t got = pread(fd, head, HEAD, 0);
    pc_status status = got < 0 ? pc__fail_file(errno, "cannot read %s", path) : PC_OK;
    if (status == PC_OK && pc__is_lfs_pointer(head, (size_t)got))
        status = pc__fail_lfs(path);
    if (status == PC_OK)
        status = find_header(path, head, (size_t)got, &from);
    if (status == PC_OK)
        status = take_header(&from, &place->array);
    if (status == PC_OK)
        place->offset = (const uint8_t *)from.end - head;
    place->fortran = from.fortran;
    pc__free(head);
    if (status == PC_OK && !fits(&place->array, (size_t)(info.st_size - place->offset)))
        status = fail_truncated(path, (size_t)(info.st_size - place->offset));
    return status;
}

pc_status pc__npy_read(const char *path, pc__npy *array)
{
    uint8_t *bytes;
    size_t n;
    *array = (pc__npy){0};
    PC__TRY(pc__file_read(path, &bytes, &n));
    pc_status status = pc__npy_parse(path, bytes, n, array);
    pc__free(bytes);
    return status;
}

pc_status pc__npy_write(const char *path, const pc__npy *array)
{
    if (!pc__npy_element_bytes(array->type) || array->rank < 0 || array->rank > PC__NPY_RANK_MAX)
        return pc__fail(PC_ERR_ARGUMENT, "cannot write %s: no such element type or rank", path);
    pc__text out = {0};
    pc__text_append(&out, magic, 6);
    pc__text_append(&out, "\1\0\0\0", 4);
    pc__text_add(&out, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[array->type].name);
    for (int i = 0; i < array->rank; i++)
        pc__text_add(&out,
                     i + 1 < array->rank ? "%lld, "
                     : array->rank == 1  ? "%lld,"
                                         : "%lld",
                     (long long)array->shape[i]);
    pc__text_add(&out, "), }");
    while (!out.failed && out.length % 64 != 63)
        pc__text_append(&out, " ", 1);
    pc__text_append(&out, "\n", 1);
    if (!out.failed) {
        out.data[8] = (char)((out.length - 10) & 0xff);
        out.data[9] = (char)((out.length - 10) >> 8);
        pc__text_append(&out, array->data, pc__npy_bytes(array));
    }
    pc_status status = out.failed ? PC_ERR_MEMORY : pc__file_write(path, out.data, out.length);
    pc__text_free(&out);
    return status;
}

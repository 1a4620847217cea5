/* keras_h5_open.c: opening a file and giving it back. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/file.h"
#include "io/keras_h5_ask.h"

#include <unistd.h>

/* What reading a file may take: enough for any file of its size whose weights are not packed to less than a 16th. */
#define LIMIT_TIMES 16

pc__h5_limits pc__h5_limit = {.memory = (int64_t)256 << 20, .seconds = 10};

/* The words for what people hand over instead of an HDF5 file. HDF5 may have a block of others in front of it, of 512
 * bytes or twice that, and twice again. */
static pc_status check_kind(const char *path, const pc__h5_source *source)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char head[8] = "";
    if (!source->size)
        return pc__fail(PC_ERR_FORMAT, "%s is empty", path);
    for (uint64_t at = 0; pc__h5_bytes(source, at, head, sizeof head); at = at ? 2 * at : 512)
        if (memcmp(head, signature, sizeof head) == 0)
            return PC_OK;
    char words[64];
    if (pc__h5_bytes(source, 0, words, sizeof words) && pc__is_lfs_pointer(words, sizeof words))
        return pc__fail_lfs(path);
    return pc__fail(PC_ERR_FORMAT, "%s is not an HDF5 file", path);
}

void pc__h5_set_limit(pc__h5_source *source)
{
    const int64_t times =
        source->size > (uint64_t)INT64_MAX / LIMIT_TIMES ? INT64_MAX : (int64_t)source->size * LIMIT_TIMES;
    source->limit = PC__MAX(pc__h5_limit.memory, times);
}

static pc_status begin(pc__h5_file *file)
{
    pc__h5_source *source = &file->source;
    pc__h5_set_limit(source);
    file->left = source->limit;
    PC__TRY(check_kind(file->path, source));
    file->apart = pc__h5_start_apart(file);
    if (!file->apart) { /* HDF5 is ours from here to the end */
        file->quiet = pc__h5_enter();
        file->entered = true;
    }
    return pc__h5_ask_to_open(file);
}

void pc__h5_release(pc__h5_file *file)
{
    if (file->apart)
        pc__jail_end(&file->jail);
    if (file->entered && file->root >= 0)
        H5Fclose(file->root);
    if (file->entered)
        pc__h5_leave(file->quiet);
    if (file->source.fd >= 0)
        close(file->source.fd);
    pc__free(file->own);
    pc__free(file);
}

/* Take the file over: it is closed when this fails. */
static pc_status open_file(const pc__h5_file *with, pc__h5_node *root)
{
    pc__h5_file *file = pc__alloc(sizeof *file);
    if (!file) {
        if (with->source.fd >= 0)
            close(with->source.fd);
        pc__free(with->own);
        return PC_ERR_MEMORY;
    }
    *file = *with;
    file->root = H5I_INVALID_HID;
    pc_status status = begin(file);
    *root = (pc__h5_node){file, file->root};
    if (status != PC_OK) {
        pc__h5_release(file);
        *root = (pc__h5_node){NULL, H5I_INVALID_HID};
    }
    return status;
}

pc_status pc__h5_open(const char *path, pc__h5_node *root)
{
    pc__h5_file file = {.path = path, .source.fd = -1};
    int64_t size;
    size_t n = 0;
    *root = (pc__h5_node){NULL, H5I_INVALID_HID};
    PC__TRY(pc__file_open(path, &file.source.fd, &size));
    if (size < 0) { /* a pipe: HDF5 jumps to and fro */
        PC__TRY(pc__file_take(file.source.fd, path, size, &file.own, &n));
        file.source = (pc__h5_source){.fd = -1, .bytes = file.own};
    }
    file.source.size = size < 0 ? n : (uint64_t)size;
    return open_file(&file, root);
}

pc_status pc__h5_open_bytes(const char *path, const void *bytes, size_t n, pc__h5_node *root)
{
    return open_file(&(pc__h5_file){.path = path, .source = {.fd = -1, .bytes = bytes, .size = n}}, root);
}

#endif

/* loader_cache.c: which file the loader takes for a library, by its own index, /etc/ld.so.cache (ldconfig writes it;
 * the format is in glibc's sysdeps/generic/dl-cache.h). Recordings hold the lines that matter, answers/loader-cache. */
#include "probe/probe.h"

enum { CACHE_MAX = 1 << 20, HEAD = 48, ENTRY = 24, LIBC6 = 3, X86_64 = 0x0300, AARCH64 = 0x0a00 };
static const char magic[] = "glibc-ld.so.cache1.1";

static uint32_t number_at(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* A text inside the cache; NULL when it is none. */
static const char *text_at(const unsigned char *cache, size_t n, uint32_t offset)
{
    return offset < n && memchr(cache + offset, 0, n - offset) ? (const char *)cache + offset : NULL;
}

/* Lines of "libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so.1" for the driver's libraries, in the loader's order. */
static void read_entries(const unsigned char *cache, size_t n, pc__text *lines)
{
    uint32_t count = n >= HEAD ? number_at(cache + 20) : 0;
    if (count > (n - HEAD) / ENTRY)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *entry = cache + HEAD + (size_t)i * ENTRY;
        uint32_t flags = number_at(entry);
        const char *name = text_at(cache, n, number_at(entry + 4)), *path = text_at(cache, n, number_at(entry + 8));
        bool driver = name && (!strcmp(name, "libcuda.so.1") || !strcmp(name, "libnvidia-ml.so.1"));
        if (driver && path && (flags & 0xff) == LIBC6 && ((flags & 0xff00) == X86_64 || (flags & 0xff00) == AARCH64))
            pc__text_add(lines, "%s %s\n", name, path);
    }
}

/* The index as those lines, from pc__alloc; NULL when there is none. */
static char *read_cache(pc__machine *m)
{
    char *recorded = pc__root_live(m->root) ? NULL : pc__root_text(m->root, "answers/loader-cache", 65536, false);
    if (recorded)
        return recorded;
    char *bytes = pc__try_alloc_aligned(CACHE_MAX, 16);
    pc__text lines = {0};
    m->failed |= !bytes;
    pc__root_keep_quiet(m->root, true);
    ssize_t n = bytes ? pc__root_read(m->root, "etc/ld.so.cache", bytes, CACHE_MAX) : -1;
    pc__root_keep_quiet(m->root, false);
    const char *begin = n > 0 ? memmem(bytes, (size_t)n, magic, sizeof magic - 1) : NULL;
    if (begin) /* behind an older format's index, which may come first */
        read_entries((const unsigned char *)begin, (size_t)(n - (begin - bytes)), &lines);
    pc__free(bytes);
    m->failed |= lines.failed;
    if (lines.data)
        pc__root_note(m->root, "answers/loader-cache", lines.data);
    return lines.data;
}

int pc__loader_cached(pc__machine *m, const char *name, bool (*each)(void *context, const char *path), void *context)
{
    char *lines = read_cache(m);
    int count = 0;
    size_t n = strlen(name);
    for (char *line = lines, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        if (strncmp(line, name, n) || line[n] != ' ' || line[n + 1] != '/')
            continue;
        count++;
        if (!each(context, line + n + 1))
            break;
    }
    pc__free(lines);
    return count;
}

/* hash.h: a number for some bytes, for tables and checks. */
#ifndef PC__CUDA_HASH_H
#define PC__CUDA_HASH_H

#include <stddef.h>

/* FNV-1a. */
static inline unsigned pc__cuda_hash(const void *bytes, size_t n)
{
    const unsigned char *byte = (const unsigned char *)bytes;
    unsigned h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ byte[i]) * 16777619u;
    return h;
}

#endif

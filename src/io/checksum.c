/* checksum.c: a sum of bytes, eight at a time. */
#include "io/checksum.h"

uint64_t pc__checksum(uint64_t hash, const void *from, size_t n)
{
    const uint8_t *bytes = from;
    uint64_t word;
    for (; n >= 8; n -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * 1099511628211ull;
        hash ^= hash >> 29;
    }
    for (; n; n--)
        hash = (hash ^ *bytes++) * 1099511628211ull;
    return hash;
}

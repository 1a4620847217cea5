/* checksum.h: whether the bytes of a file are those that were written. */
#ifndef PC__CHECKSUM_H
#define PC__CHECKSUM_H

#include "base/base.h"

#define PC__CHECKSUM_BEGIN 14695981039346656037ull

/* FNV-1a over 8-byte words, from that of the bytes before on, of which there are a multiple of 8: against torn and rotten
 * files, not against malice. */
uint64_t pc__checksum(uint64_t before, const void *bytes, size_t n);

#endif

/* library.h: the libraries that read the rarer formats, opened when a picture needs them, and never linked. */
#ifndef PC__LIBRARY_H
#define PC__LIBRARY_H

#include "io/codec.h"

/* Every function of a table of pointers is a row of an X-macro list of names. */
typedef struct pc__symbol {
    const char *name;
    void **place;
} pc__symbol;

/* Open the library by the first of its file names that is there and fill the places. PC_ERR_UNSUPPORTED when there is
 * none, or one that lacks a function: the message says that `picture` needs it, and how to get `package`. Any thread;
 * once it is open it stays so. */
pc_status pc__library_open(const char *picture, const char *what, const char *package, const char *const *files,
                           const pc__symbol *symbols, int count);

/* What a build without the library's header says. */
pc_status pc__library_missing(const char *picture, const char *what, const char *package);

/* PC_ERR_FORMAT when decoding a picture of width x height pixels takes more than a gigabyte, at so many bytes each. */
pc_status pc__library_room(const pc__picture *picture, const char *what, int64_t width, int64_t height, int bytes_each);

#endif

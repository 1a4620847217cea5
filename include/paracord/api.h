/* api.h: what every public header needs: export marks, version, attributes.
 *
 * Paracord's public names begin with pc_ or PC_. Names that begin with pc__ are internal and not exported.
 */
#ifndef PARACORD_API_H
#define PARACORD_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PC_VERSION_MAJOR 0
#define PC_VERSION_MINOR 1
#define PC_VERSION_PATCH 0
#define PC_VERSION "0.1.0"

#if defined(__GNUC__)
#define PC_API __attribute__((visibility("default")))
#define PC_MUST_USE __attribute__((warn_unused_result))
#define PC_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define PC_API
#define PC_MUST_USE
#define PC_PRINTF(format, first)
#endif

/* Options are open structs whose zero means "default", written at the call by designated initialisers:
 * PC_OPTIONS(pc_conv2d_options, .stride = 2). The same spelling works in C11 and in C++20 (there in the order of the
 * struct's members). g++ -Wextra would warn of the members that are left out; not in a system header. */
#ifdef __cplusplus
#ifdef __GNUC__
#pragma GCC system_header
#endif
#define PC_OPTIONS(type, ...) (type{__VA_ARGS__})
#define PC_BEGIN extern "C" {
#define PC_END }
#else
#define PC_OPTIONS(type, ...) ((type){.reserved_ = 0, __VA_ARGS__})
#define PC_BEGIN
#define PC_END
#endif

/* A block of the program, PC_BLOCK_(...) { ... }: `enter` gives a value of `type`, whose address `leave` gets at the
 * end, however the block is left (return, goto, break). It is a loop that ends after its first turn, written so that
 * compilers see that there is a first turn: what is set inside is set, and a function whose only return is inside
 * returns. Each compiler has its way to say so (clang would take gcc's, and warn of it). */
#define PC_BLOCK_(type, leave, enter) PC_BLOCK_NAMED_(__COUNTER__, type, leave, enter)
#define PC_BLOCK_NAMED_(n, type, leave, enter) PC_BLOCK_JOINED_(n, type, leave, enter)
#if defined(__clang__)
#define PC_BLOCK_JOINED_(n, type, leave, enter)                                                                        \
    switch (0)                                                                                                         \
    default:                                                                                                           \
        if (0) {                                                                                                       \
            pc_after_##n:;                                                                                             \
        } else                                                                                                         \
            for (type pc_block_##n __attribute__((unused, cleanup(leave))) = (enter);;                                 \
                 __extension__({ goto pc_after_##n; }))
#else
#define PC_BLOCK_JOINED_(n, type, leave, enter)                                                                        \
    switch (0)                                                                                                         \
        while (0)                                                                                                      \
        default:                                                                                                       \
            for (type pc_block_##n __attribute__((unused, cleanup(leave))) = (enter);; __extension__({ break; }))
#endif

PC_BEGIN

/* The version of the library that is running, "major.minor.patch". Never NULL; any thread. */
PC_API const char *pc_version(void);

/* Release a text that a function of the library made for the caller; NULL is fine. Any thread. */
PC_API void pc_text_free(char *text);

PC_END
#endif

/* support.h: what every test file includes: cmocka, and checks that print both values. */
#ifndef PC_TEST_SUPPORT_H
#define PC_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <paracord/error.h>

/* The status is PC_OK; otherwise print the thread's error. */
#define assert_ok(expression)                                                                                          \
    do {                                                                                                               \
        pc_status assert_status_ = (expression);                                                                       \
        if (assert_status_ != PC_OK)                                                                                   \
            fail_msg("%s: %s (%s)", #expression, pc_error_last()->message, pc_error_last()->cause);                    \
    } while (0)

/* The expression fails with `status` and a message that contains `words`; clears the error. */
#define assert_fails(expression, expected, words)                                                                      \
    do {                                                                                                               \
        pc_error_clear();                                                                                              \
        (void)!(expression);                                                                                           \
        if (pc_error_last()->status != (expected) || !strstr(pc_error_last()->message, (words)))                       \
            fail_msg("%s: want %s with \"%s\", got %s: %s", #expression, pc_status_name(expected), (words),            \
                     pc_status_name(pc_error_last()->status), pc_error_last()->message);                               \
        pc_error_clear();                                                                                              \
    } while (0)

#define assert_not_null_ok(pointer)                                                                                    \
    do {                                                                                                               \
        if (!(pointer))                                                                                                \
            fail_msg("%s is NULL: %s (%s)", #pointer, pc_error_last()->message, pc_error_last()->cause);               \
    } while (0)

#define assert_close(got, want, tolerance)                                                                             \
    do {                                                                                                               \
        double got_ = (got), want_ = (want), tolerance_ = (tolerance);                                                 \
        if (!(got_ - want_ <= tolerance_ && want_ - got_ <= tolerance_))                                               \
            fail_msg("%s: got %.9g, want %.9g within %g", #got, got_, want_, tolerance_);                              \
    } while (0)

#endif

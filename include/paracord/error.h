/* error.h: how things fail. Every function that can fail returns pc_status, or NULL where it returns an object.
 *
 *     pc_tensor *c = pc_add(a, b);            // ops take NULL and return NULL: chains need no checks between
 *     if (pc_failed())
 *         return pc_report(stderr);
 *
 * Each thread keeps its FIRST error since the last pc_error_clear(): later ones do not hide the cause. The error
 * lives in the thread's own memory, so that reporting "out of memory" needs none. Nothing here allocates, but for
 * reading the program's debug information when a report is written.
 *
 * A program that ends at an error needs no more than pc_report. One that goes on forgets the error first, or the next
 * failure is reported with the words of this one:
 *
 *     if (pc_image_read(path, options, &image) != PC_OK) {
 *         pc_report(stderr);
 *         pc_error_clear();                   // dealt with: the next error is a new one
 *         continue;
 *     }
 */
#ifndef PARACORD_ERROR_H
#define PARACORD_ERROR_H

#include <paracord/api.h>

PC_BEGIN

/* code, short name, sentence. The one list of errors. */
#define PC_STATUS_LIST(X)                                                                                              \
    X(PC_OK, "ok", "no error")                                                                                         \
    X(PC_ERR_ARGUMENT, "argument", "an argument is not valid")                                                         \
    X(PC_ERR_SHAPE, "shape", "the shapes do not fit together")                                                         \
    X(PC_ERR_DTYPE, "dtype", "the data type does not fit")                                                             \
    X(PC_ERR_RANGE, "range", "an index or value is out of range")                                                      \
    X(PC_ERR_DEVICE, "device", "the device is not there or does not fit")                                              \
    X(PC_ERR_MEMORY, "memory", "out of memory")                                                                        \
    X(PC_ERR_UNSUPPORTED, "unsupported", "this is not supported here")                                                 \
    X(PC_ERR_STATE, "state", "the object is not in a state that allows this")                                          \
    X(PC_ERR_FILE, "file", "a file could not be read or written")                                                      \
    X(PC_ERR_FORMAT, "format", "the content of a file is not what it should be")                                       \
    X(PC_ERR_NOT_FOUND, "not-found", "there is nothing of that name")                                                  \
    X(PC_ERR_INTERRUPTED, "interrupted", "stopped on request")                                                         \
    X(PC_ERR_BACKEND, "backend", "a device backend reported a failure")                                                \
    X(PC_ERR_LOST, "lost", "a device or a rank has stopped working")                                                   \
    X(PC_ERR_TIMEOUT, "timeout", "something did not happen within its time limit")

typedef enum pc_status {
#define PC_STATUS_ENUM(code, name, sentence) code,
    PC_STATUS_LIST(PC_STATUS_ENUM)
#undef PC_STATUS_ENUM
        PC_STATUS_COUNT
} pc_status;

#define PC_MESSAGE_MAX 512

typedef struct pc_error {
    pc_status status;
    char message[PC_MESSAGE_MAX]; /* one line: the thing, the cause, the way out */
    char cause[PC_MESSAGE_MAX];   /* the words of the system or library below (errno, libjpeg, CUDA), or "" */
    const char *file;             /* where in Paracord's source; static storage */
    int line;
    unsigned suppressed; /* errors that came after this one, unread */
    unsigned site;       /* the program's call that failed, for pc_error_place; 0: not known */
} pc_error;

/* The name ("shape") and the sentence of a status; "unknown" for numbers outside the list. Static storage. */
PC_API const char *pc_status_name(pc_status status);
PC_API const char *pc_status_text(pc_status status);

/* The calling thread's first error since it was last cleared; status is PC_OK when there is none. Never NULL; valid
 * until the thread ends, changed by the next failure after a clear. */
PC_API const pc_error *pc_error_last(void);

/* True when the calling thread has an error that was not cleared. */
PC_API bool pc_failed(void);

/* Forget the calling thread's error. */
PC_API void pc_error_clear(void);

/* Where in the program the call stands that failed with the calling thread's error: "train.c:41 (step)" where there is
 * debug information, else "program+0x1234 (step)"; "" where it is not known, and without an error. Slow: for reports.
 * Valid until the thread's next call of it. (Of queued work that fails later the message itself names the place.) */
PC_API const char *pc_error_place(void);

/* Write the calling thread's error to `out` as one line ("paracord: message: cause [train.c:41 (step)]") and return 1;
 * return 0 and write nothing when there is no error. Does not clear: whoever goes on calls pc_error_clear. Meant for
 * `return pc_report(stderr);` in main. */
PC_API int pc_report(FILE *out);

/* Record an error of your own in the calling thread (user modules, callbacks) and return `status`; PC_ERR_ARGUMENT
 * where that is no error, or without a text. */
PC_API pc_status pc_fail(pc_status status, const char *format, ...) PC_PRINTF(2, 3);

PC_END
#endif

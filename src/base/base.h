/* base.h: internal services that every floor uses: the one allocator, recording errors, text, logging. */
#ifndef PC__BASE_H
#define PC__BASE_H

#include <paracord/api.h>
#include <paracord/error.h>
#include <paracord/log.h>
#include <paracord/random.h>
#include <paracord/scope.h>
#include <string.h>

#define PC__COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define PC__MIN(a, b) ((a) < (b) ? (a) : (b))
#define PC__MAX(a, b) ((a) > (b) ? (a) : (b))

/* Return from a function that returns pc_status when `expression` is not PC_OK. */
#define PC__TRY(expression)                                                                                            \
    do {                                                                                                               \
        pc_status pc__try_status = (expression);                                                                       \
        if (pc__try_status != PC_OK)                                                                                   \
            return pc__try_status;                                                                                     \
    } while (0)

/* What libparacord-tools needs of libparacord besides its public functions: it comes out of the shared library under a
 * version that no other library asks for. tests/house/exports holds it to exactly that. */
#define PC__SHARED PC_API

/* What the files of the wider SIMD levels need besides (src/cpu/place), where there are such files: the same way. */
#if defined(__x86_64__)
#define PC__FOR_LEVELS PC_API
#else
#define PC__FOR_LEVELS
#endif

/* Record an error with its place. pc__fail gives back `status`; `cause` are words from below, or NULL. */
#define pc__fail(status, ...) pc__fail_at(__FILE__, __LINE__, (status), NULL, __VA_ARGS__)
#define pc__fail_cause(status, cause, ...) pc__fail_at(__FILE__, __LINE__, (status), (cause), __VA_ARGS__)
#define pc__null(status, ...) ((void)pc__fail_at(__FILE__, __LINE__, (status), NULL, __VA_ARGS__), (void *)NULL)
PC__SHARED pc_status pc__fail_at(const char *file, int line, pc_status status, const char *cause, const char *format,
                                 ...) PC_PRINTF(5, 6);

/* The first lines of a public function, one for each argument that must not be NULL: return, with PC_ERR_ARGUMENT
 * "pc_read: host is NULL", or with the error that is there already, which may be what made it NULL. PC__NEED is for
 * functions that return pc_status, PC__NEED_OR for others (nothing stands for void). */
#define PC__NEED_OR(otherwise, pointer)                                                                                \
    do {                                                                                                               \
        if (!(pointer)) {                                                                                              \
            (void)pc__fail_null(__FILE__, __LINE__, __func__, #pointer);                                               \
            return otherwise;                                                                                          \
        }                                                                                                              \
    } while (0)
#define PC__NEED(pointer)                                                                                              \
    do {                                                                                                               \
        if (!(pointer))                                                                                                \
            return pc__fail_null(__FILE__, __LINE__, __func__, #pointer);                                              \
    } while (0)
PC__SHARED pc_status pc__fail_null(const char *file, int line, const char *function, const char *argument);

/* Record "what: the system's words" for errno `number`: PC_ERR_MEMORY for ENOMEM, else PC_ERR_FILE. */
PC__SHARED pc_status pc__fail_errno(const char *file, int line, int number, const char *format, ...) PC_PRINTF(4, 5);
#define pc__fail_file(number, ...) pc__fail_errno(__FILE__, __LINE__, (number), __VA_ARGS__)

/* That errno, while the calling thread's error is one of pc__fail_errno that was recorded here; else 0. */
int pc__error_number(void);

/* Put words in front of the calling thread's error, in the place of its first `instead` characters; its end is cut
 * where there is no room. */
void pc__error_before(const char *words, size_t instead);

/* Where the place of the calling thread's error is unknown, it is that of this call: frames cannot be followed out of a
 * kernel, which has no frame pointer and may be in a file of its own. */
void pc__error_here(void);

/* Carry errors between threads: take the calling thread's error out of its record (PC_OK when there is none), and
 * record a taken one as if it had happened here; that gives back its status. */
PC__SHARED pc_error pc__error_take(void);
PC__SHARED pc_status pc__error_put(const pc_error *error);

/* Memory from the replaceable allocator. NULL records PC_ERR_MEMORY with the size asked for. Zero bytes count as one.
 * pc__calloc zeroes. pc__realloc moves blocks of pc__alloc; the old block stays valid on failure. */
PC__SHARED void *pc__alloc(size_t bytes) PC_MUST_USE;
PC__SHARED void *pc__calloc(size_t count, size_t size) PC_MUST_USE;
PC__FOR_LEVELS void *pc__alloc_aligned(size_t bytes, size_t alignment) PC_MUST_USE;
PC__SHARED void *pc__try_alloc_aligned(size_t bytes, size_t alignment) PC_MUST_USE; /* the same, recording no error */
PC__SHARED void *pc__realloc(void *block, size_t bytes) PC_MUST_USE;
PC__SHARED char *pc__strdup(const char *text) PC_MUST_USE;
PC__SHARED void pc__free(void *block);

/* In the child of a fork: from now on memory is malloc's, and nothing that was there before is freed any more. */
void pc__alloc_plainly(void);

/* Make room for one more element in a growing array: *items has `count` elements of `size` bytes and room for
 * *capacity. Usable on an empty array (NULL, 0). */
PC__SHARED pc_status pc__grow(void **items, int *capacity, int count, size_t size);

/* A text that grows: append formatted pieces; after a failed allocation further appends do nothing and `failed` says
 * so. Release with pc__text_free, or take `data` (from pc__alloc). Start from {0}. */
typedef struct pc__text {
    char *data;
    size_t length, capacity;
    bool failed;
} pc__text;
PC__SHARED void pc__text_add(pc__text *text, const char *format, ...) PC_PRINTF(2, 3);
PC__SHARED void pc__text_append(pc__text *text, const char *bytes, size_t n);
PC__SHARED void pc__text_free(pc__text *text);

/* Bytes of the UTF-8 sequence at `s` (zero-terminated), or 0 where there is none: overlong forms and surrogates too. */
PC__SHARED int pc__utf8_length(const char *s);
bool pc__is_utf8(const char *text);

/* JSON: a quoted string (what is no UTF-8 becomes U+FFFD); the shortest digits that read back as the same number, with
 * a point whatever the locale, "null" when it is not finite. */
PC__SHARED void pc__json_string(pc__text *out, const char *text);
PC__SHARED void pc__json_number(pc__text *out, double number);

/* Take `object` out of the innermost scope; the caller is its owner then. False when an outer scope owns it. */
bool pc__scope_forget(void *object);

/* How many PC_NO_GRAD and PC_MANUAL_ORDER the calling thread is in. They nest with scopes: a scope that closes takes
 * back what was begun inside and left by longjmp, and says so in the log. */
typedef struct pc__modes {
    int no_grad, manual_order;
} pc__modes;
extern _Thread_local pc__modes pc__mode;

/* Log a line when a callback wants the level. */
void pc__log(pc_log_level level, const char *format, ...) PC_PRINTF(2, 3);

/* Which of the words the variable of the environment says. -1: it is not set or empty; or it says something else, which is
 * told on standard error, once, with the words that there are. */
int pc__env_word(const char *variable, const char *const *words, int count);

/* Tell on standard error why what the variable asks for cannot be had. */
void pc__env_unmet(const char *variable, const char *why);

/* Reserve the next step of the calling thread's generator. */
pc_generator pc__generator_next(void);

/* CPU cores this process may use, by its affinity mask and the quota of its control groups, at least 1; of the quota a
 * rank has a part like that of each other one of its host (launcher.h). _in: with the quota of pc__cpu_quota(root). */
PC__SHARED int pc__cpu_count(void);
int pc__cpu_count_in(const char *root);

/* That quota in cores, which need not be whole, as the files below the folder `root` have it; 0: there is no limit. */
double pc__cpu_quota(const char *root);

#endif

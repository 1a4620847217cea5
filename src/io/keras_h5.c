/* keras_h5.c: entering HDF5, its errors, and lists of texts. */
#include "base/base.h"

#if PC_HAVE_HDF5 && PC_HAVE_CJSON

#include "io/keras_h5.h"

#include <pthread.h>
#include <stdarg.h>

/* Distributions build HDF5 without its own thread safety. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

pc__h5_quiet pc__h5_enter(void)
{
    pc__h5_quiet quiet = {NULL, NULL};
    pthread_mutex_lock(&one_at_a_time);
    H5Eget_auto2(H5E_DEFAULT, &quiet.print, &quiet.context);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return quiet;
}

void pc__h5_leave(pc__h5_quiet quiet)
{
    H5Eset_auto2(H5E_DEFAULT, quiet.print, quiet.context);
    pthread_mutex_unlock(&one_at_a_time);
}

typedef struct walk {
    char cause[PC_MESSAGE_MAX];
    bool starved;
} walk;

static herr_t take_innermost(unsigned n, const H5E_error2_t *error, void *context)
{
    walk *w = context;
    if (n == 0 && error->desc)
        snprintf(w->cause, sizeof w->cause, "%s", error->desc);
    w->starved = w->starved || error->min_num == H5E_NOSPACE || error->min_num == H5E_CANTALLOC;
    return 0;
}

pc_status pc__h5_fail_at(const char *file, int line, const char *format, ...)
{
    char message[PC_MESSAGE_MAX];
    walk w = {.cause = ""};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &w);
    H5Eclear2(H5E_DEFAULT);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return pc__fail_at(file, line, w.starved ? PC_ERR_MEMORY : PC_ERR_FORMAT, w.cause, "%s", message);
}

pc_status pc__names_add(pc__names *names, const char *text, size_t n)
{
    PC__TRY(pc__grow((void **)&names->items, &names->capacity, names->count, sizeof *names->items));
    char *copy = pc__alloc(n + 1);
    if (!copy)
        return PC_ERR_MEMORY;
    memcpy(copy, text, n);
    copy[n] = 0;
    names->items[names->count++] = copy;
    return PC_OK;
}

void pc__names_free(pc__names *names)
{
    for (int i = 0; i < names->count; i++)
        pc__free(names->items[i]);
    pc__free(names->items);
    *names = (pc__names){0};
}

#endif

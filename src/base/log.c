/* log.c: the log callback; one call at a time. */
#include "base.h"

#include <pthread.h>
#include <stdarg.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pc_log_fn callback;
static void *callback_context;
static pc_log_level lowest_level;

void pc_log_set(pc_log_fn function, void *context, pc_log_level lowest)
{
    pthread_mutex_lock(&lock);
    callback = function;
    callback_context = context;
    lowest_level = lowest;
    pthread_mutex_unlock(&lock);
}

void pc__log(pc_log_level level, const char *format, ...)
{
    pthread_mutex_lock(&lock);
    if (callback && level >= lowest_level) {
        char line[1024];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        callback(callback_context, level, line);
    }
    pthread_mutex_unlock(&lock);
}

/* log.h: what the library has to say beside errors, handed to a callback. Without one it says nothing. */
#ifndef PARACORD_LOG_H
#define PARACORD_LOG_H

#include <paracord/api.h>

PC_BEGIN

typedef enum pc_log_level { PC_LOG_DEBUG, PC_LOG_INFO, PC_LOG_WARNING } pc_log_level;

/* `line` has no newline and lives until the callback returns. Called from any thread, one call at a time. The callback
 * must not call pc_log_set or into the function that logged. */
typedef void (*pc_log_fn)(void *context, pc_log_level level, const char *line);

/* Set the callback (NULL: none) and the lowest level it wants. Any thread. */
PC_API void pc_log_set(pc_log_fn callback, void *context, pc_log_level lowest);

PC_END
#endif

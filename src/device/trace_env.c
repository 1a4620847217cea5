/* trace_env.c: PARACORD_TRACE=file.json, for programs that know nothing of traces. Who set it hears on standard error
 * what goes wrong: the program has no place to say it. */
#include "device/trace_write.h"

#include <paracord/trace.h>
#include <stdlib.h>

static bool asked;

void pc__trace_complain(const char *message, const char *cause)
{
    const char *colon = cause[0] ? ": " : "";
    pc__log(PC_LOG_WARNING, "%s%s%s", message, colon, cause);
    if (asked)
        fprintf(stderr, "paracord: PARACORD_TRACE: %s%s%s\n", message, colon, cause);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = secure_getenv("PARACORD_TRACE");
    asked = path && path[0];
    if (!asked || pc_trace_start(path) == PC_OK)
        return;
    pc__trace_complain(pc_error_last()->message, pc_error_last()->cause);
    pc_error_clear();
}

__attribute__((destructor)) static void end(void)
{
    pc__trace_finish_file();
}

/* trace_env.c: PARACORD_TRACE=file.json, for programs that know nothing of traces. Who set it hears on standard error what
 * goes wrong: the program has no place to say it. */
#include "device/trace_write.h"

#include <paracord/trace.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool asked;

void pc__trace_complain(const char *message, const char *cause)
{
    const char *colon = cause[0] ? ": " : "";
    pc__log(PC_LOG_WARNING, "%s%s%s", message, colon, cause);
    if (asked)
        fprintf(stderr, "paracord: PARACORD_TRACE: %s%s%s\n", message, colon, cause);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return path[strlen(path) - 1] == '/' || (stat(path, &about) == 0 && S_ISDIR(about.st_mode));
}

/* trace.json of rank 3 is trace.rank3.json; any other name is a folder for ranks: FOLDER/trace.rank3.json. In a folder that is
 * there, a process that is no rank of several has its number in the name. */
static void path_for(const char *given, char *path, size_t n)
{
    char who[PC__TRACE_RANK_NAME] = "";
    const size_t length = strlen(given);
    const bool json = length > 5 && strcmp(given + length - 5, ".json") == 0;
    if (pc__trace_rank_name)
        pc__trace_rank_name(who);
    if (is_folder(given) || (who[0] && !json)) {
        (void)mkdir(given, 0777);
        if (!who[0])
            snprintf(who, sizeof who, ".%d", (int)getpid());
        snprintf(path, n, "%s%strace%s.json", given, given[length - 1] == '/' ? "" : "/", who);
        return;
    }
    snprintf(path, n, "%.*s%s%s", (int)(length - (json ? 5 : 0)), given, who, json ? ".json" : "");
}

__attribute__((constructor)) static void begin(void)
{
    char path[4096];
    const char *given = secure_getenv("PARACORD_TRACE");
    asked = given && given[0];
    if (!asked)
        return;
    path_for(given, path, sizeof path);
    if (pc_trace_start(path) == PC_OK)
        return;
    pc__trace_complain(pc_error_last()->message, pc_error_last()->cause);
    pc_error_clear();
}

void pc__trace_leave_to_ranks(void)
{
    if (asked)
        pc__trace_abandon();
}

__attribute__((destructor)) static void end(void)
{
    pc__trace_finish_file();
}

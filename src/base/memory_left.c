/* memory_left.c: how much memory this process can still get. */
#include "base/base.h"

#include <math.h>
#include <paracord/memory.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number behind `name` at the beginning of a line of the file; of a file of one number that one. NaN: none. */
static double number_in(const char *path, const char *name)
{
    char line[256];
    double number = NAN;
    FILE *file = fopen(path, "re");
    while (file && isnan(number) && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)) && sscanf(line + strlen(name), " %lf", &number) != 1)
            number = NAN;
    if (file)
        fclose(file);
    return number;
}

/* What a control group may still take: files that are only kept can go. */
static double left_in(const char *folder, const char *most, const char *used, const char *kept)
{
    char path[3][512];
    const char *const names[] = {most, used, "memory.stat"};
    for (int i = 0; i < 3; i++)
        if (snprintf(path[i], sizeof path[i], "%s/%s", folder, names[i]) >= (int)sizeof path[i])
            return HUGE_VAL;
    const double limit = number_in(path[0], ""), files = number_in(path[2], kept);
    const double left = limit - number_in(path[1], "") + (files > 0 ? files : 0);
    return isnan(left) ? HUGE_VAL : left;
}

/* This process's group of version 2 and all that it is in; a container sees its own as the root. */
static double left_in_groups(void)
{
    static const char root[] = "/sys/fs/cgroup";
    char folder[400] = "/sys/fs/cgroup", line[300];
    double left = HUGE_VAL;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "0::/", 4)) {
            line[strcspn(line, "\n")] = 0;
            snprintf(folder, sizeof folder, "%s%s", root, line + 3);
        }
    if (file)
        fclose(file);
    for (char *end = folder + strlen(folder); end; end = strlen(folder) > strlen(root) ? strrchr(folder, '/') : NULL) {
        *end = 0;
        left = fmin(left, left_in(folder, "memory.max", "memory.current", "inactive_file "));
    }
    return fmin(left, left_in("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                              "total_inactive_file "));
}

/* What `ulimit` leaves: of addresses (statm's first number, in pages), or of data (its sixth). */
static double left_of_limit(int resource, int column)
{
    struct rlimit most;
    double pages = 0;
    if (getrlimit((__rlimit_resource_t)resource, &most) != 0 || most.rlim_cur == RLIM_INFINITY)
        return HUGE_VAL;
    FILE *file = fopen("/proc/self/statm", "re");
    for (int i = 0; file && i <= column; i++)
        if (fscanf(file, "%lf", &pages) != 1)
            pages = 0;
    if (file)
        fclose(file);
    return (double)most.rlim_cur - pages * (double)sysconf(_SC_PAGESIZE);
}

int64_t pc_memory_left(void)
{
    const double machine = number_in("/proc/meminfo", "MemAvailable:") * 1024;
    const double limits = fmin(left_of_limit(RLIMIT_AS, 0), left_of_limit(RLIMIT_DATA, 5));
    const double left = fmin(isnan(machine) ? HUGE_VAL : machine, fmin(limits, left_in_groups()));
    return left < 0 ? 0 : left < 9e18 ? (int64_t)left : INT64_MAX;
}

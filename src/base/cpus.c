/* cpus.c: how many cores this process may use: its affinity mask, and the quota of its control groups, which is how
 * containers are limited: more threads than a quota has cores for are stopped together for most of each period.
 * (cgroups(7); Linux, Documentation/admin-guide/cgroup-v2.rst, "cpu.max", and scheduler/sched-bwc.rst) */
#include "base/launcher.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_MOST = 4096 };

/* The first line of the file, "" where there is none. */
static void first_line(const char *path, char *line, int size)
{
    line[0] = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (!fgets(line, size, file))
        line[0] = 0;
    fclose(file);
}

/* Cores that one group of either version may use; 0 without a limit. */
static double limit_of_group(const char *folder)
{
    char path[PATH_MOST + 32], line[64];
    double quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder); /* "200000 100000" or "max 100000" */
    first_line(path, line, sizeof line);
    if (sscanf(line, "%lf %lf", &quota, &period) != 2) {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder); /* -1: no limit */
        first_line(path, line, sizeof line);
        quota = strtod(line, NULL);
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        first_line(path, line, sizeof line);
        period = strtod(line, NULL);
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* Of two limits; 0 is none. */
static double lesser(double a, double b)
{
    return a > 0 && (b == 0 || a < b) ? a : b;
}

/* The least limit from the group at `path` up to the top of the hierarchy that is mounted at `mount`. In a container
 * `path` may be that of the host, where nothing is seen, and the top is the container's own group. */
static double limit_of_hierarchy(const char *mount, const char *path)
{
    char folder[PATH_MOST];
    double least = 0;
    const int top = snprintf(folder, sizeof folder, "%s", mount);
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder)
        return 0;
    for (char *end = strchr(folder, 0); end && end >= folder + top; end = strrchr(folder, '/')) {
        *end = 0;
        least = lesser(limit_of_group(folder), least);
    }
    return least;
}

/* Whether a comma-separated list of controllers has "cpu". */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; (at = strstr(at, "cpu")); at += 3)
        if ((at == controllers || at[-1] == ',') && (at[3] == ',' || !at[3]))
            return true;
    return false;
}

/* The limit of a group of the hierarchy with these controllers, "" for version 2. Version 1 is mounted under their names,
 * in whatever order, with a link for each. */
static double limit_of_controllers(const char *root, const char *controllers, const char *group)
{
    char mount[PATH_MOST + 64];
    group = strcmp(group, "/") == 0 ? "" : group;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root, *controllers ? "/" : "", controllers);
    const double limit = limit_of_hierarchy(mount, group);
    if (!*controllers)
        return limit;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
    return lesser(limit_of_hierarchy(mount, group), limit);
}

double pc__cpu_quota(const char *root)
{
    char path[PATH_MOST], line[PATH_MOST];
    double least = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) { /* "0::/user.slice" or "4:cpu,cpuacct:/docker/1f0e" */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        controllers++;
        *group++ = 0;
        if (*controllers && !has_cpu(controllers))
            continue;
        least = lesser(limit_of_controllers(root, controllers, group), least);
    }
    if (file)
        fclose(file);
    return least;
}

/* Threads that a quota has cores for: part of one is worth a thread, but not to several ranks, which it would stop together.
 */
static int threads_of_quota(double quota, int ranks)
{
    const int whole = (int)(quota / ranks);
    return whole + (ranks == 1 && quota > whole);
}

int pc__cpu_count_in(const char *root)
{
    cpu_set_t set;
    int n = (int)sysconf(_SC_NPROCESSORS_ONLN); /* where there are more processors than a cpu_set_t has bits */
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    const double quota = pc__cpu_quota(root);
    if (quota > 0) /* who starts several ranks on a host has them all in one control group */
        n = (int)PC__MIN(n, threads_of_quota(PC__MIN(quota, 1e6), pc__ranks_of_host(getenv)));
    return PC__MAX(1, n);
}

int pc__cpu_count(void)
{
    return pc__cpu_count_in("");
}

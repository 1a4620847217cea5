/* root_inside.c: the copy of a machine is read as that machine would be: its links lead to places in the copy, never
 * out of it. */
#include "probe/root_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel has it */

/* What is still to be walked, and the way there that has no link in it any more. */
typedef struct walk {
    char rest[PATH_MAX], real[PATH_MAX];
} walk;

/* Take the last part off the way. */
static void step_back(walk *w)
{
    char *slash = strrchr(w->real, '/');
    *(slash ? slash : w->real) = 0;
}

/* The next part of the rest goes behind the way; false when that gets too long. */
static bool step(walk *w)
{
    char *begin = w->rest + strspn(w->rest, "/");
    size_t n = strcspn(begin, "/"), used = strlen(w->real);
    bool fine = used + n + 2 < sizeof w->real;
    if (n == 2 && !strncmp(begin, "..", 2))
        step_back(w);
    else if (fine && n && !(n == 1 && *begin == '.'))
        snprintf(w->real + used, sizeof w->real - used, "%s%.*s", used ? "/" : "", (int)n, begin);
    n += strspn(begin + n, "/");
    memmove(w->rest, begin + n, strlen(begin + n) + 1);
    return fine;
}

/* The link at the end of the way points to `target`: that is walked next, from the copy's root or from beside it. */
static bool turn(walk *w, const char *target)
{
    char rest[PATH_MAX];
    bool fine = (size_t)snprintf(rest, sizeof rest, "%s/%s", target, w->rest) < sizeof rest;
    step_back(w);
    if (*target == '/')
        w->real[0] = 0;
    memcpy(w->rest, rest, sizeof rest);
    return fine;
}

/* Walk to the end; a link there is followed or left. */
static bool resolve(pc__root *root, bool follow_last, walk *w)
{
    char target[PATH_MAX];
    for (int links = 0; w->rest[0];) {
        if (!step(w)) {
            errno = ENAMETOOLONG;
            return false;
        }
        ssize_t n = w->real[0] && (w->rest[0] || follow_last)
                        ? readlinkat(root->folder, w->real, target, sizeof target - 1)
                        : -1;
        if (n < 0)
            continue;
        target[n] = 0;
        if (++links > LINKS_MAX || !turn(w, target)) {
            errno = ELOOP;
            return false;
        }
    }
    return true;
}

int pc__root_open_in(pc__root *root, const char *path, int flags)
{
    walk w = {.real = ""};
    flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    if (root->live)
        return openat(root->folder, *path ? path : ".", flags);
    if ((size_t)snprintf(w.rest, sizeof w.rest, "%s", path) >= sizeof w.rest) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return resolve(root, true, &w) ? openat(root->folder, w.real[0] ? w.real : ".", flags | O_NOFOLLOW) : -1;
}

ssize_t pc__root_link_in(pc__root *root, const char *path, char *target, size_t n)
{
    walk w = {.real = ""};
    if (root->live)
        return readlinkat(root->folder, path, target, n);
    if ((size_t)snprintf(w.rest, sizeof w.rest, "%s", path) >= sizeof w.rest || !resolve(root, false, &w))
        return -1;
    return readlinkat(root->folder, w.real, target, n);
}

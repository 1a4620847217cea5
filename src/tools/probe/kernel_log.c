/* kernel_log.c: what the kernel said about GPUs: from the kernel itself where that is allowed, else from log files. */
#include "probe/doctor.h"

#include <sys/klog.h>

#define LOG_MAX (4 << 20)
enum { READ_ALL = 3, SIZE = 10 }; /* of klogctl */

/* Lines that say something of GPUs or of modules that were refused; the rest is nobody's business. */
static bool concerns(const char *line)
{
    static const char *const words[] = {"NVRM",
                                        "nvidia",
                                        "nouveau",
                                        "Xid",
                                        "amdgpu",
                                        "unsigned",
                                        "module verification",
                                        "Key was rejected",
                                        "key is rejected",
                                        "Lockdown",
                                        "AER:",
                                        ": no space for",
                                        "can't assign",
                                        ": failed to assign",
                                        "blocked for more than"};
    for (int i = 0; i < PC__COUNT(words); i++)
        if (strstr(line, words[i]))
            return true;
    return false;
}

const char *pc__log_line(const char *at, char line[PC__LOG_LINE])
{
    size_t n = 0;
    while (at[n] && at[n] != '\n') /* strcspn, as sanitizers check it, looks at all of a long log for each line */
        n++;
    const size_t kept = PC__MIN(n, (size_t)PC__LOG_LINE - 1);
    memcpy(line, at, kept);
    line[kept] = 0;
    char *text = line, *head = strstr(line, "kernel: ");
    text = head ? head + strlen("kernel: ") : text;
    text += strspn(text, " ");
    if (*text == '[' && (head = strchr(text, ']')))
        text = head + 1;
    text += strspn(text, " ");
    memmove(line, text, strlen(text) + 1);
    return at[n] ? at + n + 1 : NULL;
}

static void filter(char *text)
{
    static const char start[] = "Linux version "; /* log files go back further than this start of the kernel */
    char *to = text, *begin = text;
    for (char *at = text; (at = strstr(at, start)); at++)
        begin = at;
    char *last = begin + strlen(begin);
    for (char *line = begin, *end; line < last; line = end) {
        char *newline = memchr(line, '\n', (size_t)(last - line));
        size_t n = (size_t)((newline ? newline : last) - line);
        end = newline ? newline + 1 : last;
        line[n] = 0;
        if (!concerns(line))
            continue;
        memmove(to, line, n);
        to += n;
        if (end > line + n) /* else there may be no room behind it */
            *to++ = '\n';
    }
    *to = 0;
}

static char *from_kernel(void)
{
    int size = klogctl(SIZE, NULL, 0);
    if (size <= 0)
        return NULL;
    size = PC__MIN(size, LOG_MAX);
    char *text = pc__try_alloc_aligned((size_t)size + 2, 16);
    int n = text ? klogctl(READ_ALL, text, size) : -1;
    if (n < 0) {
        pc__free(text);
        return NULL;
    }
    text[n] = 0;
    return text;
}

char *pc__kernel_log(pc__machine *m)
{
    static const char *const files[] = {"var/log/kern.log", "var/log/messages", "var/log/dmesg"};
    if (!pc__root_live(m->root)) {
        char *text = pc__root_text(m->root, "answers/kernel-log", LOG_MAX, true);
        if (text)
            return text;
    }
    char *text = pc__root_live(m->root) ? from_kernel() : NULL;
    for (int i = 0; !text && i < PC__COUNT(files); i++)
        text = pc__root_whole(m->root, files[i], LOG_MAX, true);
    if (!text)
        return NULL;
    filter(text);
    pc__root_note(m->root, "answers/kernel-log", text);
    return text;
}

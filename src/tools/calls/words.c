/* words.c: calls, ranks and times in words. */
#include "calls/calls.h"

#include <math.h>

static const char *volume(int64_t bytes, char text[32])
{
    const double n = (double)bytes;
    if (bytes < 1000)
        snprintf(text, 32, "%lld bytes", (long long)bytes);
    else if (n < 1e6)
        snprintf(text, 32, "%.1f kB", n / 1e3);
    else if (n < 1e9)
        snprintf(text, 32, "%.1f MB", n / 1e6);
    else
        snprintf(text, 32, "%.1f GB", n / 1e9);
    return text;
}

static const char *thousands(int64_t number, char text[32])
{
    char digits[24];
    size_t at = 0;
    const int n = snprintf(digits, sizeof digits, "%lld", (long long)number);
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

void pc__seen_words(const pc__seen_call *call, char *text, size_t n)
{
    char bytes[32], count[32], more[48] = "";
    if (!call->dtype[0]) {
        snprintf(text, n, "%s", call->op);
        return;
    }
    if (call->reduction[0])
        snprintf(more, sizeof more, ", %s", call->reduction);
    if (call->peer >= 0) {
        const size_t at = strlen(more);
        const char *role = !strcmp(call->op, "send") ? "to" : !strcmp(call->op, "receive") ? "from" : "root";
        snprintf(more + at, sizeof more - at, ", %s %d", role, call->peer);
    }
    snprintf(text, n, "%s of %s (%s %s%s)", call->op, volume(call->bytes, bytes), thousands(call->count, count),
             call->dtype, more);
}

void pc__seen_place(const pc__seen_call *call, char *text, size_t n)
{
    char words[128];
    pc__seen_words(call, words, sizeof words);
    if (call->number && !pc__seen_is_pair(call))
        snprintf(text, n, "%lld of %s, %s", (long long)call->number, call->group, words);
    else
        snprintf(text, n, "%s, %s", call->group, words);
}

void pc__seen_ranks(const bool *set, int count, char *text, size_t n)
{
    int total = 0;
    size_t at;
    for (int i = 0; i < count; i++)
        total += set[i];
    text[0] = 0;
    if (!total)
        return;
    at = (size_t)snprintf(text, n, total == 1 ? "rank " : "ranks ");
    for (int i = 0, some = 0; i < count && at < n; i++) {
        int end = i;
        if (!set[i])
            continue;
        while (end + 1 < count && set[end + 1])
            end++;
        if (at + 32 > n) {
            snprintf(text + at, n - at, ", ...");
            return;
        }
        at += (size_t)snprintf(text + at, n - at, "%s%d", some++ ? ", " : "", i);
        if (end > i)
            at += (size_t)snprintf(text + at, n - at, "%s%d", end > i + 1 ? "-" : ", ", end);
        i = end;
    }
}

const char *pc__seen_time(double seconds, char text[32])
{
    const double s = fabs(seconds);
    if (isnan(seconds))
        snprintf(text, 32, "an unknown time");
    else if (s < 999.5e-6)
        snprintf(text, 32, "%.0f us", 1e6 * s);
    else if (s < 0.9995)
        snprintf(text, 32, "%.3g ms", 1e3 * s);
    else
        snprintf(text, 32, s < 99.95 ? "%.1f s" : "%.0f s", s);
    return text;
}

const char *pc__seen_state(pc__call_state state)
{
    static const char *const names[PC__SEEN_STATES] = {"queued", "running", "done", "failed", "recorded"};
    return names[state];
}

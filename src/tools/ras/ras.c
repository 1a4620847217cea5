/* ras.c: asking a job, and what two answers say together. */
#include "ras/parts.h"

pc_ras *pc_ras_new(pc_ras_options options)
{
    char address[128] = "";
    pc__text text = {0};
    pc_ras *ras = NULL;
    if (pc__ras_ask(&options, address, &text) == PC_OK)
        ras = pc_ras_read(text.data);
    pc__text_free(&text);
    if (ras)
        snprintf(ras->address, sizeof ras->address, "%s", address);
    return ras;
}

void pc_ras_free(pc_ras *ras)
{
    if (!ras)
        return;
    pc__free(ras->groups);
    pc__free(ras->ranks);
    pc__free(ras->counts);
    pc__free((char *)(uintptr_t)ras->text);
    pc__free(ras);
}

/* Calls that ranks have launched there. */
typedef struct span {
    const char *communicator, *operation;
    bool any;
    long long most, least;
} span;

static void count_in(span *s, const char *communicator, const char *operation, long long calls)
{
    if (calls < 0 || strcmp(communicator, s->communicator) || strcmp(operation, s->operation))
        return;
    s->most = s->any ? PC__MAX(s->most, calls) : calls;
    s->least = s->any ? PC__MIN(s->least, calls) : calls;
    s->any = true;
}

static span span_of(const pc_ras *ras, const char *communicator, const char *operation)
{
    span s = {.communicator = communicator, .operation = operation};
    for (int i = 0; i < ras->count_count; i++)
        count_in(&s, ras->counts[i].communicator, ras->counts[i].operation, ras->counts[i].calls);
    for (int i = 0; i < ras->rank_count; i++)
        count_in(&s, ras->ranks[i].communicator, ras->ranks[i].operation, ras->ranks[i].calls);
    return s;
}

static bool moved(const pc_ras *first, const pc_ras *second, const char *communicator, const char *operation)
{
    const span before = span_of(first, communicator, operation), after = span_of(second, communicator, operation);
    if (!before.any)
        return false;
    return !after.any || after.most > before.most || after.least > before.least; /* none: all have launched as many */
}

bool pc_ras_moved(const pc_ras *first, const pc_ras *second)
{
    PC__NEED_OR(false, first);
    PC__NEED_OR(false, second);
    bool any = false;
    for (int i = 0; i < first->count_count; i++)
        any |= moved(first, second, first->counts[i].communicator, first->counts[i].operation);
    for (int i = 0; i < first->rank_count; i++)
        any |= moved(first, second, first->ranks[i].communicator, first->ranks[i].operation);
    return any;
}

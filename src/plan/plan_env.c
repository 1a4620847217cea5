/* plan_env.c: PARACORD_PLAN. Who set it in the environment asked for lines on standard error; this file alone prints. */
#include "plan/plan.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const passes[PC__PASSES] = {
    [PC__PASS_DUPLICATES] = "duplicates", [PC__PASS_DEAD] = "dead",       [PC__PASS_SHADOWS] = "shadows",
    [PC__PASS_EPILOGUES] = "epilogues",   [PC__PASS_GELU] = "gelu",       [PC__PASS_NORMS] = "norms",
    [PC__PASS_COPIES] = "copies",         [PC__PASS_PLACES] = "places",   [PC__PASS_REGIONS] = "regions",
    [PC__PASS_CASTS] = "casts",           [PC__PASS_PITCHES] = "pitches", [PC__PASS_LOSSES] = "losses",
    [PC__PASS_BRANCHES] = "branches",     [PC__PASS_ASIDE] = "aside",     [PC__PASS_SHARING] = "sharing"};

static struct {
    bool print;
    bool without[PC__PASSES];
} said;

static int pass_of(const char *name, size_t length)
{
    for (int i = PC__PASS_NONE + 1; i < PC__PASSES; i++)
        if (strlen(passes[i]) == length && memcmp(passes[i], name, length) == 0)
            return i;
    return PC__PASS_NONE;
}

/* False for a word that means nothing. */
static bool take(const char *word, size_t length)
{
    const int pass = word[0] == '-' ? pass_of(word + 1, length - 1) : PC__PASS_NONE;
    const bool plain = length == 5 && memcmp(word, "plain", 5) == 0,
               print = length == 5 && memcmp(word, "print", 5) == 0;
    said.print |= print;
    for (int i = 0; i < PC__PASSES; i++)
        said.without[i] |= plain || i == pass;
    return plain || print || pass != PC__PASS_NONE;
}

static void read_words(void)
{
    static const char between[] = ", ";
    const char *words = getenv("PARACORD_PLAN");
    for (words = words ? words + strspn(words, between) : ""; *words; words += strspn(words, between)) {
        const size_t length = strcspn(words, between);
        if (!take(words, length))
            fprintf(
                stderr,
                "paracord: PARACORD_PLAN does not know \"%.*s\"; the valid words are print, plain, -duplicates, -dead, "
                "-shadows, -epilogues, -gelu, -norms, -copies, -places, -regions, -casts, -pitches, -losses, "
                "-branches, -aside "
                "and "
                "-sharing\n",
                (int)length, words);
        words += length;
    }
}

static void ask(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_words);
}

const char *pc__pass_name(pc__pass pass)
{
    return passes[pass];
}

bool pc__plan_allows(pc__pass pass)
{
    ask();
    return !said.without[pass];
}

void pc__plan_print(const pc_graph *graph)
{
    ask();
    char *text = said.print ? pc__plan_text(graph) : NULL;
    if (text)
        fprintf(stderr, "%s", text);
    pc__free(text);
}

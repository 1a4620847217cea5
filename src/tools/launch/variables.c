/* variables.c: the environment of a rank: torchrun's names, so that programs of PyTorch start, too. */
#if PC_HAVE_UV
#include "launch/parts.h"

#include <stdlib.h>
#include <unistd.h>

/* Of whoever started the launcher itself, and would tell a rank something else. A name that ends with _ stands for all
 * that begin so. */
static const char *const dropped[] = {"RANK",
                                      "WORLD_SIZE",
                                      "LOCAL_RANK",
                                      "LOCAL_WORLD_SIZE",
                                      "GROUP_RANK",
                                      "GROUP_WORLD_SIZE",
                                      "ROLE_RANK",
                                      "ROLE_WORLD_SIZE",
                                      "MASTER_ADDR",
                                      "MASTER_PORT",
                                      "TORCHELASTIC_",
                                      "PARACORD_STORE",
                                      "PARACORD_TOKEN",
                                      "PARACORD_STORE_PORT",
                                      "PMIX_",
                                      "PMI_",
                                      "OMPI_COMM_WORLD_",
                                      "OMPI_MCA_orte_",
                                      "OMPI_MCA_ess_"};

static bool is_dropped(const char *variable)
{
    const size_t length = strcspn(variable, "=");
    for (int i = 0; i < PC__COUNT(dropped); i++) {
        const size_t n = strlen(dropped[i]);
        if (!strncmp(variable, dropped[i], n) && (dropped[i][n - 1] == '_' || length == n))
            return true;
    }
    return false;
}

typedef struct list {
    char **texts;
    int capacity, count;
    bool failed;
} list;

static void add(void *context, const char *text)
{
    list *l = context;
    if (l->failed || pc__grow((void **)&l->texts, &l->capacity, l->count + 1, sizeof *l->texts) != PC_OK ||
        !(l->texts[l->count] = pc__strdup(text))) {
        l->failed = true;
        return;
    }
    l->texts[++l->count] = NULL;
}

static void add_number(list *l, const char *name, int number)
{
    char text[96];
    snprintf(text, sizeof text, "%s=%d", name, number);
    add(l, text);
}

static void add_text(list *l, const char *name, const char *value)
{
    char text[512];
    snprintf(text, sizeof text, "%s=%s", name, value);
    add(l, text);
}

#define DEVICES "CUDA_VISIBLE_DEVICES"

static bool has_place(const pc__start *start, int place)
{
    for (int i = 0; i < start->ranks; i++)
        if (start->places[i] == place)
            return true;
    return false;
}

static int count_of(const char *devices)
{
    int n = 1;
    for (; *devices; devices++)
        n += *devices == ',';
    return n;
}

/* Programs take the GPU of their LOCAL_RANK: those of places that are left out are hidden, so that it is another one's. Not
 * where ranks share GPUs. */
static bool add_devices(list *l, const pc__launch *launch)
{
    const int places = launch->options.ranks;
    const char *given = getenv(DEVICES);
    pc__text out = {0};
    if (launch->start.ranks == places || (given && count_of(given) < places))
        return false;
    pc__text_add(&out, DEVICES "=");
    for (int place = 0, n = 0; given ? *given : place < places; place++) {
        const int length = given ? (int)strcspn(given, ",") : 0;
        if (place >= places || has_place(&launch->start, place)) {
            if (given)
                pc__text_add(&out, "%s%.*s", n++ ? "," : "", length, given);
            else
                pc__text_add(&out, "%s%d", n++ ? "," : "", place);
        }
        if (given)
            given += length + (given[length] == ',');
    }
    l->failed = l->failed || out.failed;
    if (!l->failed)
        add(l, out.data);
    pc__text_free(&out);
    return true;
}

void pc__variables_free(char **variables)
{
    for (int i = 0; variables && variables[i]; i++)
        pc__free(variables[i]);
    pc__free(variables);
}

char **pc__variables(pc__launch *launch, int local_rank)
{
    list l = {0};
    const pc__start *s = &launch->start;
    const bool fewer = add_devices(&l, launch);
    for (char **at = environ; *at; at++)
        if (!is_dropped(*at) && (!fewer || strncmp(*at, DEVICES "=", sizeof DEVICES) != 0))
            add(&l, *at);
    const struct {
        const char *name;
        int number;
    } numbers[] = {
        {"RANK", s->base + local_rank},
        {"ROLE_RANK", s->base + local_rank},
        {"LOCAL_RANK", local_rank},
        {"GROUP_RANK", s->node},
        {"WORLD_SIZE", s->size},
        {"ROLE_WORLD_SIZE", s->size},
        {"LOCAL_WORLD_SIZE", s->ranks},
        {"GROUP_WORLD_SIZE", s->nodes},
        {"MASTER_PORT", s->master_port},
        {"TORCHELASTIC_RESTART_COUNT", s->generation},
        {"TORCHELASTIC_MAX_RESTARTS", launch->options.max_restarts},
    };
    for (int i = 0; i < PC__COUNT(numbers); i++)
        add_number(&l, numbers[i].name, numbers[i].number);
    add_text(&l, "MASTER_ADDR", s->master);
    add_text(&l, "TORCHELASTIC_RUN_ID", s->run);
    add_text(&l, "PARACORD_STORE", launch->store);
    add_text(&l, "PARACORD_TOKEN", launch->token);
    pc__pmix_variables(launch, local_rank, add, &l);
    if (!l.failed)
        return l.texts;
    pc__variables_free(l.texts);
    return NULL;
}
#endif

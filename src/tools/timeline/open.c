/* open.c: opening and releasing timelines; what their events are. */
#include "timeline/timeline.h"

#include <strings.h>

#include "io/file.h"

void pc_timeline_free(pc_timeline *timeline)
{
    if (!timeline)
        return;
    pc__words_free(&timeline->texts);
    pc__words_free(&timeline->pids);
    pc__words_free(&timeline->tids);
    pc__words_free(&timeline->flow_keys);
    pc__free(timeline->processes);
    pc__free(timeline->rows);
    pc__free(timeline->events);
    pc__free(timeline->marks);
    pc__free(timeline->flows);
    pc__free(timeline->arrows);
    pc__free(timeline);
}

static pc_status begin(pc_timeline *timeline, const char *path)
{
    static const char *const names[] = {"compute", "copy in", "copy out", "copy", "other"};
    const char *slash = strrchr(path, '/');
    if (pc__words_add(&timeline->texts, "") < 0)
        return PC_ERR_MEMORY;
    timeline->file = pc__words_add(&timeline->texts, slash ? slash + 1 : path);
    for (int i = 0; i < PC__ENGINE_COUNT; i++)
        if ((timeline->engine_names[i] = pc__words_add(&timeline->texts, names[i])) < 0)
            return PC_ERR_MEMORY;
    return timeline->file < 0 ? PC_ERR_MEMORY : PC_OK;
}

static pc_status open_into(pc_timeline *timeline, const char *path)
{
    size_t n;
    uint8_t *bytes;
    PC__TRY(begin(timeline, path));
    PC__TRY(pc__file_read(path, &bytes, &n));
    pc_status status = pc__timeline_read(timeline, path, (char *)bytes, n);
    pc__free(bytes);
    PC__TRY(status);
    PC__TRY(pc__timeline_arrange(timeline));
    return pc__timeline_arrows(timeline);
}

pc_timeline *pc_timeline_open(const char *path)
{
    PC__NEED_OR(NULL, path);
    pc_timeline *timeline = pc__calloc(1, sizeof *timeline);
    if (timeline && open_into(timeline, path) != PC_OK) {
        pc_timeline_free(timeline);
        return NULL;
    }
    return timeline;
}

/* Categories that PyTorch writes are known too: cpu_op, cuda_runtime with its synchronisations, and its loader's name.
 */
pc__timeline_host_kind pc__timeline_host_kind_of(const pc_timeline *timeline, const pc__timeline_event *event)
{
    const char *category = pc__timeline_text(timeline, event->category),
               *name = pc__timeline_text(timeline, event->name);
    /* The loader's thread waits for room in its ring: that holds up nobody. */
    if (!strcmp(category, "wait"))
        return strstr(pc__timeline_text(timeline, timeline->rows[event->row].name), "pc-loader") ? PC__HOST_OTHER
                                                                                                 : PC__HOST_WAIT;
    if (!strcmp(category, "op"))
        return PC__HOST_OP;
    if (!strcmp(category, "loader") || !strncmp(name, "enumerate(DataLoader)", 21))
        return PC__HOST_LOADER;
    if (!strcmp(category, "step") || !strncmp(name, "ProfilerStep", 12))
        return PC__HOST_STEP;
    if (!strcmp(category, "cuda_runtime") || !strcmp(category, "cuda_driver"))
        return strstr(name, "Synchronize") ? PC__HOST_WAIT : PC__HOST_OP;
    return strcmp(category, "cpu_op") ? PC__HOST_OTHER : PC__HOST_OP;
}

bool pc__timeline_is_work(const pc_timeline *timeline, const pc__timeline_event *event)
{
    const pc__timeline_row *row = &timeline->rows[event->row];
    if (row->kind == PC__ROW_ENGINE)
        return true;
    return row->kind == PC__ROW_STREAM && !timeline->processes[row->process].engines &&
           !strstr(pc__timeline_text(timeline, event->category), "annotation");
}

pc__timeline_engine pc__timeline_engine_of(const pc_timeline *timeline, const pc__timeline_event *event)
{
    const pc__timeline_row *row = &timeline->rows[event->row];
    const char *name = pc__timeline_text(timeline, event->name);
    if (row->kind == PC__ROW_ENGINE)
        return row->engine;
    if (!strstr(pc__timeline_text(timeline, event->category), "memcpy") && strncasecmp(name, "memcpy", 6) != 0)
        return PC__ENGINE_COMPUTE;
    if (strstr(name, "HtoD"))
        return PC__ENGINE_COPY_IN;
    return strstr(name, "DtoH") ? PC__ENGINE_COPY_OUT : PC__ENGINE_COPY;
}

int pc__timeline_engine_name(const pc_timeline *timeline, const pc__timeline_event *event)
{
    const pc__timeline_row *row = &timeline->rows[event->row];
    return row->kind == PC__ROW_ENGINE ? row->engine_name
                                       : timeline->engine_names[pc__timeline_engine_of(timeline, event)];
}

bool pc__timeline_engine_copies(pc__timeline_engine engine)
{
    return engine == PC__ENGINE_COPY_IN || engine == PC__ENGINE_COPY_OUT || engine == PC__ENGINE_COPY;
}

char *pc__timeline_time(double us, char text[32])
{
    static const struct {
        double size;
        const char *name;
    } units[] = {{1e6, "s"}, {1e3, "ms"}, {1, "us"}};
    int unit = us >= 999.5e3 ? 0 : us >= 999.5 ? 1 : 2;
    double value = us / units[unit].size;
    snprintf(text, 32, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit].name);
    return text;
}

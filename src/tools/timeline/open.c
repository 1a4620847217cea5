/* open.c: opening and releasing timelines; what their events are. */
#include "timeline/paths.h"
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
    pc__free(timeline->files);
    pc__free(timeline->calls);
    pc__free(timeline->order);
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

/* One file more; `aligned`: by the job's clock. */
static pc_status read_file(pc_timeline *t, const char *path, bool aligned)
{
    size_t n;
    uint8_t *bytes;
    const char *slash = strrchr(path, '/');
    const int event = t->event_count, mark = t->mark_count, flow = t->flow_count, call = t->call_count;
    PC__TRY(pc__grow((void **)&t->files, &t->file_room, t->file_count, sizeof *t->files));
    t->files[t->file_count++] =
        (pc__timeline_file){.rank = -1, .name = pc__words_add(&t->texts, slash ? slash + 1 : path)};
    if (t->files[t->file_count - 1].name < 0)
        return PC_ERR_MEMORY;
    PC__TRY(pc__file_read(path, &bytes, &n));
    bool any = t->cut;
    t->cut = false;
    const pc_status status = pc__timeline_read(t, path, (char *)bytes, n);
    pc__free(bytes);
    t->files[t->file_count - 1].cut = t->cut;
    any = any || t->cut;
    t->cut = any;
    if (status == PC_OK && aligned)
        pc__timeline_align(t, event, mark, flow, call);
    return status;
}

static pc_status check_rank(const pc_timeline *t, const char *path)
{
    const pc__timeline_file *f = &t->files[t->file_count - 1];
    if (f->rank < 0)
        return pc__fail(
            PC_ERR_FORMAT,
            "%s does not say which rank wrote it, so it is part of no job: open it alone (pc_dist_init tells a "
            "timeline its rank)",
            path);
    for (const pc__timeline_file *g = t->files; g < f; g++) {
        if (g->job != f->job || g->size != f->size || g->start != f->start)
            return pc__fail(PC_ERR_FORMAT,
                            "%s and %s are of two jobs, or of two starts of one: give each a folder of its own",
                            pc__timeline_text(t, g->name), path);
        if (g->rank == f->rank)
            return pc__fail(PC_ERR_FORMAT, "%s and %s are both of rank %d: name each file once",
                            pc__timeline_text(t, g->name), path, f->rank);
    }
    return PC_OK;
}

static pc_status open_into(pc_timeline *timeline, const char *const *paths, int count)
{
    PC__TRY(begin(timeline, count == 1 ? paths[0] : "all ranks"));
    for (int i = 0; i < count; i++) {
        PC__TRY(read_file(timeline, paths[i], count > 1));
        if (count > 1)
            PC__TRY(check_rank(timeline, paths[i]));
    }
    PC__TRY(pc__timeline_calls(timeline));
    PC__TRY(pc__timeline_arrange(timeline));
    return pc__timeline_arrows(timeline);
}

pc_timeline *pc_timeline_open(const char *path)
{
    PC__NEED_OR(NULL, path);
    return pc_timeline_open_all(&path, 1);
}

pc_timeline *pc_timeline_open_all(const char *const *paths, int count)
{
    PC__NEED_OR(NULL, paths);
    pc__path_list list = {0};
    pc_timeline *timeline = NULL;
    if (count < 1)
        return pc__null(PC_ERR_ARGUMENT, "pc_timeline_open_all: count is %d; name a file or a folder", count);
    pc_status status = PC_OK;
    for (int i = 0; i < count && status == PC_OK; i++)
        status = pc__timeline_paths(&list, paths[i]);
    if (status == PC_OK && (timeline = pc__calloc(1, sizeof *timeline)) &&
        open_into(timeline, (const char *const *)list.items, list.count) != PC_OK) {
        pc_timeline_free(timeline);
        timeline = NULL;
    }
    pc__timeline_paths_free(&list);
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

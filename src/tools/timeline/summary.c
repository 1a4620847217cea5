/* summary.c: a summary put together and released. */
#include "timeline/timeline.h"

void pc_timeline_summary_free(pc_timeline_summary *summary)
{
    if (!summary)
        return;
    pc__free(summary->devices);
    pc__free(summary->engines);
    pc__free(summary->ops);
    pc__free(summary->waits);
    pc__free(summary->queuings);
    pc__free(summary->notes);
    pc__free(summary->ranks);
    pc__free(summary->collectives);
    *summary = (pc_timeline_summary){0};
}

static pc_status fill(const pc_timeline *timeline, pc_timeline_summary *summary)
{
    PC__TRY(pc__timeline_sum_engines(timeline, summary));
    PC__TRY(pc__timeline_sum_devices(timeline, summary));
    PC__TRY(pc__timeline_sum_ops(timeline, summary));
    PC__TRY(pc__timeline_sum_notes(timeline, summary));
    PC__TRY(pc__timeline_sum_host(timeline, summary));
    PC__TRY(pc__timeline_sum_ranks(timeline, summary));
    return pc__timeline_sum_verdict(timeline, summary);
}

pc_status pc_timeline_summarise(const pc_timeline *timeline, pc_timeline_summary *summary)
{
    PC__NEED(summary);
    *summary = (pc_timeline_summary){0};
    PC__NEED(timeline);
    *summary = (pc_timeline_summary){.wall = timeline->wall,
                                     .events = timeline->event_count,
                                     .skipped = timeline->skipped,
                                     .dropped = timeline->dropped,
                                     .cut = timeline->cut};
    pc_status status = fill(timeline, summary);
    if (status != PC_OK)
        pc_timeline_summary_free(summary);
    return status;
}

const char *pc_timeline_verdict_name(pc_timeline_verdict verdict)
{
    static const char *const names[] = {"empty",        "no-work",      "compute-bound",
                                        "copy-bound",   "loader-bound", "synchronisation-bound",
                                        "launch-bound", "host-bound"};
    return (unsigned)verdict < PC__COUNT(names) ? names[verdict] : "unknown";
}

/* counted.h: how many casts were made, from the timeline. */
#ifndef PC_TEST_COUNTED_H
#define PC_TEST_COUNTED_H

#include "timeline.h"

/* Ops since start_timeline: casts of one tensor, of dtype or of order, and of lists. */
typedef struct casts {
    int single, lists;
} casts;

static inline casts stop_counting(void)
{
    casts n = {0, 0};
    assert_ok(pc_trace_stop());
    FILE *file = fopen(timeline_path, "r");
    assert_non_null(file);
    for (char line[8192]; fgets(line, sizeof line, file);) {
        if (!strstr(line, "\"cat\":\"op\""))
            continue;
        n.single += strstr(line, "\"name\":\"cast\"") != NULL;
        n.lists += strstr(line, "\"name\":\"cast_many\"") != NULL;
    }
    fclose(file);
    unlink(timeline_path);
    return n;
}

#endif

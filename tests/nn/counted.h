/* counted.h: how many casts were made, from the timeline. */
#ifndef PC_TEST_COUNTED_H
#define PC_TEST_COUNTED_H

#include "timeline.h"

/* Ops since start_timeline: casts of one tensor, of dtype or of order, and of lists. What a launch of a recording does is none of
 * them: the CPU does it then, and other devices later. */
typedef struct casts {
    int single, lists;
} casts;

static inline casts stop_counting(void)
{
    enum { MOST_CASTS = 4096 };
    static double begun[MOST_CASTS];
    static bool is_list[MOST_CASTS];
    int count = 0;
    casts n = {0, 0};
    assert_ok(pc_trace_stop());
    FILE *file = fopen(timeline_path, "r");
    assert_non_null(file);
    for (char line[8192]; fgets(line, sizeof line, file);) {
        if (!strstr(line, "\"cat\":\"op\""))
            continue;
        const bool list = strstr(line, "\"name\":\"cast_many\"");
        if (strstr(line, "\"name\":\"graph\"")) /* it comes behind what it has done */
            while (count && begun[count - 1] >= number_in(line, "ts"))
                count--;
        if (!list && !strstr(line, "\"name\":\"cast\""))
            continue;
        assert_true(count < MOST_CASTS);
        begun[count] = number_in(line, "ts"), is_list[count++] = list;
    }
    fclose(file);
    unlink(timeline_path);
    for (int i = 0; i < count; i++)
        *(is_list[i] ? &n.lists : &n.single) += 1;
    return n;
}

#endif

/* Fuzz target: timelines of any bytes, read, summed up, and made into a page and a picture. */
#include "fuzz/fuzz.h"

#include <paracord-tools/timeline.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    pc_timeline *timeline = pc_timeline_open(pc__fuzz_file(bytes, n));
    if (timeline) {
        (void)!pc_timeline_page(timeline, pc__fuzz_path("html"));
        (void)!pc_timeline_picture(timeline, pc__fuzz_path("svg"), NULL);
    }
    pc_timeline_free(timeline);
    pc_error_clear();
    return 0;
}

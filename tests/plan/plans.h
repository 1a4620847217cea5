/* plans.h: a recording of the current stream, and what its plan says. */
#ifndef PC_TEST_PLANS_H
#define PC_TEST_PLANS_H

#include "device.h"

static inline char *text_of(const pc_graph *graph)
{
    char *text = pc_graph_text(graph);
    assert_not_null_ok(text);
    return text;
}

static inline void says(const pc_graph *graph, const char *words)
{
    char *text = text_of(graph);
    if (!strstr(text, words))
        fail_msg("there is no \"%s\" in:\n%s", words, text);
    pc_text_free(text);
}

static inline bool plain(void)
{
    return getenv("PARACORD_PLAN") != NULL;
}

static inline pc_graph *ended(void)
{
    pc_graph *graph = pc_graph_end(pc_stream_current(test_device()));
    assert_not_null_ok(graph);
    return graph;
}

static inline void begin(void)
{
    assert_ok(pc_graph_begin(pc_stream_current(test_device())));
}

#endif

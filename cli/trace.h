/* trace.h: the ways in which a timeline's summary is printed. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <paracord-tools/timeline.h>

void cli_trace_print(const pc_timeline_summary *summary, int most); /* most: rows of a list; 0: all */
void cli_trace_print_json(const pc_timeline_summary *summary);

#endif

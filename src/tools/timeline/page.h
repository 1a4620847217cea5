/* page.h: writing the data of a timeline's page. */
#ifndef PC__TIMELINE_PAGE_H
#define PC__TIMELINE_PAGE_H

#include "timeline/timeline.h"

/* A JSON string that can also stand inside <script>: it holds no "<". */
void pc__timeline_page_string(pc__text *out, const char *text);

/* "tables": [...], the lists of the summary as cells of text. */
void pc__timeline_page_tables(pc__text *out, const pc_timeline_summary *summary);

#endif

/* script.c: what a report does where scripts run: a running one looks for its next version, and the threshold
 * can be moved. Both work without: by the browser's refresh, and by the table. */
#include "pages/pages.h"
#include "report/parts.h"

enum { PATIENCE = 20, LEAST_PATIENCE = 600 }; /* times the wait; seconds */

void pc__report_script(pc__text *text, const pc__report *report)
{
    bool roc = pc__report_has_roc(report);
    if (!roc && !report->running)
        return;
    pc__html_put(text, "<script>\n");
    pc__html_put(text, roc ? pc__page_report_threshold_js : "");
    if (report->running) {
        int wait = PC__MAX(report->next_seconds, 1);
        pc__text_add(text, "var wait=%d,last=%lld;\n", wait,
                     (long long)(report->written + PC__MAX(PATIENCE * wait, LEAST_PATIENCE)) * 1000);
        pc__html_put(text, pc__page_report_live_js);
    }
    pc__html_put(text, "</script>\n");
}

/* report.h: training runs as pages: the report of one, and several side by side.
 *
 *     pc_train_options options = {.data = "pets", .out = "pets-run", .report = pc_report_page};
 *     pc_train_summary summary;
 *     if (pc_train_folder(options, &summary) != PC_OK)
 *         return pc_report(stderr);
 *     // pets-run/report.html
 *
 * A page is one HTML file that stands alone: curves, figures and pictures are in it, and it needs no network. Any
 * thread.
 */
#ifndef PARACORD_TOOLS_REPORT_H
#define PARACORD_TOOLS_REPORT_H

#include <paracord/gpt_train.h>
#include <paracord/train.h>

PC_BEGIN

/* Write the report of a run as the new content of `path`, whole or not at all: what pc_train_options.report asks for.
 * PC_ERR_FILE, PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_status pc_report_page(const char *path, const pc_run_report *run);

/* The same of a training of a GPT: what pc_gpt_train_options.report asks for. */
PC_API PC_MUST_USE pc_status pc_gpt_report_page(const char *path, const pc_gpt_run *run);

/* Compare the runs in these folders, which may still be going on: *text has a line for each and the settings that
 * differ, *json all that is known, both to be released with pc_text_free; `page`, where not NULL, is the path of an
 * HTML file with their curves, written whole or not at all. Run figures are those of the epoch that model.h5 is of.
 * PC_ERR_NOT_FOUND for a folder without a run, PC_ERR_FORMAT, PC_ERR_FILE, PC_ERR_ARGUMENT, PC_ERR_MEMORY. */
PC_API PC_MUST_USE pc_status pc_runs_compare(const char *const *folders, int count, const char *page, char **text,
                                             char **json);

PC_END
#endif

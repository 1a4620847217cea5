/* pages.h: what pages are made of besides their data: the files beside this one, which the build embeds as they are.
 * A page stands alone, so all of it is written into the one file: the head's policy forbids to fetch anything.
 *
 * Style sheets have their colours as variables, once for light (and paper) and once for dark; what a report shows of
 * training and of test differs in lightness too, so that they can be told apart without colour. Scripts stand in
 * markup: there is no "</" in them. */
#ifndef PC__PAGES_H
#define PC__PAGES_H

extern const char pc__page_head_html[]; /* the beginning of every page, up to its title */

extern const char pc__page_report_css[];
extern const char pc__page_report_threshold_js[]; /* the threshold that can be moved */
extern const char pc__page_report_live_js[];      /* a report that looks for its next version, and what it keeps then */

extern const char pc__page_timeline_css[], pc__page_timeline_html[];
/* One script in parts: the data, the picture, moving and finding and choosing, what stands around the picture. */
extern const char pc__page_timeline_data_js[], pc__page_timeline_draw_js[], pc__page_timeline_act_js[],
    pc__page_timeline_page_js[];

#endif

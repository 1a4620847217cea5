/* html.h: pieces of HTML: escaped text, data: URIs, numbers as people read them. All append; a failed allocation
 * is remembered in the text. They expect the C locale's numbers (pc__plain_numbers_begin). */
#ifndef PC__REPORT_HTML_H
#define PC__REPORT_HTML_H

#include "base/base.h"

void pc__html_put(pc__text *text, const char *markup);

/* Text from outside, safe in content and in quoted attributes. NULL appends nothing. */
void pc__html_escape(pc__text *text, const char *words);

/* The same for the first `n` bytes, which must not end inside a character. */
void pc__html_escape_some(pc__text *text, const char *words, size_t n);

void pc__html_base64(pc__text *text, const uint8_t *bytes, size_t n);

/* Unknown (NaN, or what is said) becomes an en dash. */
void pc__html_number(pc__text *text, double value);     /* four digits: 0.6931, 1.5e-07 */
void pc__html_percent(pc__text *text, double share);    /* of a share: 71.4 % */
void pc__html_duration(pc__text *text, double seconds); /* not above 0 is unknown: 8.3 s, 3 min 12 s, 2 h 05 min */
void pc__html_count(pc__text *text, int64_t count);     /* negative is unknown: 1,300 */
void pc__html_things(pc__text *text, int64_t count, const char *one, const char *many); /* 1 epoch, 25 epochs */

#endif

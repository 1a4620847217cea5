/* trace_site.c: the words for call sites, kept, since finding them reads debug information. */
#include "device/trace_write.h"

#include <errno.h>

enum { PLACES = 4096 };

static struct {
    pc__site site;
    char text[PC__SITE_TEXT];
} places[PLACES];

const char *pc__trace_place(pc__site site)
{
    if (!site)
        return "";
    return places[site % PLACES].site == site ? places[site % PLACES].text : NULL;
}

void pc__trace_place_note(pc__site site, const char *text)
{
    places[site % PLACES].site = site;
    snprintf(places[site % PLACES].text, PC__SITE_TEXT, "%s", text);
}

/* It may fail for want of memory, which is no failure of the program's own call. */
void pc__trace_place_resolve(pc__site site, char text[PC__SITE_TEXT])
{
    int number = errno;
    pc_error before = pc__error_take();
    pc__site_text(site, text);
    pc_error_clear();
    pc__error_put(&before);
    errno = number;
}

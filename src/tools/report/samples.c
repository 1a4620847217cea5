/* samples.c: pictures with what the network said about them. */
#include "report/parts.h"

#include <math.h>

static const char *media_type(const uint8_t *bytes, size_t n)
{
    if (bytes && n >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        return "image/png";
    return bytes && n >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0 ? "image/jpeg" : NULL;
}

static void picture(pc__text *text, const pc__report_sample *sample)
{
    const char *type = media_type(sample->bytes, sample->n);
    if (!type) {
        pc__html_put(text, "<div class='noimage'>no picture</div>");
        return;
    }
    pc__html_put(text, "<img alt='");
    pc__html_escape(text, sample->name);
    pc__text_add(text, "' src='data:%s;base64,", type);
    pc__html_base64(text, sample->bytes, sample->n);
    pc__html_put(text, "'>");
}

static void one(pc__text *text, const pc__report_sample *sample)
{
    bool known = sample->truth && sample->predicted;
    bool right = known && strcmp(sample->truth, sample->predicted) == 0;
    pc__text_add(text, "<figure class='shot %s'>", right ? "right" : known ? "wrong" : "open");
    picture(text, sample);
    pc__html_put(text, "<figcaption><p class='said'><b>");
    pc__html_escape(text, sample->predicted ? sample->predicted : "?");
    pc__html_put(text, "</b><span class='sure'>");
    pc__html_percent(text, sample->probability);
    pc__html_put(text, "</span></p>");
    if (isfinite(sample->probability))
        pc__text_add(text, "<p class='bar'><i style='width:%.1f%%'></i></p>",
                     fmin(fmax(sample->probability, 0), 1) * 100);
    if (known) {
        pc__html_put(text, right ? "<p class='verdict'>\u2713 right" : "<p class='verdict'>\u2717 it is ");
        pc__html_escape(text, right ? NULL : sample->truth);
        pc__html_put(text, "</p>");
    }
    pc__html_put(text, "<p class='file' title='");
    pc__html_escape(text, sample->name);
    pc__html_put(text, "'>");
    const char *folder = sample->name ? strrchr(sample->name, '/') : NULL;
    pc__html_escape(text, folder ? folder + 1 : sample->name);
    pc__html_put(text, "</p></figcaption></figure>\n");
}

static void list(pc__text *text, const char *heading, const pc__report_sample *samples, int count)
{
    if (!samples || count < 1)
        return;
    pc__text_add(text, "<section><h2>%s</h2><div class='shots'>\n", heading);
    for (int i = 0; i < count; i++)
        one(text, &samples[i]);
    pc__html_put(text, "</div></section>\n");
}

void pc__report_samples(pc__text *text, const pc__report *report)
{
    list(text, "Worst mistakes <span class='soft'>where it was wrong, and most sure</span>", report->mistakes,
         report->mistake_count);
    list(text, "Predictions", report->samples, report->sample_count);
}

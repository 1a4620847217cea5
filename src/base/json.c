/* json.c: JSON text, written without a library. */
#include "base/base.h"

#include <math.h>
#include <stdlib.h>

void pc__json_string(pc__text *out, const char *text)
{
    pc__text_append(out, "\"", 1);
    for (int n; *text; text += PC__MAX(n, 1)) {
        unsigned char c = (unsigned char)*text;
        n = pc__utf8_length(text);
        if (c == '"' || c == '\\')
            pc__text_add(out, "\\%c", c);
        else if (c < ' ' || c == 127 || !n)
            pc__text_add(out, "\\u%04x", n ? c : 0xfffd);
        else
            pc__text_append(out, text, (size_t)n);
    }
    pc__text_append(out, "\"", 1);
}

/* The shortest digits that read back as the same number, with a point whatever the program's locale. */
void pc__json_number(pc__text *out, double number)
{
    char digits[40] = "null";
    for (int precision = 1; isfinite(number) && precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    for (char *c = digits; *c; c++)
        if (*c == ',')
            *c = '.';
    /* always a float: Keras checks that a momentum is one and no integer */
    pc__text_add(out, "%s%s", digits, strpbrk(digits, ".enl") ? "" : ".0");
}

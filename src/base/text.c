/* text.c: growing text. */
#include "base.h"

#include <stdarg.h>

static bool reserve(pc__text *text, size_t more)
{
    size_t needed = text->length + more + 1;
    if (text->failed)
        return false;
    if (needed <= text->capacity)
        return true;
    size_t capacity = PC__MAX(needed, text->capacity * 2);
    char *moved = pc__realloc(text->data, capacity);
    if (!moved) {
        text->failed = true;
        return false;
    }
    text->data = moved;
    text->capacity = capacity;
    return true;
}

void pc__text_append(pc__text *text, const char *bytes, size_t n)
{
    if (!reserve(text, n))
        return;
    if (n) /* nothing may come without an address */
        memcpy(text->data + text->length, bytes, n);
    text->length += n;
    text->data[text->length] = 0;
}

void pc__text_add(pc__text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, arguments);
    if (n >= 0 && reserve(text, (size_t)n)) {
        vsnprintf(text->data + text->length, (size_t)n + 1, format, again);
        text->length += (size_t)n;
    }
    va_end(again);
    va_end(arguments);
}

void pc_text_free(char *text)
{
    pc__free(text);
}

void pc__text_free(pc__text *text)
{
    pc__free(text->data);
    *text = (pc__text){0};
}

int pc__utf8_length(const char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    int n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    uint32_t point = s[0] & (0x7f >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (s[i] & 0x3f);
    }
    return point >= least[n] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff) ? n : 0;
}

bool pc__is_utf8(const char *text)
{
    int n = 1;
    for (; *text && n; text += n)
        n = pc__utf8_length(text);
    return n;
}

const char *pc_version(void)
{
    return PC_VERSION;
}

/* csv.c: records of CSV files. */
#include "io/csv.h"

#include "base/number.h"

#include <math.h>

void pc__csv_begin(pc__csv *csv, const char *path, char *bytes, size_t n, char separator)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t skip = n >= 3 && memcmp(bytes, mark, 3) == 0 ? 3 : 0;
    *csv = (pc__csv){
        .path = path, .at = bytes + skip, .end = bytes + n, .separator = separator, .next_line = 1, .first = true};
    csv->last = csv->end;
    while (csv->last > csv->at && (csv->last[-1] == '\n' || csv->last[-1] == '\r'))
        csv->last--;
}

void pc__csv_end(pc__csv *csv)
{
    pc__free(csv->fields);
    *csv = (pc__csv){0};
}

/* Pass over one end of line, if there is one. */
static bool skip_end(pc__csv *csv)
{
    if (csv->at == csv->end || (*csv->at != '\n' && *csv->at != '\r'))
        return false;
    csv->at += *csv->at == '\r' && csv->at + 1 < csv->end && csv->at[1] == '\n' ? 2 : 1;
    csv->next_line++;
    return true;
}

/* Up to the closing quote, two of which stand for one; written over itself. */
static pc_status take_quoted(pc__csv *csv, pc__csv_field *field)
{
    char *to = ++csv->at;
    field->text = to;
    field->quoted = true;
    for (; csv->at < csv->end; csv->at++) {
        if (*csv->at == '"' && (csv->at + 1 == csv->end || csv->at[1] != '"'))
            break;
        csv->next_line += *csv->at == '\n';
        csv->at += *csv->at == '"';
        *to++ = *csv->at;
    }
    if (csv->at == csv->end)
        return pc__fail(PC_ERR_FORMAT, "%s:%lld: a quote is not closed", csv->path, (long long)csv->line);
    field->length = (size_t)(to - field->text);
    csv->at++;
    if (csv->at < csv->end && *csv->at != csv->separator && *csv->at != '\n' && *csv->at != '\r')
        return pc__fail(PC_ERR_FORMAT, "%s:%lld: text behind a closing quote", csv->path, (long long)csv->next_line);
    return PC_OK;
}

static void take_plain(pc__csv *csv, pc__csv_field *field)
{
    field->text = csv->at;
    while (csv->at < csv->end && *csv->at != csv->separator && *csv->at != '\n' && *csv->at != '\r')
        csv->at++;
    field->length = (size_t)(csv->at - field->text);
}

static pc_status take_field(pc__csv *csv)
{
    PC__TRY(pc__grow((void **)&csv->fields, &csv->room, csv->count, sizeof *csv->fields));
    pc__csv_field *field = &csv->fields[csv->count++];
    *field = (pc__csv_field){0};
    if (csv->at < csv->end && *csv->at == '"')
        PC__TRY(take_quoted(csv, field));
    else
        take_plain(csv, field);
    if (memchr(field->text, 0, field->length))
        return pc__fail(PC_ERR_FORMAT, "%s:%lld: a zero byte; this is no text", csv->path, (long long)csv->line);
    csv->comes_next = csv->at < csv->end && *csv->at == csv->separator;
    csv->at += csv->comes_next;
    return PC_OK;
}

pc_status pc__csv_next(pc__csv *csv, bool *any)
{
    csv->count = 0;
    while ((!csv->narrow || csv->at >= csv->last) && skip_end(csv)) {
    }
    csv->line = csv->next_line;
    *any = csv->at < csv->end;
    if (!*any)
        return PC_OK;
    do
        PC__TRY(take_field(csv));
    while (csv->comes_next);
    (void)skip_end(csv);
    csv->narrow = csv->narrow || (csv->first && csv->count == 1);
    csv->first = false;
    for (int i = 0; i < csv->count; i++) /* what stood behind them is read */
        ((char *)csv->fields[i].text)[csv->fields[i].length] = 0;
    return PC_OK;
}

bool pc__csv_number(const char *text, double *number)
{
    char *end;
    *number = pc__number_of(text, &end);
    if (end == text || strpbrk(text, "xX"))
        return false;
    while (*end == ' ' || *end == '\t')
        end++;
    return *end == 0 && isfinite(*number);
}

/* pickle.c: a stack machine that makes values of opcodes, and runs nothing. */
#include "io/pickle.h"

#define MARK (-1)

enum { VALUES_MAX = 1 << 26 };

typedef struct reader {
    const char *path;
    const uint8_t *bytes;
    size_t n, at;
    const char *const *names;
    pc__pickle *p;
    int *stack, *memo; /* numbers of values; a memo's 0 is none, and n + 1 stands for n */
    int depth, stack_room, memo_count, memo_room;
} reader;

static pc_status damaged(const reader *r)
{
    return pc__fail(PC_ERR_FORMAT, "%s is damaged: its pickle makes no sense at byte %zu", r->path, r->at);
}

static pc_status push(reader *r, int value)
{
    PC__TRY(pc__grow((void **)&r->stack, &r->stack_room, r->depth, sizeof *r->stack));
    r->stack[r->depth++] = value;
    return PC_OK;
}

static pc_status push_new(reader *r, pc__pickled value)
{
    pc__pickle *p = r->p;
    if (p->value_count >= VALUES_MAX)
        return damaged(r);
    PC__TRY(pc__grow((void **)&p->values, &p->value_room, p->value_count, sizeof *p->values));
    p->values[p->value_count] = value;
    return push(r, p->value_count++);
}

static pc_status push_kind(reader *r, pc__pickled_kind kind, int64_t whole)
{
    return push_new(r, (pc__pickled){.kind = kind, .whole = whole, .first = -1, .last = -1});
}

/* The uppermost value's number, which leaves the stack. */
static pc_status pop(reader *r, int *value)
{
    if (!r->depth || r->stack[r->depth - 1] == MARK)
        return damaged(r);
    *value = r->stack[--r->depth];
    return PC_OK;
}

static pc_status add_item(reader *r, int to, int value)
{
    pc__pickle *p = r->p;
    if (value == MARK)
        return damaged(r);
    PC__TRY(pc__grow((void **)&p->items, &p->item_room, p->item_count, sizeof *p->items));
    pc__pickled *v = &p->values[to];
    p->items[p->item_count] = (pc__pickle_item){value, -1};
    *(v->last < 0 ? &v->first : &p->items[v->last].next) = p->item_count;
    v->last = p->item_count++;
    v->count++;
    return PC_OK;
}

/* A little-endian number of `size` bytes behind the opcode. */
static pc_status take(reader *r, int size, int64_t *number)
{
    uint64_t value = 0;
    if (r->n - r->at < (size_t)size)
        return damaged(r);
    for (int i = 0; i < size && i < 8; i++)
        value |= (uint64_t)r->bytes[r->at + (size_t)i] << 8 * i;
    r->at += (size_t)size;
    if (size < 8 && size > 2 && r->bytes[r->at - 1] & 0x80)
        value |= ~(uint64_t)0 << 8 * size; /* those of one and two bytes have no sign */
    *number = (int64_t)value;
    return PC_OK;
}

static pc_status take_text(reader *r, int size)
{
    int64_t length = 0;
    PC__TRY(take(r, size, &length));
    if (length < 0 || (uint64_t)length > r->n - r->at)
        return damaged(r);
    const char *text = (const char *)r->bytes + r->at;
    r->at += (size_t)length;
    return push_new(
        r, (pc__pickled){.kind = PC__PICKLED_TEXT, .text = text, .length = (size_t)length, .first = -1, .last = -1});
}

/* Of the module and the name of a function or class: that of the list. */
static pc_status push_name(reader *r, const char *module, size_t in, const char *name, size_t n)
{
    for (int i = 0; r->names[i]; i++) {
        const char *known = r->names[i];
        if (strlen(known) == in + 1 + n && memcmp(known, module, in) == 0 && known[in] == '\n' &&
            memcmp(known + in + 1, name, n) == 0)
            return push_new(
                r,
                (pc__pickled){.kind = PC__PICKLED_NAME, .text = known, .length = in + 1 + n, .first = -1, .last = -1});
    }
    char words[96] = "";
    for (size_t i = 0; i < in + 1 + n && i + 1 < sizeof words; i++) {
        const char c = i < in ? module[i] : i == in ? '.' : name[i - in - 1];
        words[i] = c < ' ' || c > '~' ? '?' : c;
    }
    return pc__fail(PC_ERR_UNSUPPORTED,
                    "%s has %s in it, not weights alone, and nothing of a file is run here; in Python "
                    "torch.save(network.state_dict(), ...) writes the weights alone",
                    r->path, words);
}

/* Two lines. */
static pc_status take_name(reader *r)
{
    const char *text = (const char *)r->bytes + r->at;
    const char *line = memchr(text, '\n', r->n - r->at);
    const char *end = line ? memchr(line + 1, '\n', r->n - r->at - (size_t)(line + 1 - text)) : NULL;
    if (!end)
        return damaged(r);
    r->at += (size_t)(end + 1 - text);
    return push_name(r, text, (size_t)(line - text), line + 1, (size_t)(end - line - 1));
}

/* The two texts on top of the stack, as from protocol 4 on. */
static pc_status name_of_texts(reader *r)
{
    int name = 0, module = 0;
    PC__TRY(pop(r, &name));
    PC__TRY(pop(r, &module));
    const pc__pickled *of = &r->p->values[module], *n = &r->p->values[name];
    if (of->kind != PC__PICKLED_TEXT || n->kind != PC__PICKLED_TEXT)
        return damaged(r);
    return push_name(r, of->text, of->length, n->text, n->length);
}

/* What is above the last mark becomes items of a value: the one below the mark, or a new list. */
static pc_status gather(reader *r, bool is_new, pc__pickled_kind kind)
{
    int mark = r->depth - 1;
    while (mark >= 0 && r->stack[mark] != MARK)
        mark--;
    if (mark < (is_new ? 0 : 1))
        return damaged(r);
    const int from = mark + 1, end = r->depth;
    if (is_new)
        PC__TRY(push_kind(r, PC__PICKLED_LIST, 0));
    const int to = is_new ? r->stack[r->depth - 1] : r->stack[mark - 1];
    if (to == MARK || r->p->values[to].kind != kind || (kind == PC__PICKLED_DICT && (end - from) % 2))
        return damaged(r);
    for (int i = from; i < end; i++)
        PC__TRY(add_item(r, to, r->stack[i]));
    r->depth = is_new ? mark + 1 : mark;
    if (is_new)
        r->stack[mark] = to;
    return PC_OK;
}

/* The last `count` values become a tuple. */
static pc_status take_tuple(reader *r, int count)
{
    if (r->depth < count)
        return damaged(r);
    const int from = r->depth - count;
    PC__TRY(push_kind(r, PC__PICKLED_LIST, 0));
    const int tuple = r->stack[r->depth - 1];
    for (int i = 0; i < count; i++)
        PC__TRY(add_item(r, tuple, r->stack[from + i]));
    r->depth = from;
    return push(r, tuple);
}

static pc_status set_items(reader *r, pc__pickled_kind kind, int count)
{
    const int from = r->depth - count, to = from > 0 ? r->stack[from - 1] : MARK;
    if (to == MARK || r->p->values[to].kind != kind)
        return damaged(r);
    for (int i = 0; i < count; i++)
        PC__TRY(add_item(r, to, r->stack[from + i]));
    r->depth = from;
    return PC_OK;
}

static pc_status reduce(reader *r)
{
    int arguments = 0, function = 0;
    PC__TRY(pop(r, &arguments));
    PC__TRY(pop(r, &function));
    const pc__pickled in = r->p->values[arguments], *name = &r->p->values[function];
    if (in.kind != PC__PICKLED_LIST || name->kind != PC__PICKLED_NAME)
        return damaged(r);
    if (pc__pickled_is(name, PC__PICKLED_NAME, "collections\nOrderedDict") && !in.count)
        return push_kind(r, PC__PICKLED_DICT, 0);
    return push_new(
        r, (pc__pickled){PC__PICKLED_CALL, .whole = function, .first = in.first, .last = in.last, .count = in.count});
}

/* Places are taken in their order, so that none is beyond the opcodes that were read. */
static pc_status put_at(reader *r, int64_t i)
{
    if (i < 0 || i > (int64_t)r->at || !r->depth || r->stack[r->depth - 1] == MARK)
        return damaged(r);
    while (r->memo_count <= i) {
        PC__TRY(pc__grow((void **)&r->memo, &r->memo_room, r->memo_count, sizeof *r->memo));
        r->memo[r->memo_count++] = 0;
    }
    r->memo[i] = r->stack[r->depth - 1] + 1;
    return PC_OK;
}

static pc_status put(reader *r, int size)
{
    int64_t i = 0;
    PC__TRY(take(r, size, &i));
    return put_at(r, i);
}

static pc_status get(reader *r, int size)
{
    int64_t i = 0;
    PC__TRY(take(r, size, &i));
    return i >= 0 && i < r->memo_count && r->memo[i] ? push(r, r->memo[i] - 1) : damaged(r);
}

static pc_status take_whole(reader *r, int size)
{
    int64_t number = 0;
    PC__TRY(take(r, size, &number));
    return push_kind(r, PC__PICKLED_WHOLE, number);
}

static pc_status step(reader *r, uint8_t opcode)
{
    int64_t number = 0;
    int value = 0;
    switch (opcode) {
    case 0x80: /* the protocol */
        PC__TRY(take(r, 1, &number));
        return number >= 2 && number <= 5 ? PC_OK : damaged(r);
    case 0x95: /* so many bytes are a frame, which nobody needs to know */
        return take(r, 8, &number);
    case '(':
        return push(r, MARK);
    case 't':
        return gather(r, true, PC__PICKLED_LIST);
    case 'e':
        return gather(r, false, PC__PICKLED_LIST);
    case 'u':
        return gather(r, false, PC__PICKLED_DICT);
    case ')':
    case ']':
        return push_kind(r, PC__PICKLED_LIST, 0);
    case '}':
        return push_kind(r, PC__PICKLED_DICT, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return take_tuple(r, opcode - 0x84);
    case 'a':
        return set_items(r, PC__PICKLED_LIST, 1);
    case 's':
        return set_items(r, PC__PICKLED_DICT, 2);
    case 'N':
        return push_kind(r, PC__PICKLED_NONE, 0);
    case 0x88:
    case 0x89:
        return push_kind(r, PC__PICKLED_WHOLE, opcode == 0x88);
    case 'K':
        return take_whole(r, 1);
    case 'M':
        return take_whole(r, 2);
    case 'J':
        return take_whole(r, 4);
    case 0x8a: /* of any length, which says how long */
        PC__TRY(take(r, 1, &number));
        return take_whole(r, (int)number);
    case 'G':
        PC__TRY(take(r, 8, &number));
        return push_kind(r, PC__PICKLED_FRACTION, 0);
    case 'X':
        return take_text(r, 4);
    case 'U':
        return take_text(r, 1);
    case 0x8c:
        return take_text(r, 1);
    case 0x8d:
        return take_text(r, 8);
    case 'c':
        return take_name(r);
    case 0x93:
        return name_of_texts(r);
    case 0x94: /* into the next place */
        return put_at(r, r->memo_count);
    case 'q':
        return put(r, 1);
    case 'r':
        return put(r, 4);
    case 'h':
        return get(r, 1);
    case 'j':
        return get(r, 4);
    case 'Q':
        PC__TRY(pop(r, &value));
        return push_kind(r, PC__PICKLED_KEPT, value);
    case 'R':
        return reduce(r);
    case 'b': /* attributes, such as the versions of layers, which nobody asks */
        return pop(r, &value);
    default:
        return pc__fail(PC_ERR_UNSUPPORTED,
                        "%s: its pickle has the opcode 0x%02x at byte %zu, which torch.save does not write for weights",
                        r->path, opcode, r->at - 1);
    }
}

static pc_status run(reader *r, size_t *used)
{
    while (r->at < r->n) {
        const uint8_t opcode = r->bytes[r->at++];
        if (opcode != '.') {
            PC__TRY(step(r, opcode));
            continue;
        }
        *used = r->at;
        return pop(r, &r->p->root);
    }
    return damaged(r);
}

pc_status pc__pickle_read(const char *path, const uint8_t *bytes, size_t n, const char *const *names,
                          pc__pickle *pickle, size_t *used)
{
    reader r = {.path = path, .bytes = bytes, .n = n, .names = names, .p = pickle};
    *pickle = (pc__pickle){0};
    const pc_status status = run(&r, used);
    pc__free(r.stack);
    pc__free(r.memo);
    return status;
}

void pc__pickle_close(pc__pickle *pickle)
{
    pc__free(pickle->values);
    pc__free(pickle->items);
    *pickle = (pc__pickle){0};
}

const pc__pickled *pc__pickle_at(const pc__pickle *p, const pc__pickled *v, int i)
{
    int item = v->first;
    for (; item >= 0 && i > 0; i--)
        item = p->items[item].next;
    return item < 0 ? NULL : &p->values[p->items[item].value];
}

bool pc__pickled_is(const pc__pickled *v, pc__pickled_kind kind, const char *text)
{
    return v && v->kind == kind && v->length == strlen(text) && memcmp(v->text, text, v->length) == 0;
}

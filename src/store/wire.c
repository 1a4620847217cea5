/* wire.c: frames and what is in them. */
#include "store/wire.h"

#define HEAD 9 /* length, kind, request */

static void put(pc__text *out, uint64_t value, int bytes)
{
    char little[8];
    for (int i = 0; i < bytes; i++)
        little[i] = (char)(value >> (8 * i));
    pc__text_append(out, little, (size_t)bytes);
}

static uint64_t number(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

void pc__put_u8(pc__text *out, unsigned value)
{
    put(out, value, 1);
}

void pc__put_u32(pc__text *out, uint32_t value)
{
    put(out, value, 4);
}

void pc__put_u64(pc__text *out, uint64_t value)
{
    put(out, value, 8);
}

void pc__put_bytes(pc__text *out, const void *bytes, size_t n)
{
    pc__put_u32(out, (uint32_t)n);
    if (n)
        pc__text_append(out, bytes, n);
}

void pc__put_text(pc__text *out, const char *text)
{
    pc__put_bytes(out, text, strlen(text));
}

size_t pc__frame_begin(pc__text *out, pc__wire_kind kind, uint32_t request)
{
    const size_t begin = out->length;
    pc__put_u32(out, 0);
    pc__put_u8(out, kind);
    pc__put_u32(out, request);
    return begin;
}

void pc__frame_end(pc__text *out, size_t begin)
{
    const uint32_t n = out->failed ? 0 : (uint32_t)(out->length - begin - 4);
    for (int i = 0; i < 4 && !out->failed; i++)
        out->data[begin + (size_t)i] = (char)(n >> (8 * i));
}

void pc__put_hello(pc__text *out, const pc__hello *hello)
{
    const size_t begin = pc__frame_begin(out, PC__WIRE_HELLO, 0);
    pc__put_u32(out, PC__WIRE_PROTOCOL);
    pc__put_text(out, hello->version);
    pc__put_text(out, hello->token);
    pc__put_text(out, hello->host);
    pc__put_u8(out, hello->role);
    pc__put_u32(out, (uint32_t)hello->rank);
    pc__put_u32(out, (uint32_t)hello->size);
    pc__put_u32(out, (uint32_t)hello->generation);
    pc__put_u32(out, (uint32_t)hello->process);
    pc__frame_end(out, begin);
}

void pc__put_beat(pc__text *out, const pc__beat *beat)
{
    const uint64_t numbers[] = {beat->entered, beat->finished, beat->group, beat->bytes, beat->hash};
    for (int i = 0; i < PC__COUNT(numbers); i++)
        pc__put_u64(out, numbers[i]);
    pc__put_u32(out, (uint32_t)beat->dtype);
    pc__put_u32(out, (uint32_t)beat->state);
    pc__put_bytes(out, beat->name, strnlen(beat->name, sizeof beat->name - 1));
}

static const uint8_t *take(pc__body *body, size_t n)
{
    if (body->broken || (size_t)(body->end - body->at) < n) {
        body->broken = true;
        return NULL;
    }
    body->at += n;
    return body->at - n;
}

unsigned pc__take_u8(pc__body *body)
{
    const uint8_t *at = take(body, 1);
    return at ? *at : 0;
}

uint32_t pc__take_u32(pc__body *body)
{
    const uint8_t *at = take(body, 4);
    return at ? (uint32_t)number(at, 4) : 0;
}

uint64_t pc__take_u64(pc__body *body)
{
    const uint8_t *at = take(body, 8);
    return at ? number(at, 8) : 0;
}

const void *pc__take_bytes(pc__body *body, size_t *n)
{
    const size_t length = pc__take_u32(body);
    const uint8_t *at = take(body, length);
    *n = at ? length : 0;
    return at;
}

void pc__take_text(pc__body *body, char *text, size_t room)
{
    size_t n;
    const char *at = pc__take_bytes(body, &n);
    if (n >= room || (n && memchr(at, 0, n))) {
        body->broken = true;
        n = 0;
    }
    if (n)
        memcpy(text, at, n);
    text[n] = 0;
}

void pc__take_beat(pc__body *body, pc__beat *beat)
{
    *beat = (pc__beat){.entered = pc__take_u64(body)};
    beat->finished = pc__take_u64(body);
    beat->group = pc__take_u64(body);
    beat->bytes = pc__take_u64(body);
    beat->hash = pc__take_u64(body);
    beat->dtype = (int32_t)pc__take_u32(body);
    beat->state = (int32_t)pc__take_u32(body);
    pc__take_text(body, beat->name, sizeof beat->name);
}

void *pc__stream_room(pc__stream_in *in, size_t n)
{
    if (in->read) { /* what was read makes room */
        memmove(in->data, in->data + in->read, in->length - in->read);
        in->length -= in->read;
        in->read = 0;
    }
    if (in->capacity - in->length < n) {
        const size_t capacity = PC__MAX(2 * in->capacity, in->length + n);
        uint8_t *data = pc__realloc(in->data, capacity);
        if (!data)
            return NULL;
        in->data = data;
        in->capacity = capacity;
    }
    return in->data + in->length;
}

void pc__stream_came(pc__stream_in *in, size_t n)
{
    in->length += n;
}

/* The magic as far as it has come: garbage is known by its first byte. */
static pc__next greet(pc__stream_in *in)
{
    const size_t n = PC__MIN(in->length - in->read, (size_t)PC__WIRE_MAGIC_BYTES);
    if (n && memcmp(in->data + in->read, PC__WIRE_MAGIC, n) != 0)
        return PC__NEXT_BROKEN;
    if (n < PC__WIRE_MAGIC_BYTES)
        return PC__NEXT_MORE;
    in->read += n;
    in->greeted = true;
    return PC__NEXT_FRAME;
}

pc__next pc__stream_next(pc__stream_in *in, pc__frame *frame)
{
    const pc__next greeting = in->greeted ? PC__NEXT_FRAME : greet(in);
    const size_t there = in->length - in->read;
    if (greeting != PC__NEXT_FRAME)
        return greeting;
    if (there < HEAD)
        return PC__NEXT_MORE;
    const uint8_t *head = in->data + in->read;
    const uint32_t n = (uint32_t)number(head, 4);
    if (n < HEAD - 4 || n > in->limit)
        return PC__NEXT_BROKEN;
    if (there < 4 + (size_t)n)
        return PC__NEXT_MORE;
    *frame = (pc__frame){(pc__wire_kind)head[4], (uint32_t)number(head + 5, 4), {head + HEAD, head + 4 + n, false}};
    in->read += 4 + (size_t)n;
    return PC__NEXT_FRAME;
}

void pc__stream_free(pc__stream_in *in)
{
    pc__free(in->data);
    *in = (pc__stream_in){.limit = in->limit};
}

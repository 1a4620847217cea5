/* wire.h: what the control plane's connections carry. Each side's stream begins with PC__WIRE_MAGIC; then come frames: four
 * bytes of length of what follows, a byte of kind, four bytes that number a request, and a body of numbers and texts.
 * Numbers are little-endian. What arrives is foreign input: every read is checked. */
#ifndef PC__STORE_WIRE_H
#define PC__STORE_WIRE_H

#include "base/base.h"
#include "store/store.h"

#define PC__WIRE_MAGIC "PARACORD"
#define PC__WIRE_MAGIC_BYTES 8
#define PC__WIRE_PROTOCOL 2
#define PC__WIRE_FRAME_MAX ((1u << 24) + (1u << 20)) /* a value and its name */
#define PC__WIRE_HELLO_MAX 4096u                     /* of somebody who has not shown the token */

typedef enum pc__wire_kind {
    PC__WIRE_HELLO = 1,   /* client: a pc__hello */
    PC__WIRE_WELCOME,     /* server: you are in */
    PC__WIRE_REFUSED,     /* server: u8 why, text */
    PC__WIRE_SET,         /* key, value */
    PC__WIRE_GET,         /* key; answered when it is there */
    PC__WIRE_ADD,         /* key, u64 */
    PC__WIRE_COMPARE_SET, /* key, u8 has_expected, expected, desired */
    PC__WIRE_WAIT,        /* u32 count, keys; answered when all are there */
    PC__WIRE_DELETE,      /* prefix */
    PC__WIRE_CANCEL,      /* of the request of that number: it is answered by what is missing */
    PC__WIRE_BEAT,        /* a beat; answered by an empty one */
    PC__WIRE_BEATS,       /* answered by u32 size and the records */
    PC__WIRE_ERROR,       /* u8 pc_status, text: the rank cannot go on */
    PC__WIRE_BYE,         /* the rank leaves in good order */
    PC__WIRE_REPLY,       /* server: u8 pc__wire_result, what was asked for */
    PC__WIRE_LOST,        /* server: u32 rank, text */
    PC__WIRE_NODE,        /* between launchers, both ways: theirs to read */
    PC__WIRE_CLOCK,       /* answered by u64 pc__now(), u64 job, text pc__clock_name() */
    PC__WIRE_DUMP         /* text why, to all ranks but who sends it: write down your last calls */
} pc__wire_kind;

typedef enum pc__wire_result {
    PC__WIRE_FINE,
    PC__WIRE_NOT_THERE, /* to CANCEL: u32 how many names are missing, texts of the first of them */
    PC__WIRE_NO_NUMBER,
    PC__WIRE_NO_MEMORY
} pc__wire_result;

typedef enum pc__wire_refusal {
    PC__WIRE_TOKEN,
    PC__WIRE_VERSION,
    PC__WIRE_SIZE,
    PC__WIRE_STALE,
    PC__WIRE_EARLY, /* of a later start: try again */
    PC__WIRE_TAKEN
} pc__wire_refusal;

typedef enum pc__wire_role { PC__WIRE_RANK, PC__WIRE_LAUNCHER } pc__wire_role;

/* How a client presents itself. Texts are at most 255 bytes. */
typedef struct pc__hello {
    const char *version, *token, *host;
    pc__wire_role role;
    int rank; /* of a launcher: its node */
    int size, generation, process;
} pc__hello;

/* Frames are written into a pc__text: begin, add, end. What `begin` gives is `end`'s to have. */
PC__SHARED size_t pc__frame_begin(pc__text *out, pc__wire_kind kind, uint32_t request);
PC__SHARED void pc__frame_end(pc__text *out, size_t begin);
PC__SHARED void pc__put_u8(pc__text *out, unsigned value);
PC__SHARED void pc__put_u32(pc__text *out, uint32_t value);
void pc__put_u64(pc__text *out, uint64_t value);
void pc__put_bytes(pc__text *out, const void *bytes, size_t n); /* u32 n, the bytes */
PC__SHARED void pc__put_text(pc__text *out, const char *text);
void pc__put_hello(pc__text *out, const pc__hello *hello);
void pc__put_beat(pc__text *out, const pc__beat *beat);

/* A body that is read from front to back. Behind its end, and after that for ever, numbers are 0, texts are "" and `broken`
 * is set. */
typedef struct pc__body {
    const uint8_t *at, *end;
    bool broken;
} pc__body;
PC__SHARED unsigned pc__take_u8(pc__body *body);
PC__SHARED uint32_t pc__take_u32(pc__body *body);
uint64_t pc__take_u64(pc__body *body);
const void *pc__take_bytes(pc__body *body, size_t *n); /* stays where it is; *n is 0 where there is none */
PC__SHARED void pc__take_text(pc__body *body, char *text, size_t room); /* longer ones are broken */
void pc__take_beat(pc__body *body, pc__beat *beat);

/* What has come of a stream and is not read yet. Start from {.limit = ...}. */
typedef struct pc__stream_in {
    uint8_t *data;
    size_t length, capacity, read;
    uint32_t limit; /* of a frame */
    bool greeted;   /* the magic was there */
} pc__stream_in;

typedef struct pc__frame {
    pc__wire_kind kind;
    uint32_t request;
    pc__body body; /* valid until the next call */
} pc__frame;

typedef enum pc__next { PC__NEXT_FRAME, PC__NEXT_MORE, PC__NEXT_BROKEN } pc__next;

/* Room for at least `n` more bytes at its end; NULL when there is no memory. Who has written them says how many. */
PC__SHARED void *pc__stream_room(pc__stream_in *in, size_t n);
PC__SHARED void pc__stream_came(pc__stream_in *in, size_t n);
PC__SHARED pc__next pc__stream_next(pc__stream_in *in, pc__frame *frame);
PC__SHARED void pc__stream_free(pc__stream_in *in);

#endif

/* ask_nvml.h: what the parts of asking NVML share. They run in the child process of ask.c alone. */
#ifndef PC__PROBE_ASK_NVML_H
#define PC__PROBE_ASK_NVML_H

#include "probe/ask.h"
#include "probe/nvml.h"

#define PC__NVML_DEVICES_MAX 64

typedef struct pc__nvml {
    void *library;
    const char *(*error_text)(int code);
    unsigned count;
    bool ready;
    pc__nvml_device devices[PC__NVML_DEVICES_MAX];
    char address[PC__NVML_DEVICES_MAX][32];
} pc__nvml;

typedef struct pc__asking {
    pc__answer *answer;
    pc__nvml *nvml;
    int index; /* of the device; -1: about the machine */
    pc__nvml_device device;
} pc__asking;

/* ask_nvml.c: the library's words for a code. */
const char *pc__nvml_words(const pc__nvml *nvml, int code);

/* The function, announced as the one that is called next; NULL with the key said to be unknown. */
void *pc__nvml_function(pc__asking *a, const char *key, const char *name);

/* True when the code says so; otherwise the key is said to be unknown, and why. */
bool pc__nvml_fine(pc__asking *a, const char *key, int code);

void pc__say_number(pc__asking *a, const char *key, double number);

/* One of 32 bits, which are all set where it is unknown. */
void pc__say_counted(pc__asking *a, const char *key, unsigned number, double scale);

/* Each asks for a part of what there is to know of a device; with `again` only what changes. */
void pc__ask_rows(pc__asking *a, bool again); /* ask_nvml_rows.c: functions that give a number or a text */
void pc__ask_state(pc__asking *a);            /* ask_nvml_state.c: memory, load, clocks, rows, processes */
void pc__ask_identity(pc__asking *a);         /* ask_nvml_links.c: what it is, NVLink, MIG */

#endif

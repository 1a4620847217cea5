/* store.c: the calls of store.h as requests. */
#include "store/client.h"

#include <paracord/dist.h>

#define TELL_MAX 300 /* characters of an error that others are told */

/* Begin a request with a name that may be one. */
static pc_status begin(pc__call *call, pc__wire_kind kind, const char *what, const char *key)
{
    *call = (pc__call){0};
    if (strlen(key) > PC__STORE_KEY_MAX)
        return pc__fail(PC_ERR_RANGE, "%s: the name \"%.40s...\" has %zu characters, more than %d", what, key,
                        strlen(key), PC__STORE_KEY_MAX);
    pc__call_begin(call, kind);
    pc__put_text(&call->frame, key);
    return PC_OK;
}

static pc_status end(pc__call *call, pc_status status)
{
    pc__call_end(call);
    return status;
}

/* Why names are missing that others should have set. */
static pc_status missing(const char *what, pc__body *body, double seconds)
{
    char why[PC__WHY_MAX], names[300] = "", name[PC__STORE_KEY_MAX + 1];
    if (pc__dist_lost(NULL, why))
        return pc__fail(PC_ERR_LOST, "%s: %s", what, why);
    const uint32_t count = pc__take_u32(body);
    for (size_t n = 0; body->at < body->end && !body->broken && n + 1 < sizeof names;) {
        pc__take_text(body, name, sizeof name);
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", name);
    }
    return pc__fail(PC_ERR_TIMEOUT, "%s: nobody has set %s%s within %.3g s", what, names, count > 8 ? ", ..." : "",
                    seconds);
}

pc_status pc__store_set(const char *key, const void *value, size_t bytes)
{
    pc__call call;
    pc__body body;
    if (bytes > PC__STORE_VALUE_MAX)
        return pc__fail(PC_ERR_RANGE, "set %.40s: %zu bytes are more than the store's %d", key, bytes,
                        PC__STORE_VALUE_MAX);
    PC__TRY(begin(&call, PC__WIRE_SET, "set", key));
    pc__put_bytes(&call.frame, value, bytes);
    return end(&call, pc__call_perform(&call, "set", PC__CALL_NOW, &body));
}

pc_status pc__store_get(const char *key, void *buffer, size_t capacity, size_t *bytes, double seconds)
{
    pc__call call;
    pc__body body;
    PC__TRY(begin(&call, PC__WIRE_GET, "get", key));
    pc_status status = pc__call_perform(&call, "get", PC__MAX(seconds, 0), &body);
    if (status == PC_OK && call.result != PC__WIRE_FINE)
        status = missing("get", &body, seconds);
    if (status == PC_OK) {
        size_t n;
        const void *value = pc__take_bytes(&body, &n);
        if (bytes)
            *bytes = n;
        if (n > capacity)
            status = pc__fail(PC_ERR_RANGE, "get: %.64s has %zu bytes, more than the %zu there is room for", key, n,
                              capacity);
        else if (n)
            memcpy(buffer, value, n);
    }
    return end(&call, status);
}

pc_status pc__store_add(const char *key, int64_t delta, int64_t *value)
{
    pc__call call;
    pc__body body;
    PC__TRY(begin(&call, PC__WIRE_ADD, "add", key));
    pc__put_u64(&call.frame, (uint64_t)delta);
    pc_status status = pc__call_perform(&call, "add", PC__CALL_NOW, &body);
    if (status == PC_OK && call.result == PC__WIRE_NO_NUMBER)
        status = pc__fail(PC_ERR_STATE, "add: %.64s is no number", key);
    if (status == PC_OK && value)
        *value = (int64_t)pc__take_u64(&body);
    return end(&call, status);
}

pc_status pc__store_compare_set(const char *key, const void *expected, size_t expected_bytes, const void *desired,
                                size_t desired_bytes, bool *swapped)
{
    pc__call call;
    pc__body body;
    if (expected_bytes > PC__STORE_VALUE_MAX / 2 || desired_bytes > PC__STORE_VALUE_MAX / 2)
        return pc__fail(PC_ERR_RANGE, "compare and set %.40s: more than %d bytes", key, PC__STORE_VALUE_MAX / 2);
    PC__TRY(begin(&call, PC__WIRE_COMPARE_SET, "compare and set", key));
    pc__put_u8(&call.frame, expected != NULL);
    pc__put_bytes(&call.frame, expected, expected ? expected_bytes : 0);
    pc__put_bytes(&call.frame, desired, desired_bytes);
    const pc_status status = pc__call_perform(&call, "compare and set", PC__CALL_NOW, &body);
    *swapped = status == PC_OK && pc__take_u64(&body) != 0;
    return end(&call, status);
}

pc_status pc__store_wait_all(const char *const *keys, int count, double seconds)
{
    pc__call call;
    pc__body body;
    if (count == 0)
        return PC_OK;
    if (count < 0 || count > PC__STORE_KEYS_MAX)
        return pc__fail(PC_ERR_RANGE, "wait: %d names are more than %d", count, PC__STORE_KEYS_MAX);
    pc__call_begin(&call, PC__WIRE_WAIT);
    pc__put_u32(&call.frame, (uint32_t)count);
    for (int i = 0; i < count; i++)
        pc__put_text(&call.frame, keys[i]);
    pc_status status = pc__call_perform(&call, "wait", PC__MAX(seconds, 0), &body);
    if (status == PC_OK && call.result != PC__WIRE_FINE)
        status = missing("wait", &body, seconds);
    return end(&call, status);
}

pc_status pc__store_delete(const char *prefix, int *deleted)
{
    pc__call call;
    pc__body body;
    PC__TRY(begin(&call, PC__WIRE_DELETE, "delete", prefix));
    const pc_status status = pc__call_perform(&call, "delete", PC__CALL_NOW, &body);
    if (status == PC_OK && deleted)
        *deleted = (int)pc__take_u64(&body);
    return end(&call, status);
}

pc_status pc__beats_get(pc__beat_record *records, int capacity, int *count)
{
    pc__call call;
    pc__body body;
    *count = 0;
    pc__call_begin(&call, PC__WIRE_BEATS);
    const pc_status status = pc__call_perform(&call, "heartbeats", PC__CALL_NOW, &body);
    if (status == PC_OK)
        *count = (int)pc__take_u32(&body);
    for (int i = 0; i < *count && i < capacity && !body.broken; i++) {
        const unsigned flags = pc__take_u8(&body);
        records[i] = (pc__beat_record){.rank = i, .came = flags & 1, .left = flags & 2, .lost = flags & 4};
        records[i].age = (double)pc__take_u64(&body) / 1000;
        pc__take_beat(&body, &records[i].beat);
    }
    return end(&call, status);
}

void pc__dist_tell_error(pc_status kind, const char *why)
{
    pc__call call;
    pc__body body;
    pc__call_begin(&call, PC__WIRE_ERROR);
    pc__put_u8(&call.frame, (unsigned)kind);
    pc__put_bytes(&call.frame, why, strnlen(why, TELL_MAX)); /* which may be the words of the error that goes now */
    const pc_error before = pc__error_take();
    pc__beat_send(); /* for whoever tells of its end */
    (void)pc__call_perform(&call, "error", PC__CALL_NOW, &body);
    pc__call_end(&call);
    pc_error_clear();
    (void)pc__error_put(&before);
}

pc_status pc_dist_need_multiple(int ranks)
{
    char text[16];
    if (ranks < 1)
        return pc__fail(PC_ERR_ARGUMENT, "pc_dist_need_multiple: a world is no multiple of %d ranks; 1 takes any",
                        ranks);
    if (pc_dist_size() < 2)
        return PC_OK;
    return pc__store_set(PC__STORE_MULTIPLE, text, (size_t)snprintf(text, sizeof text, "%d", ranks));
}

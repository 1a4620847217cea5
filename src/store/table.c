/* table.c: a hash table of texts and bytes. */
#include "store/table.h"

typedef struct pc__entry {
    struct pc__entry *next;
    char *key;
    void *value;
    size_t n;
} entry;

static uint64_t hash_of(const char *key)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 1099511628211u;
    return hash;
}

static entry *find(const pc__table *t, const char *key)
{
    entry *e = t->slot_count ? t->slots[hash_of(key) % t->slot_count] : NULL;
    while (e && strcmp(e->key, key) != 0)
        e = e->next;
    return e;
}

static bool grow(pc__table *t)
{
    const size_t count = t->slot_count ? 4 * t->slot_count : 64;
    entry **slots = pc__calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < t->slot_count; i++)
        for (entry *e = t->slots[i], *next; e; e = next) {
            next = e->next;
            entry **slot = &slots[hash_of(e->key) % count];
            e->next = *slot;
            *slot = e;
        }
    pc__free(t->slots);
    t->slots = slots;
    t->slot_count = count;
    return true;
}

static void drop(entry *e)
{
    pc__free(e->key);
    pc__free(e->value);
    pc__free(e);
}

const void *pc__table_get(const pc__table *table, const char *key, size_t *n)
{
    const entry *e = find(table, key);
    *n = e ? e->n : 0;
    return e ? e->value : NULL;
}

bool pc__table_set(pc__table *table, const char *key, const void *value, size_t n)
{
    entry *e = find(table, key);
    void *copy = pc__alloc(n);
    if (!copy)
        return false;
    if (n)
        memcpy(copy, value, n);
    if (!e) {
        e = pc__calloc(1, sizeof *e);
        if (!e || !(e->key = pc__strdup(key)) || (table->count >= table->slot_count && !grow(table))) {
            pc__free(copy);
            if (e)
                drop(e);
            return false;
        }
        entry **slot = &table->slots[hash_of(key) % table->slot_count];
        e->next = *slot;
        *slot = e;
        table->count++;
    }
    pc__free(e->value);
    e->value = copy;
    e->n = n;
    return true;
}

int pc__table_delete(pc__table *table, const char *prefix)
{
    const size_t length = strlen(prefix);
    int deleted = 0;
    for (size_t i = 0; i < table->slot_count; i++)
        for (entry **at = &table->slots[i]; *at;) {
            entry *e = *at;
            if (strncmp(e->key, prefix, length) != 0) {
                at = &e->next;
                continue;
            }
            *at = e->next;
            drop(e);
            table->count--;
            deleted++;
        }
    return deleted;
}

void pc__table_free(pc__table *table)
{
    pc__table_delete(table, "");
    pc__free(table->slots);
    *table = (pc__table){0};
}

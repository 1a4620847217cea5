/* graph.h: recordings: which streams take part, what memory they hold, and why one was refused. */
#ifndef PC__GRAPH_H
#define PC__GRAPH_H

#include "device/life.h"
#include "device/recorder.h"
#include "device/storage.h"

typedef struct pc__graph_use {
    pc__storage *storage; /* one reference */
    int number;           /* in the order of first uses */
    bool write;
    bool made;   /* while it was recorded: no launch finds anything in it */
    bool renews; /* the first that launches do with it is to write all of it */
} pc__graph_use;

/* The change of `object` is put back to `before`, or stays; `before` is let go in both cases. */
typedef void pc__graph_end_change(void *object, void *before, bool put_back);

typedef struct pc__graph_change {
    void *object, *before;
    pc__graph_end_change *end;
} pc__graph_change;

struct pc_graph {
    pc_device device;
    uint64_t number; /* never 0, never used again */
    const pc__backend *backend;
    pc_stream *stream;  /* that it was begun on; NULL when it is ended */
    pc_graph *next;     /* of those that the thread has under way */
    pc_stream **others; /* that joined it, a reference each */
    int other_count, other_room;
    int ordered_count; /* when it is ended: so many of others are held on, as launches come in the order of their work */
    pc__graph_use *uses; /* a hash table by storage */
    int use_count, use_room;
    pc__life **lives; /* of what a recording that takes all found there, a reference each */
    int life_count, life_room;
    uint64_t ended;            /* lives of all things that were over when these were looked at last */
    pc__graph_change *changes; /* while it is recorded, oldest first */
    int change_count, change_room;
    bool launched;
    bool takes_all;
    pc_error refused; /* why it cannot be ended, or PC_OK */
    void *implementation;
    struct pc__plan *plan;    /* NULL: nothing is recorded yet */
    pc__storage *arena;       /* the memory of all temporaries; NULL: there are none */
    pc__storage **workspaces; /* of kernels: they are among the uses */
    int workspace_count, workspace_room;
    int lent;               /* workspaces of the lender that are taken, or too small */
    const pc_graph *lender; /* while it is recorded: lends its memory, or NULL */
};

/* PC_OK when the stream is not being recorded; otherwise PC_ERR_STATE: `who` needs `what` ("waiting", "data on the
 * host"), which no recording can hold. The recording is refused with that. */
pc_status pc__graph_allows(pc_stream *stream, const char *who, const char *what);

/* The same for what the host alone does, whose number is another one each time: PC_OK where the calling thread records
 * nothing, on any device. All its recordings are refused, and nothing is to be changed then. */
pc_status pc__graph_allows_host(const char *who, const char *what);

/* Work on `stream` that is part of no recording, for `who`: PC_ERR_STATE where the calling thread makes one that takes all,
 * which is refused: launches would not do that work again. */
pc_status pc__graph_allows_beside(const pc_stream *stream, const char *who);

/* `stream` is about to wait for work `ticket` of `other`, for `who`. When that is part of a recording, `stream` joins
 * it; of another thread's it cannot: PC_ERR_STATE. */
pc_status pc__graph_meets(pc_stream *stream, pc_stream *other, uint64_t ticket, const char *who, bool *joined);

/* From pc_graph_begin on, all that the calling thread queues on streams of the recording's device is part of it, what
 * waits for nothing of it too. */
pc_status pc__graph_take_all(pc_stream *stream);

/* `work` is about to be queued on the stream, whose lock is held: make it part of a recording that takes all. */
pc_status pc__graph_takes(pc_stream *stream, const pc__work *work);

/* The same for a device that works at once, where no wait says so: `work` on the stream uses the storage, and has to
 * come behind what a recording of the calling thread does with it. */
pc_status pc__graph_follows(pc_stream *stream, const pc__storage *storage, bool write, const pc__work *work);

/* Work that is being recorded on `stream` uses the storage: the graph keeps it. `whole`: it writes all of it, and reads
 * nothing. */
pc_status pc__graph_uses(pc_stream *stream, pc__storage *storage, bool write, bool whole);

/* What is noted of the storage, or NULL; all of it forgotten, with its references. */
pc__graph_use *pc__graph_use_of(const pc_graph *graph, const pc__storage *storage);
void pc__graph_forget(pc_graph *graph);

/* Note a use, of a recording that the stream is part of or of this one. */
pc_status pc__graph_note(pc_graph *graph, pc__storage *storage, pc__graph_use use);

/* In front of work on `stream` that uses the storage, with no lock held: where the work is no part of a recording, and none
 * of the calling thread's has work on the storage, which the work might join, a planned storage gets its memory. */
pc_status pc__graph_gives_memory(pc_stream *stream, pc__storage *storage);
static inline pc_status pc__graph_gives(pc_stream *stream, pc__storage *storage)
{
    return atomic_load_explicit(&storage->planned, memory_order_acquire) ? pc__graph_gives_memory(stream, storage)
                                                                         : PC_OK;
}

/* The calling thread works with a thing that was made in recording number `made_in`; 0: in none. Its recordings that take
 * all note that they found it, but for those that it was made in. */
pc_status pc__graph_finds(pc__life_slot *slot, uint64_t made_in);

/* A thing that the recording found is there no more: what was recorded would work with other things now. */
bool pc__graph_lacks(pc_graph *graph);
void pc__graph_forget_lives(pc_graph *graph);

/* So many references of the storage are the recording's on `stream`. */
int pc__graph_holds(const pc_stream *stream, const pc__storage *storage);

/* The recording that was begun on `stream` takes the arena of `lender` (NULL: nobody) where it is large enough: launches
 * of the two share what neither leaves there for anybody. The lender lives until the end of the recording. */
void pc__graph_borrow(pc_stream *stream, const pc_graph *lender);

/* The storage is made on `stream`, which is recorded. */
pc_status pc__graph_makes(pc_stream *stream, pc__storage *storage);

/* The recording that the stream is part of; 0: none. */
uint64_t pc__graph_number(const pc_stream *stream);

/* The calling thread's recording that work on the current stream of the device is part of, or NULL. */
pc_graph *pc__graph_here(pc_device device);

/* In front of a change on the host that comes with recorded calls: where the recording is refused, `end` puts it back,
 * the newest first. An error refuses the recording; whoever gets it lets go of `before` and changes nothing. */
pc_status pc__graph_changes(pc_graph *graph, void *object, void *before, pc__graph_end_change *end);

/* A call in place writes the storage in work of the current stream of `device`: it has another version now, which goes back
 * where a recording is refused that has the call. */
pc_status pc__graph_raises(pc_device device, pc__storage *storage);

/* The object is about to be freed: none of its changes is put back. */
void pc__graph_lost(const void *object);

void pc__graph_end_changes(pc_graph *graph, bool put_back);

/* Drop the calling thread's recording of the stream, if there is one. */
void pc__graph_abandon(pc_stream *stream);

/* The calling thread ends: nobody else can end its recordings. */
void pc__graph_abandon_all(void);

#endif

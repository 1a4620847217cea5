/* copies.cpp: asynchronous copies to shared memory. They arrive as late as a GPU may let them, at the wait for their
 * group: who reads before finds what was there. */
#include "device.h"
#include "ptx.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace emulator
{
namespace
{

struct copy {
    char *to;
    const void *from;
    int bytes, there;
};

struct queue {
    std::vector<copy> copies;
    std::vector<size_t> groups; // how many copies there were when each was closed
};

std::vector<queue> queues(MOST_THREADS);
int in_use; // the queues before this one may have something

queue &own_queue()
{
    in_use = std::max(in_use, thread_in_block() + 1);
    return queues[thread_in_block()];
}

void add(unsigned to, const void *from, int bytes, int there)
{
    if (there < 0 || there > bytes)
        fail("cp.async of %d of %d bytes", there, bytes);
    if (there && reinterpret_cast<uintptr_t>(from) % static_cast<unsigned>(bytes))
        fail("cp.async of %d bytes from memory that is not aligned", bytes);
    if (there < bytes && !is_allocated(from, static_cast<size_t>(bytes))) // a GPU may read them all even so
        fail("cp.async of %d of %d bytes that are not all memory", there, bytes);
    own_queue().copies.push_back({shared_at(to, bytes, "cp.async"), from, bytes, there});
}

} // namespace

void forget_copies()
{
    for (int i = 0; i < in_use; i++) {
        queues[i].copies.clear();
        queues[i].groups.clear();
    }
    in_use = 0;
}

namespace ptx
{

void cp_async_ca_shared_global(unsigned to, const void *from, int bytes, int there)
{
    note_stale_read();
    add(to, from, bytes, there);
}

void cp_async_cg_shared_global(unsigned to, const void *from, int bytes, int there)
{
    if (there)
        note_read(from, static_cast<size_t>(there));
    add(to, from, bytes, there);
}

void cp_async_commit_group()
{
    queue &own = own_queue();
    own.groups.push_back(own.copies.size());
}

void cp_async_wait_group(int later)
{
    queue &own = own_queue();
    if (own.groups.size() <= static_cast<size_t>(later))
        return;
    size_t arriving = own.groups.size() - later, count = own.groups[arriving - 1];
    for (size_t i = 0; i < count; i++) {
        const copy &c = own.copies[i];
        memset(c.to, 0, c.bytes);
        if (c.there)
            memcpy(c.to, c.from, c.there);
    }
    own.copies.erase(own.copies.begin(), own.copies.begin() + count);
    own.groups.erase(own.groups.begin(), own.groups.begin() + arriving);
    for (size_t &group : own.groups)
        group -= count;
}

} // namespace ptx
} // namespace emulator

/* ahead.cpp: see ahead.h. */
#include "ahead.h"

#include "block.h"

#include <cstring>

namespace emulator
{
namespace
{

thread_local std::vector<seen> *looking; // NULL: kernels run

} // namespace

std::vector<seen> look_ahead(const std::function<void()> &kernel)
{
    std::vector<seen> all;
    looking = &all;
    kernel();
    looking = nullptr;
    return all;
}

void still_there(const std::vector<seen> &all)
{
    for (const seen &s : all)
        if (memcmp(s.what, s.from, s.bytes))
            fail("a kernel reads %zu bytes before it waits for the kernel in front, which writes them", s.bytes);
}

void note_read(const void *from, size_t bytes)
{
    if (!looking)
        return;
    seen s = {from, bytes, {}};
    if (bytes > sizeof s.what)
        fail("a read of %zu bytes at once", bytes);
    memcpy(s.what, from, bytes);
    looking->push_back(s);
}

void note_stale_read()
{
    if (looking)
        fail("a copy through first-level memory before the wait for the kernel in front");
}

void come_to_wait()
{
    if (looking)
        leave_block();
}

} // namespace emulator

/* ahead.h: what kernels that are started early read before they wait for the kernel in front of them. There must be
 * then what is there when that one is done: so each is run as far as its wait before the one in front of it runs. */
#ifndef PC_EMULATOR_AHEAD_H
#define PC_EMULATOR_AHEAD_H

#include <functional>
#include <vector>

namespace emulator
{

struct seen {
    const void *from;
    size_t bytes;
    char what[16];
};

/* Run the kernel as far as its wait: what it has read by then. */
std::vector<seen> look_ahead(const std::function<void()> &kernel);

/* The process ends where something else is there now. */
void still_there(const std::vector<seen> &all);

/* A kernel reads past first-level memory, or through it, where something old may be; and comes to its wait. */
void note_read(const void *from, size_t bytes);
void note_stale_read();
void come_to_wait();

} // namespace emulator

#endif

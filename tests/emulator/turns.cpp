/* turns.cpp: an order of threads that no kernel should count on. */
#include "turns.h"

#include "block.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace emulator
{
namespace
{

enum order { SHUFFLED, FORWARD, BACKWARD };

order chosen_order()
{
    const char *word = getenv("PARACORD_EMULATOR_ORDER");
    if (!word || !strcmp(word, "shuffled"))
        return SHUFFLED;
    if (!strcmp(word, "forward"))
        return FORWARD;
    if (!strcmp(word, "backward"))
        return BACKWARD;
    fail("PARACORD_EMULATOR_ORDER=%s: there are shuffled, forward and backward", word);
}

order by()
{
    static const order chosen = chosen_order();
    return chosen;
}

std::vector<int> in_order(int count)
{
    std::vector<int> who(count);
    for (int i = 0; i < count; i++)
        who[i] = by() == BACKWARD ? count - 1 - i : i;
    return who;
}

} // namespace

turns::turns(int warps) : warps(in_order(warps)), lanes(in_order(LANES))
{
}

bool turns::backward() const
{
    return by() == BACKWARD;
}

const std::vector<int> &turns::next_warps()
{
    return next(warps);
}

const std::vector<int> &turns::next_lanes()
{
    return next(lanes);
}

const std::vector<int> &turns::next(std::vector<int> &who)
{
    for (size_t left = by() == SHUFFLED ? who.size() : 0; left > 1; left--) {
        dice = dice * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX
        std::swap(who[left - 1], who[(dice >> 32) * left >> 32]);
    }
    return who;
}

} // namespace emulator

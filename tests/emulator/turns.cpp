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

void shuffle(std::vector<int> &who, uint64_t &dice)
{
    for (size_t left = by() == SHUFFLED ? who.size() : 0; left > 1; left--) {
        dice = dice * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX
        std::swap(who[left - 1], who[(dice >> 32) * left >> 32]);
    }
}

// Lanes take turns at each shuffle of a kernel: to shuffle them as often takes a twentieth of its time.
std::vector<std::vector<int>> rounds_of_lanes()
{
    constexpr int ROUNDS = 61;
    std::vector<std::vector<int>> rounds;
    std::vector<int> lanes = in_order(LANES);
    uint64_t dice = 1;
    for (int i = 0; i < ROUNDS; i++) {
        shuffle(lanes, dice);
        rounds.push_back(lanes);
    }
    return rounds;
}

} // namespace

turns::turns(int warps) : warps(in_order(warps))
{
}

bool turns::backward() const
{
    return by() == BACKWARD;
}

const std::vector<int> &turns::next_warps()
{
    shuffle(warps, dice);
    return warps;
}

const std::vector<int> &turns::next_lanes()
{
    static const std::vector<std::vector<int>> rounds = rounds_of_lanes();
    round = round + 1 < rounds.size() ? round + 1 : 0;
    return rounds[round];
}

} // namespace emulator

/* turns.h: who goes on after whom: warps, and the lanes of each. */
#ifndef PC_EMULATOR_TURNS_H
#define PC_EMULATOR_TURNS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator
{

/* As PARACORD_EMULATOR_ORDER says: shuffled (unless set), forward, backward. The same in each launch. */
class turns
{
  public:
    explicit turns(int warps);
    bool backward() const;
    const std::vector<int> &next_warps();
    const std::vector<int> &next_lanes();

  private:
    std::vector<int> warps;
    uint64_t dice = 1;
    size_t round = 0; // of lanes
};

} // namespace emulator

#endif

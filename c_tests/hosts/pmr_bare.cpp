// The std::pmr header in a program without exceptions and type information: compiled, and run without running out.
#include <arenite/pmr.hpp>

#include <cstdint>
#include <vector>

int main() {
    arenite::pool_resource memory;
    arenite::pool_resource same(*memory.pool());
    std::pmr::vector<double> numbers(1000, 1.0, &memory);
    const bool aligned = reinterpret_cast<std::uintptr_t>(numbers.data()) % 128 == 0;
    // The same object is equal to itself; another over the same pool is not known to be.
    return aligned && memory.is_equal(memory) && !memory.is_equal(same) ? 0 : 1;
}

// Memory of results, kept for the next call: fresh pages cost more than the arithmetic that fills them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdlib>
#include <list>
#include <mutex>
#include <new>

#include "border.h"

namespace nb = nanobind;

namespace gbpn {
namespace {

struct Block {
    void *memory;
    size_t bytes;
};

// Blocks that no tensor uses any more, up to a limit; the oldest goes first.
class Kept {
  public:
    Block take(size_t bytes) {
        {
            const std::lock_guard<std::mutex> lock(guard_);
            auto best = free_.end();
            for (auto at = free_.begin(); at != free_.end(); ++at)
                if (at->bytes >= bytes && at->bytes - bytes <= bytes / 4 &&
                    (best == free_.end() || at->bytes <= best->bytes))
                    best = at;
            if (best != free_.end()) {
                const Block found = *best;
                free_.erase(best);
                total_ -= found.bytes;
                return found;
            }
        }
        const size_t whole = (bytes + page - 1) / page * page;
        void *memory = std::aligned_alloc(page, whole);
        if (!memory) throw std::bad_alloc();
        return {memory, whole};
    }

    void give_back(const Block &block) noexcept {
        const std::lock_guard<std::mutex> lock(guard_);
        try {
            free_.push_back(block);
            total_ += block.bytes;
        } catch (...) {
            std::free(block.memory);
        }
        while (total_ > limit) {
            total_ -= free_.front().bytes;
            std::free(free_.front().memory);
            free_.pop_front();
        }
    }

    static constexpr size_t page = 4096, limit = size_t(96) << 20;

  private:
    std::mutex guard_;
    std::list<Block> free_;
    size_t total_ = 0;
};

Kept &kept() {
    static Kept *const all = new Kept;  // outlives the last tensor
    return *all;
}

// `count` numbers of any value; their memory comes back when no tensor uses it.
nb::ndarray<nb::pytorch, float, nb::ndim<1>> kept_floats(int64_t count) {
    require_between("count", count, 1, most_of_any);
    Block *const block = new Block(kept().take(size_t(count) * sizeof(float)));
    const nb::capsule owner(block, [](void *held) noexcept {
        kept().give_back(*static_cast<Block *>(held));
        delete static_cast<Block *>(held);
    });
    const size_t shape[] = {size_t(count)};
    return nb::ndarray<nb::pytorch, float, nb::ndim<1>>(block->memory, 1, shape, owner);
}

}  // namespace
}  // namespace gbpn

void bind_kept_memory(nb::module_ &module) {
    module.def("kept_floats", &gbpn::kept_floats, nb::arg("count"),
               "A float32 tensor of `count` numbers of any value, in memory that is used again.");
}

// Independent pieces of work over a number of threads. Which thread runs a piece never changes its result.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace gbpn {

// Calls work(piece) for 0 ≤ piece < pieces, on at most `threads` threads including this one.
template <class Work>
void parallel(int64_t pieces, int threads, const Work &work) {
    std::atomic<int64_t> next{0};
    const auto run = [&] {
        for (int64_t piece; (piece = next.fetch_add(1)) < pieces;) work(piece);
    };
    std::vector<std::thread> others;
    const int64_t more = std::min<int64_t>(threads, pieces) - 1;
    for (int64_t i = 0; i < more; ++i) others.emplace_back(run);
    run();
    for (std::thread &other : others) other.join();
}

}  // namespace gbpn

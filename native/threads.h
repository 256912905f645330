// Independent pieces of work over a number of threads. Which thread runs a piece never changes its result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace gbpn {

constexpr int64_t most_threads = 1024;

// Calls work(data) on a team of `threads` threads, or fewer, of the OpenMP library that this process uses
// already (torch's: its threads wait for work by spinning, and a new thread would have to share their cores).
// False: there is none, nothing was called.
bool run_on_team(void (*work)(void *), void *data, int threads);

// Calls work(piece) for 0 ≤ piece < pieces, on at most `threads` threads including this one. The first error
// of any of them is raised again here, after all have ended.
template <class Work> void parallel(int64_t pieces, int threads, const Work &work) {
    std::atomic<int64_t> next{0};
    std::exception_ptr error;
    std::mutex guard;
    const auto run = [&] {
        try {
            for (int64_t piece; (piece = next.fetch_add(1)) < pieces;) work(piece);
        } catch (...) {
            next = pieces;  // no further piece is begun
            const std::lock_guard<std::mutex> lock(guard);
            if (!error) error = std::current_exception();
        }
    };
    const int64_t others = std::min({int64_t(threads), pieces, most_threads}) - 1;
    const auto call = [](void *data) { (*static_cast<const decltype(run) *>(data))(); };
    void *const self = const_cast<void *>(static_cast<const void *>(&run));
    if (others < 1 || !run_on_team(call, self, int(others + 1))) {
        std::vector<std::thread> started;
        if (others > 0) started.reserve(others);
        try {
            for (int64_t n = 0; n < others; ++n) started.emplace_back(run);
        } catch (...) {  // no more threads to be had: those that run do all the work
        }
        run();
        for (std::thread &thread : started) thread.join();
    }
    if (error) std::rethrow_exception(error);
}

}  // namespace gbpn

#include "threads.h"

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace gbpn {
namespace {

#if defined(__linux__)

using Fork = void (*)(void (*work)(void *), void *data, unsigned threads, unsigned flags);

// A team does not survive a fork: children start threads of their own.
std::atomic<bool> forked{false};

Fork find_fork() {
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    // only if torch, or whoever else, has loaded it: nothing is loaded here
    void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return library ? reinterpret_cast<Fork>(dlsym(library, "GOMP_parallel")) : nullptr;
}

#endif

}  // namespace

bool run_on_team(void (*work)(void *), void *data, int threads) {
#if defined(__linux__)
    static const Fork fork = find_fork();
    if (!fork || forked.load(std::memory_order_relaxed)) return false;
    fork(work, data, unsigned(threads), 0);
    return true;
#else
    (void)work, (void)data, (void)threads;
    return false;
#endif
}

}  // namespace gbpn

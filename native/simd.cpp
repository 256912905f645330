#include "simd.h"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace gbpn {

Level best_level() {
#if defined(GBPN_X86_LEVELS)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return Level::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Level::avx2;
#endif
    return Level::baseline;
}

const char *level_name(Level level) {
    switch (level) {
        case Level::avx512: return "avx512";
        case Level::avx2: return "avx2";
        default: return "baseline";
    }
}

namespace {

Level parse(const std::string &name) {
    if (name.empty() || name == "auto") return best_level();
    for (Level candidate : {Level::baseline, Level::avx2, Level::avx512})
        if (name == level_name(candidate)) {
            if (candidate > best_level())
                throw std::invalid_argument("SIMD level " + name + " cannot run here; the best is " +
                                            level_name(best_level()));
            return candidate;
        }
    throw std::invalid_argument("SIMD level must be auto, baseline, avx2 or avx512; got " + name);
}

std::atomic<Level> &current() {
    static std::atomic<Level> value{[] {
        const char *wanted = std::getenv("GBPN_SIMD");
        return parse(wanted ? wanted : "auto");
    }()};
    return value;
}

}  // namespace

Level level() { return current().load(std::memory_order_relaxed); }

void force_level(const char *name) { current().store(parse(name)); }

}  // namespace gbpn

// Which instruction set the kernels use, decided once at run time.
#pragma once

#include <string>

namespace gbpn {

enum class Level { baseline, avx2, avx512 };

// The best level that this CPU and this binary have, or the one that GBPN_SIMD or `force_level` names.
Level level();
Level best_level();

// Use this level from now on ("auto" for the best); throws std::invalid_argument when it cannot run here.
void force_level(const std::string &name);

const char *level_name(Level level);

}  // namespace gbpn

// Declares or calls something at each level: GBPN_PICK(gbpn, sweep<float>)(arguments).
#if defined(GBPN_X86_LEVELS)
#define GBPN_FOR_LEVELS(DECLARE) DECLARE(baseline) DECLARE(avx2) DECLARE(avx512)
#define GBPN_PICK(function)                                            \
    (::gbpn::level() == ::gbpn::Level::avx512 ? ::gbpn::avx512::function \
     : ::gbpn::level() == ::gbpn::Level::avx2 ? ::gbpn::avx2::function   \
                                              : ::gbpn::baseline::function)
#else
#define GBPN_FOR_LEVELS(DECLARE) DECLARE(baseline)
#define GBPN_PICK(function) (::gbpn::baseline::function)
#endif

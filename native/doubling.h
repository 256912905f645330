// Planes grown bilinearly to twice their resolution, backwards: what the kernels of every instruction set get.
#pragma once

#include <cstdint>

#include "simd.h"

namespace gbpn {

// One row of the smaller plane.
template <class T> struct Doubling {
    int64_t width;
    const T *fine[4];  // cotangents of rows 2y − 1 … 2y + 2 of the larger plane; a row outside is its neighbour
    T *result;         // row y
    T *scratch;        // 2 · width + 2
};

#define GBPN_DECLARE(LEVEL)                                           \
    namespace LEVEL {                                                 \
    template <class T> void doubled_adjoint_row(const Doubling<T> &); \
    }
GBPN_FOR_LEVELS(GBPN_DECLARE)
#undef GBPN_DECLARE

}  // namespace gbpn

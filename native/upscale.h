// A 2×2 transposed convolution of stride 2 that writes planes: what the kernels of every instruction set get.
#pragma once

#include <cstdint>

#include "simd.h"

namespace gbpn {

// One row of the input; the result has two rows of 2 · width columns in every plane.
template <class T> struct Upscale {
    int channels, out, width;
    int64_t padded;   // width rounded up to `upscale_columns`
    const T *weight;  // [out, channels, 2, 2]
    const T *bias;    // [out]
    const T *x;       // x[column · step + channel · plane]
    int64_t step, plane;
    T *planes;           // the upper row in the first plane
    int64_t next_plane;  // elements from one plane to the next
    T *scratch;          // channels · padded + 4 · upscale_columns
};

constexpr int upscale_columns = 80;  // a multiple of the columns that any level handles at once

#define GBPN_DECLARE(LEVEL)                                  \
    namespace LEVEL {                                        \
    template <class T> void upscale_row(const Upscale<T> &); \
    }
GBPN_FOR_LEVELS(GBPN_DECLARE)
#undef GBPN_DECLARE

}  // namespace gbpn

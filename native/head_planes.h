// All maps that the heads draw, at once: a 2×2 transposed convolution of stride 2, a 3×3 convolution of
// finer maps, and older planes, summed in registers and written once. What the kernels of every instruction
// set get.
#pragma once

#include <cstdint>

#include "simd.h"

namespace gbpn {

// A term is a channel in float32, or two channels in bfloat16 side by side: 32 bits either way.
// One row of the input; the result has two rows of 2 · width columns in every plane.
struct HeadPlanes {
    int width, out;
    int terms, fine_terms;     // of x and of the finer maps; 0 finer ones: there are none
    const float *weight;       // [out, terms, 2, 2]
    const float *fine_weight;  // [out, fine_terms, 3, 3]
    const float *bias;         // [out]
    const float *x;            // x[column · step + term]
    int64_t step;
    const float *fine[4];  // rows above, of, of and below the result's: fine[row][column · fine_step + term]
    int64_t fine_step;     // a row outside of the image is null
    const float *const *add;  // per plane: what is added to the upper row; the lower one follows. Or null
    float *planes;            // the upper row in the first plane
    int64_t next_plane;       // elements from one plane to the next
    float *scratch;           // head_scratch(…)
};

constexpr int head_columns = 32;  // of the input: what any level handles at once divides it

constexpr int64_t head_padded(int64_t width) {
    return (width + head_columns - 1) / head_columns * head_columns;
}
// Terms of a row as planes; those of four finer rows, with margins; two rows of a part that is cut off.
constexpr int64_t head_scratch(int64_t width, int64_t terms, int64_t fine_terms) {
    return terms * head_padded(width) + 4 * fine_terms * (2 * head_padded(width) + 2 * head_columns) +
           4 * head_columns;
}

#define GBPN_DECLARE(LEVEL)                   \
    namespace LEVEL {                         \
    void head_planes_row(const HeadPlanes &); \
    }
GBPN_FOR_LEVELS(GBPN_DECLARE)
#undef GBPN_DECLARE

#if defined(GBPN_X86_LEVELS)
namespace avx512 {
void head_planes_row_of_pairs(const HeadPlanes &);  // terms of two bfloat16; needs AVX512_BF16
}
#endif

}  // namespace gbpn

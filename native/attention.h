// Neighbourhood attention: what the kernels of every instruction set are given.
//
// Images are channels-last: the channels of a pixel, and so those of a head, lie side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd.h"

namespace gbpn {

template <class T> struct Pixels {
    T *data;
    int64_t batch, row, column;  // strides in elements; that of a channel is 1

    // Inlined by force: a copy shared by two instruction sets would be kept only once.
    __attribute__((always_inline)) T *at(int b, int y, int x) const {
        return data + b * batch + y * row + x * column;
    }
};

// Windows along one axis (window.py): the first key of every position, and its index into the bias table.
struct Axis {
    int window, dilation;
    const int *first, *bias;
};

template <class T> struct Attention {
    int heads, size, kernel;  // channels = heads · size
    int width;
    Axis rows, columns;
    int keys, stride;  // rows.window · columns.window, and that rounded up to whole vectors
    T scale;
    Pixels<const T> query, key, value;
    // [heads, kernel, kernel, stride]: the bias table cut out for every place of a window; −∞ beyond `keys`.
    const T *patches;

    __attribute__((always_inline)) size_t patch(int head, int down, int right) const {
        return ((size_t(head) * kernel + down) * kernel + right) * stride;
    }
};

template <class T> struct AttentionGradients {
    Pixels<const T> out;
    Pixels<T> query, key, value;  // key and value have the same strides
};

// Room for what one pixel needs: `stride` entries each.
template <class T> struct AttentionScratch {
    int64_t *at_key, *at_value, *at_gradient;
    T *weight, *change;
};

#define GBPN_DECLARE(LEVEL)                                                                             \
    namespace LEVEL {                                                                                   \
    template <class T>                                                                                  \
    void attend_row(const Attention<T> &, const AttentionScratch<T> &, const Pixels<T> &out, int batch, \
                    int y);                                                                             \
    /* Overwrites the queries' gradient of this row, adds to those of keys, values and patches. */      \
    template <class T>                                                                                  \
    void attend_row_backward(const Attention<T> &, const AttentionScratch<T> &,                         \
                             const AttentionGradients<T> &, T *patches, int batch, int y);              \
    }
GBPN_FOR_LEVELS(GBPN_DECLARE)
#undef GBPN_DECLARE

}  // namespace gbpn

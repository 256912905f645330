// Tensors as the C++ side sees them: a pointer, lengths and strides, which border.h has checked.
#pragma once

#include <cstdint>

namespace gbpn {

constexpr int most_axes = 6;

struct View {
    void *data = nullptr;
    int rank = 0;
    int64_t shape[most_axes] = {}, stride[most_axes] = {};  // strides in elements
};

// A tensor of planes: its last two axes are contiguous rows and columns.
template <class T> struct Array {
    T *data = nullptr;
    int rank = 0;
    int64_t shape[most_axes] = {}, stride[most_axes] = {};

    Array() = default;
    explicit Array(const View &view) : data(static_cast<T *>(view.data)), rank(view.rank) {
        for (int axis = 0; axis < rank; ++axis)
            shape[axis] = view.shape[axis], stride[axis] = view.stride[axis];
    }

    template <class... Index> T *at(Index... index) const {
        const int64_t indices[] = {static_cast<int64_t>(index)...};
        int64_t offset = 0;
        for (int axis = 0; axis < static_cast<int>(sizeof...(index)); ++axis)
            offset += stride[axis] * (shape[axis] > 1 ? indices[axis] : 0);  // an axis of length 1 is shared
        return data + offset;
    }
    explicit operator bool() const { return data != nullptr; }
};

}  // namespace gbpn

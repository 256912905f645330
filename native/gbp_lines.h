// Geometry shared by a sweep and its adjoint. For kernel sources only.
#pragma once

#include "gbp.h"

namespace gbpn::GBPN_LEVEL {
namespace {

// What a pixel tells the next line apart from the messages it hears in this sweep.
template <class T, int E> struct Around {
    const T *base[2], *other[8 - 2 * E][2], *back[E][2];

    Around(const T *const (&base_planes)[2], T *const (&slot)[8][2], int direction) {
        bool used[8] = {};
        for (int part = 0; part < 2; ++part) base[part] = base_planes[part];
        for (int e = 0; e < E; ++e) {
            const int own = slot_of(direction, E, e);
            used[own] = used[7 - own] = true;
            for (int part = 0; part < 2; ++part) back[e][part] = slot[7 - own][part];
        }
        for (int s = 0, n = 0; s < 8; ++s)
            if (!used[s]) {
                for (int part = 0; part < 2; ++part) other[n][part] = slot[s][part];
                ++n;
            }
    }

    // The sum, by receiver, without the message that came from that receiver: nothing is subtracted for
    // reweighting 1, so no digits are lost and an empty cavity is exactly empty.
    template <class V> GBPN_INLINE void rest(T rho, int64_t at, V (&kept)[E][2]) const {
        for (int part = 0; part < 2; ++part) {
            V others{};
            for (int n = 0; n < 8 - 2 * E; ++n) others += load<V>(other[n][part] + at);
            const V common = load<V>(base[part] + at) + rho * others;
            V b[E];
            for (int e = 0; e < E; ++e) b[e] = load<V>(back[e][part] + at);
            if constexpr (E == 3) {
                kept[0][part] = common + rho * (b[1] + b[2]) - (1 - rho) * b[0];
                kept[1][part] = common + rho * (b[0] + b[2]) - (1 - rho) * b[1];
                kept[2][part] = common + rho * (b[0] + b[1]) - (1 - rho) * b[2];
            } else {
                kept[0][part] = common - (1 - rho) * b[0];
            }
        }
    }
};

// Calls step(V{}, i) for packs of a line and then for the single pixels left over.
template <class T, class Step> GBPN_INLINE void along(int64_t length, const Step &step) {
    int64_t i = 0;
    for (; i + lanes<T> <= length; i += lanes<T>) step(Pack<T>{}, i);
    for (; i < length; ++i) step(T{}, i);
}

template <class T> void clear(T *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] = T{};
}

// The columns of a panel, transposed: plane p, column c (−1 … columns), row i. Rows are followed by zeros.
template <class T> struct Panel {
    T *start;
    int64_t stride, columns;

    T *line(int plane, int64_t column) const { return start + (plane * (columns + 2) + column + 1) * stride; }

    void clear_rest(int planes, int64_t height) const {
        for (int64_t line = 0; line < planes * (columns + 2); ++line)
            clear(start + line * stride + height, stride - height);
    }
};

}  // namespace
}  // namespace gbpn::GBPN_LEVEL

// Geometry shared by a sweep and its adjoint. For kernel sources only.
#pragma once

#include "gbp.h"

namespace gbpn::GBPN_LEVEL {
namespace {

// By receiver, the messages from the others: nothing is subtracted for reweighting 1, so no digits are lost
// and an empty cavity is exactly empty.
template <class V, class T, int E>
GBPN_INLINE void keep(T rho, V common, const V (&back)[E], int part, V (&kept)[E][2]) {
    if constexpr (E == 3) {
        kept[0][part] = common + rho * (back[1] + back[2]) - (1 - rho) * back[0];
        kept[1][part] = common + rho * (back[0] + back[2]) - (1 - rho) * back[1];
        kept[2][part] = common + rho * (back[0] + back[1]) - (1 - rho) * back[2];
    } else {
        kept[0][part] = common - (1 - rho) * back[0];
    }
}

// The message that a pixel makes of what its sender knows, damped against the `old` one. Pairs are
// (information, precision); `weight` is divided by the reweighting already.
template <class V>
GBPN_INLINE void receive(const V (&sender)[2], V weight, V difference, V damping, bool always,
                         const V (&old)[2], V (&fresh)[2]) {
    const V gain = weight / (weight + sender[1]);
    const V keep = always ? damping : where_positive(old[1], damping, V{});
    const V take = V{} + 1 - keep;
    const V share = take * gain;
    fresh[0] = share * (sender[0] + sender[1] * difference);
    fresh[1] = share * sender[1];
    for (int part = 0; part < 2; ++part) {
        fresh[part] = fresh[part] + (1 - take) * old[part];
        fresh[part] = where_positive(sender[1], fresh[part], always ? keep * old[part] : old[part]);
    }
}

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

    // The sum, by receiver, without the message that came from that receiver.
    template <class V> GBPN_INLINE void rest(T rho, int64_t at, V (&kept)[E][2]) const {
        for (int part = 0; part < 2; ++part) {
            V others{};
            for (int n = 0; n < 8 - 2 * E; ++n) others += load<V>(other[n][part] + at);
            const V common = load<V>(base[part] + at) + rho * others;
            V b[E];
            for (int e = 0; e < E; ++e) b[e] = load<V>(back[e][part] + at);
            keep(rho, common, b, part, kept);
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

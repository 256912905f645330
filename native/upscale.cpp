// One row of a 2×2 transposed convolution of stride 2. The product is formed for a tile of columns in
// registers and goes from there to its places in the planes, so nothing between input and result touches
// memory.
#include "upscale.h"

namespace gbpn::GBPN_LEVEL {
namespace {

constexpr int vectors = GBPN_VECTOR_BYTES == 64 ? 5 : 2;  // per tile: as many as the registers hold, times 4

// a0 b0 a1 b1 …: the first or second half of it.
template <int First, class V, int... I> GBPN_INLINE V alternate(V a, V b, Numbers<I...>) {
    constexpr int count = sizeof...(I);
    return __builtin_shufflevector(a, b, (First + I / 2 + I % 2 * count)...);
}

template <class T> GBPN_INLINE void store_pair(T *to, Pack<T> even, Pack<T> odd) {
    constexpr int count = lanes<T>;
    typedef typename Count<count>::type All;
    store(to, alternate<0>(even, odd, All()));
    store(to + count, alternate<count / 2>(even, odd, All()));
}

// The four products of one output channel for `vectors` packs of columns; above and below are its two rows.
template <class T>
GBPN_INLINE void upscale_tile_of(const T *weight, T bias, const T *x, int64_t padded, int channels, T *above,
                                 T *below) {
    typedef Pack<T> V;
    V sum[4][vectors];
    for (int i = 0; i < 4; ++i)
        for (int v = 0; v < vectors; ++v) sum[i][v] = V{} + bias;
    for (int c = 0; c < channels; ++c, x += padded, weight += 4) {
        V column[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) column[v] = load<V>(x + v * lanes<T>);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) sum[i][v] += weight[i] * column[v];
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
        store_pair(above + 2 * v * lanes<T>, sum[0][v], sum[1][v]);
        store_pair(below + 2 * v * lanes<T>, sum[2][v], sum[3][v]);
    }
}

// The row as planes: x[channel · padded + column].
template <class T> void to_planes(const Upscale<T> &u, T *x) {
    if (u.plane != 1) {
        for (int c = 0; c < u.channels; ++c)
            for (int i = 0; i < u.width; ++i) x[c * u.padded + i] = u.x[i * u.step + c * u.plane];
        return;
    }
    for (int i = 0; i < u.width; i += tile<T>)
        for (int c = 0; c < u.channels; c += tile<T>) {
            const int rows = u.width - i < tile<T> ? u.width - i : tile<T>;
            const int columns = u.channels - c < tile<T> ? u.channels - c : tile<T>;
            transpose(u.x + i * u.step + c, u.step, x + c * u.padded + i, u.padded, rows, columns);
        }
}

}  // namespace

template <class T> void upscale_row(const Upscale<T> &u) {
    constexpr int columns = vectors * lanes<T>;
    const int64_t padded = u.padded;
    T *x = u.scratch, *part = u.scratch + u.channels * padded;
    to_planes(u, x);
    for (int start = 0; start < u.width; start += columns) {
        const int inside = u.width - start < columns ? u.width - start : columns;
        T *to = u.planes + 2 * start;
        const T *weight = u.weight;
        for (int o = 0; o < u.out; ++o, to += u.next_plane, weight += 4 * u.channels) {
            if (inside == columns) {
                upscale_tile_of(weight, u.bias[o], x + start, padded, u.channels, to, to + 2 * u.width);
                continue;
            }
            upscale_tile_of(weight, u.bias[o], x + start, padded, u.channels, part, part + 2 * columns);
            __builtin_memcpy(to, part, 2 * inside * sizeof(T));
            __builtin_memcpy(to + 2 * u.width, part + 2 * columns, 2 * inside * sizeof(T));
        }
    }
}

template void upscale_row<float>(const Upscale<float> &);
template void upscale_row<double>(const Upscale<double> &);

}  // namespace gbpn::GBPN_LEVEL

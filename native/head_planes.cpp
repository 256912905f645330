// One row of the heads' maps. The input is turned to planes in a scratch that stays in the first caches; for
// a tile of columns and a few output planes all products are then formed in registers.
#include "head_planes.h"

namespace gbpn::GBPN_LEVEL {
namespace {

typedef Pack<float> V;

constexpr int together = GBPN_VECTOR_BYTES == 64 ? 4 : 1;  // output planes per tile: as registers allow
constexpr int tile_columns = lanes<float>;                 // of the input, half as many as of the result
constexpr int margin = head_columns;                       // in front of and behind a finer row
static_assert(head_columns % tile_columns == 0, "rows are padded to whole tiles");

// 32 bits in all lanes, whatever they mean.
GBPN_INLINE V everywhere(const float *bits) {
#if defined(__AVX512F__)
    int all;
    __builtin_memcpy(&all, bits, sizeof all);
    return (V)_mm512_castsi512_ps(_mm512_set1_epi32(all));
#else
    return V{} + *bits;
#endif
}

struct Single {
    static GBPN_INLINE V times(V sum, V weight, V x) { return sum + weight * x; }
};

#if defined(__AVX512F__)
// Products of two bfloat16 each, summed in float32. Written out: the files of a level know no bfloat16.
struct Pairs {
    static GBPN_INLINE V times(V sum, V weight, V x) {
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(weight), "v"(x));
        return sum;
    }
};
#endif

// a0 b0 a1 b1 …: the first or second half of it.
template <int First, int... I> GBPN_INLINE V alternate(V a, V b, Numbers<I...>) {
    constexpr int count = sizeof...(I);
    return __builtin_shufflevector(a, b, (First + I / 2 + I % 2 * count)...);
}

// from[column · step + term] → to[term · padded + column]
void to_planes(const float *from, int64_t step, int width, int terms, float *to, int64_t padded) {
    for (int i = 0; i < width; i += tile<float>)
        for (int c = 0; c < terms; c += tile<float>) {
            const int rows = width - i < tile<float> ? width - i : tile<float>;
            const int columns = terms - c < tile<float> ? terms - c : tile<float>;
            transpose(from + i * step + c, step, to + c * padded + i, padded, rows, columns);
        }
}

// The finer row as planes between zeros: column 0 is at `margin`.
void to_fine_planes(const HeadPlanes &h, int row, float *to, int64_t padded) {
    const int width = 2 * h.width;
    for (int c = 0; c < h.fine_terms; ++c) {
        float *plane = to + c * padded;
        const int64_t end = h.fine[row] ? margin + width : margin;
        for (int64_t i = 0; i < margin; ++i) plane[i] = 0;
        for (int64_t i = end; i < padded; ++i) plane[i] = 0;
    }
    if (h.fine[row]) to_planes(h.fine[row], h.fine_step, width, h.fine_terms, to + margin, padded);
}

struct Tile {
    const float *x;  // [terms, padded]
    int64_t padded;
    const float *fine;  // [4, fine_terms, fine_padded], one column before the first
    int64_t fine_padded;
};

// The upper and lower rows of `Planes` planes from plane o on: row[plane][upper or lower][first or second].
template <class Kind, int Planes>
GBPN_INLINE void head_tile(const HeadPlanes &h, const Tile &t, int o, V (&row)[Planes][2][2]) {
    typedef typename Count<lanes<float>>::type All;
    V sum[Planes][4];
#pragma GCC unroll 8
    for (int n = 0; n < Planes; ++n)
#pragma GCC unroll 8
        for (int i = 0; i < 4; ++i) sum[n][i] = V{} + h.bias[o + n];
    const int64_t next = int64_t(4) * h.terms;
    const float *weight = h.weight + o * next, *x = t.x;
    for (int c = 0; c < h.terms; ++c, x += t.padded, weight += 4) {
        const V columns = load<V>(x);
#pragma GCC unroll 8
        for (int n = 0; n < Planes; ++n)
#pragma GCC unroll 8
            for (int i = 0; i < 4; ++i)
                sum[n][i] = Kind::times(sum[n][i], everywhere(weight + n * next + i), columns);
    }
#pragma GCC unroll 8
    for (int n = 0; n < Planes; ++n)
#pragma GCC unroll 8
        for (int i = 0; i < 2; ++i) {
            row[n][i][0] = alternate<0>(sum[n][2 * i], sum[n][2 * i + 1], All());
            row[n][i][1] = alternate<lanes<float> / 2>(sum[n][2 * i], sum[n][2 * i + 1], All());
        }
}

// Adds the 3×3 convolution of the finer maps.
template <class Kind, int Planes>
GBPN_INLINE void fine_tile(const HeadPlanes &h, const Tile &t, int o, V (&row)[Planes][2][2]) {
    const int64_t next = int64_t(9) * h.fine_terms, next_row = h.fine_terms * t.fine_padded;
    const float *weight = h.fine_weight + o * next, *fine = t.fine;
    for (int c = 0; c < h.fine_terms; ++c, fine += t.fine_padded, weight += 9) {
#pragma GCC unroll 8
        for (int k = 0; k < 3; ++k)
#pragma GCC unroll 8
            for (int r = 0; r < 4; ++r) {
                const float *from = fine + r * next_row + k;
                const V columns[2] = {load<V>(from), load<V>(from + lanes<float>)};
#pragma GCC unroll 8
                for (int i = 0; i < 2; ++i) {  // row r of the input meets row r − i of the kernel
                    if (r - i < 0 || r - i > 2) continue;
#pragma GCC unroll 8
                    for (int n = 0; n < Planes; ++n) {
                        const V w = everywhere(weight + n * next + 3 * (r - i) + k);
                        row[n][i][0] = Kind::times(row[n][i][0], w, columns[0]);
                        row[n][i][1] = Kind::times(row[n][i][1], w, columns[1]);
                    }
                }
            }
    }
}

// Writes 2 · inside columns of one row, with what is added; `part` has room for a whole tile.
GBPN_INLINE void put(const V (&row)[2], const float *add, float *to, int inside, float *part) {
    const bool whole = inside == tile_columns;
    const int64_t bytes = 2 * inside * int64_t(sizeof(float));
    if (add && !whole) add = static_cast<const float *>(__builtin_memcpy(part, add, bytes));
    float *const result = whole ? to : part;
    for (int v = 0; v < 2; ++v) {
        const V added = add ? load<V>(add + v * lanes<float>) : V{};
        store(result + v * lanes<float>, row[v] + added);
    }
    if (!whole) __builtin_memcpy(to, part, bytes);
}

// `Planes` planes of the tile that starts at input column `start`, of which `inside` columns are there.
template <class Kind, int Planes>
void planes_of_tile(const HeadPlanes &h, const Tile &t, int o, int start, int inside, float *part) {
    V row[Planes][2][2];
    head_tile<Kind, Planes>(h, t, o, row);
    if (h.fine_terms) fine_tile<Kind, Planes>(h, t, o, row);
    for (int n = 0; n < Planes; ++n)
        for (int i = 0; i < 2; ++i) {
            const int64_t at = 2 * start + i * 2 * int64_t(h.width);
            put(row[n][i], h.add ? h.add[o + n] + at : nullptr, h.planes + (o + n) * h.next_plane + at,
                inside, part);
        }
}

template <class Kind> GBPN_INLINE void whole_row(const HeadPlanes &h) {
    const int64_t padded = head_padded(h.width), fine_padded = 2 * padded + 2 * margin;
    float *const x = h.scratch, *const fine = x + h.terms * padded;
    float *const part = fine + 4 * h.fine_terms * fine_padded;
    to_planes(h.x, h.step, h.width, h.terms, x, padded);
    if (h.fine_terms)
        for (int r = 0; r < 4; ++r) to_fine_planes(h, r, fine + r * h.fine_terms * fine_padded, fine_padded);
    for (int start = 0; start < h.width; start += tile_columns) {
        const int inside = h.width - start < tile_columns ? h.width - start : tile_columns;
        const Tile t{x + start, padded, fine + margin - 1 + 2 * start, fine_padded};
        int o = 0;
        for (; o + together <= h.out; o += together)
            planes_of_tile<Kind, together>(h, t, o, start, inside, part);
        for (; o < h.out; ++o) planes_of_tile<Kind, 1>(h, t, o, start, inside, part);
    }
}

}  // namespace

void head_planes_row(const HeadPlanes &h) { whole_row<Single>(h); }

#if defined(__AVX512F__) && defined(GBPN_X86_LEVELS)
void head_planes_row_of_pairs(const HeadPlanes &h) { whole_row<Pairs>(h); }
#endif

}  // namespace gbpn::GBPN_LEVEL

// Sweeps in diagonal bands (gbp.h, Bands). A band's sweep along rows needs diagonals before it only, and so
// does the sweep along columns after it: one band does both while it is in the cache.
//
// A register holds the lanes of a line: of column x the pixels (at + lane − x, x), of row y the pixels
// (y, at + lane − y), where `at` is the first diagonal of the band. A pixel has one lane in both, so that
// lines of columns become lines of rows by delaying lane after lane (skew).
#include "gbp_lines.h"

namespace gbpn::GBPN_LEVEL {
namespace {

// Line n of a plane starts at from + n · stride.
template <class T> struct Lines {
    T *from;
    int64_t stride;
    GBPN_INLINE T *at(int64_t n) const { return from + n * stride; }
};

#if defined(__clang__) || __GNUC__ >= 12
#define GBPN_CHOOSE(T, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define GBPN_CHOOSE(T, a, b, ...) __builtin_shuffle(a, b, typename IndexOf<sizeof(T)>::type{__VA_ARGS__})
template <int bytes> struct IndexOf { typedef typename PackOf<int32_t, GBPN_VECTOR_BYTES / 4>::type type; };
template <> struct IndexOf<8> { typedef typename PackOf<int64_t, GBPN_VECTOR_BYTES / 8>::type type; };
#endif

// Lanes whose number has the bit `delay` from `late`, the others from `now`.
template <class T, int delay, int... I> GBPN_INLINE Pack<T> blend(Pack<T> now, Pack<T> late, Numbers<I...>) {
    return GBPN_CHOOSE(T, now, late, ((I & delay) ? lanes<T> + I : I)...);
}

// Lane i of the result is lane first + i of the two in a row.
template <class T, int first, int... I> GBPN_INLINE Pack<T> span(Pack<T> low, Pack<T> high, Numbers<I...>) {
    return GBPN_CHOOSE(T, low, high, (first + I)...);
}

// The last lines that a skew has read, as far as its stages need them.
template <class T> struct Delays {
    Pack<T> kept[lanes<T>];

    // `turn` counts the lines, modulo half the lanes.
    template <int delay> GBPN_INLINE Pack<T> pass(Pack<T> now, int turn) {
        if constexpr (delay >= lanes<T>) {
            return now;
        } else {
            Pack<T> &late = kept[delay + (turn & (delay - 1))];
            const Pack<T> mixed = blend<T, delay>(now, late, typename Count<lanes<T>>::type{});
            late = now;
            return pass<2 * delay>(mixed, turn);
        }
    }
};

// Lane i of result n is lane i of line n + i, for low ≤ n ≤ high, from high to low. Lines are read by `fast`
// where those of a whole group lie between its bounds, otherwise by `read`.
template <class T, class Read, class Fast, class Write>
GBPN_INLINE void skew(int64_t low, int64_t high, int64_t fast_low, int64_t fast_high, const Read &read,
                      const Fast &fast, const Write &write) {
    constexpr int group = lanes<T> / 2;
    Delays<T> delays{};
    int64_t n = high + 2 * group;
    fast_low = fast_low > low ? fast_low : low;
    for (int part = 0; part < 2; ++part, n -= group)
#pragma GCC unroll 8
        for (int turn = 0; turn < group; ++turn) delays.template pass<1>(read(n - turn), turn);
    for (; n >= low; n -= group)
        if (n <= fast_high && n - group >= fast_low) {
#pragma GCC unroll 8
            for (int turn = 0; turn < group; ++turn)
                write(n - turn, delays.template pass<1>(fast(n - turn), turn));
        } else {
#pragma GCC unroll 8
            for (int turn = 0; turn < group; ++turn) {
                const Pack<T> line = delays.template pass<1>(read(n - turn), turn);
                if (n - turn >= low) write(n - turn, line);
            }
        }
}

// `count` values of a row, `before` lanes from the left, zeros around them.
template <class T> GBPN_INLINE Pack<T> load_part(const T *row, int64_t before, int64_t count) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
        const __mmask16 some = static_cast<__mmask16>(((1u << count) - 1) << before);
        return _mm512_maskz_loadu_ps(some, row - before);
    }
#endif
    alignas(64) T values[lanes<T>] = {};
    for (int64_t i = 0; i < count; ++i) values[before + i] = row[i];
    return load<Pack<T>>(values);
}

template <class T> GBPN_INLINE void store_part(T *row, int64_t before, int64_t count, Pack<T> pack) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
        const __mmask16 some = static_cast<__mmask16>(((1u << count) - 1) << before);
        _mm512_mask_storeu_ps(row - before, some, pack);
        return;
    }
#endif
    alignas(64) T values[lanes<T>];
    store(values, pack);
    for (int64_t i = 0; i < count; ++i) row[i] = values[before + i];
}

constexpr int ahead = 6;  // lines that are fetched before they are needed

template <class T, class L> GBPN_INLINE void foresee(const L &lines, int64_t n) {
    __builtin_prefetch(lines.at(n), 0, 3);
}
// The same for lines that do not begin with a cache line.
template <class T, class L> GBPN_INLINE void foresee_both(const L &lines, int64_t n) {
    __builtin_prefetch(lines.at(n), 0, 3);
    __builtin_prefetch(lines.at(n) + lanes<T> - 1, 0, 3);
}

// Where a band lies.
template <class T> struct Band {
    int64_t width, at, first_row, last_row, first_column, last_column;
    int64_t first_whole, last_whole;  // rows whose lanes all lie inside the image

    Band(int64_t height, int64_t image_width, int64_t number) : width(image_width), at(number * lanes<T>) {
        first_row = most(0, at - width + 1), last_row = least(height - 1, at + lanes<T> - 1);
        first_column = most(0, at - height + 1), last_column = least(width - 1, at + lanes<T> - 1);
        first_whole = most(first_row, at + lanes<T> - width), last_whole = least(last_row, at);
        if (first_whole > last_whole) first_whole = last_row + 1, last_whole = last_row;
    }
    static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
    static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

    GBPN_INLINE bool whole(int64_t row) const { return first_whole <= row && row <= last_whole; }

    // Lines of rows in a plane of the image; beyond the whole ones they leave it.
    template <class P> Lines<P> rows(P *plane) const { return {plane + at, width - 1}; }

    // What lies inside of a row that does: its first pixel, the lanes before it, and the number of lanes.
    void inside(int64_t row, int64_t &pixel, int64_t &before, int64_t &count) const {
        const int64_t first = at - row, x = most(0, first);
        pixel = row * width + x, before = x - first;
        count = least(width, first + lanes<T>) - x;
    }
    GBPN_INLINE Pack<T> read(const T *plane, int64_t row) const {
        return whole(row) ? load<Pack<T>>(rows(plane).at(row)) : part(plane, row);
    }
    Pack<T> part(const T *plane, int64_t row) const {
        int64_t pixel, before, count;
        inside(row, pixel, before, count);
        return load_part(plane + pixel, before, count);
    }
    GBPN_INLINE void write(T *plane, int64_t row, Pack<T> pack) const {
        if (whole(row)) return store(rows(plane).at(row), pack);
        int64_t pixel, before, count;
        inside(row, pixel, before, count);
        store_part(plane + pixel, before, count, pack);
    }

    // Lines of columns become lines of rows: a column x meets row `at` − x in lane 0.
    template <class Read, class Write>
    GBPN_INLINE void to_rows(const Read &column, const Write &row) const {
        skew<T>(
            at - last_row, at - first_row, first_column, last_column,
            [&](int64_t x) GBPN_LAMBDA_INLINE {
                return first_column <= x && x <= last_column ? column(x) : Pack<T>{};
            },
            column, [&](int64_t u, Pack<T> line) GBPN_LAMBDA_INLINE { row(at - u, line); });
    }

    // Lines of rows become lines of columns: `row` reads those that are inside as a whole, `part` the others.
    template <class Row, class Part, class Write>
    GBPN_INLINE void to_columns(const Row &row, const Part &part, const Write &column) const {
        skew<T>(
            at - last_column, at - first_column, first_whole, last_whole,
            [&](int64_t y) GBPN_LAMBDA_INLINE {
                return first_row <= y && y <= last_row ? (whole(y) ? row(y) : part(y)) : Pack<T>{};
            },
            row, [&](int64_t u, Pack<T> line) GBPN_LAMBDA_INLINE { column(at - u, line); });
    }
    // Of one plane of the image.
    void plane_to_columns(const T *plane, Lines<T> to) const {
        const Lines<const T> lines = rows(plane);
        to_columns(
            [&](int64_t y) GBPN_LAMBDA_INLINE {
                foresee_both<T>(lines, y - 4 * ahead);
                return load<Pack<T>>(lines.at(y));
            },
            [&](int64_t y) GBPN_LAMBDA_INLINE { return this->part(plane, y); },
            [&](int64_t x, Pack<T> line) GBPN_LAMBDA_INLINE { store(to.at(x), line); });
    }
};

// Records: which of a slot's planes lie in the lines of columns, and where.
constexpr int slot_place[message_slots] = {0, 0, 2, 4, 6, 8, 2, 10};
constexpr bool slot_in_rows[message_slots] = {false, true, false, false, false, false, true, false};

template <class T> Lines<T> record(const Bands<T> &b, int64_t number, int slot, int part) {
    const int64_t planes = slot_in_rows[slot] ? band_row_planes : band_column_planes;
    T *const first = slot_in_rows[slot] ? b.rows + b.row_line[number] * planes * lanes<T>
                                        : b.columns + b.column_line[number] * planes * lanes<T>;
    return {first + (slot_place[slot] + part) * lanes<T>, planes * lanes<T>};
}

template <class T> Lines<T> columns_of(T *records, int64_t first, int planes, int plane) {
    return {records + (first * planes + plane) * lanes<T>, planes * lanes<T>};
}
// Weights, then differences, of a sweep along rows.
template <class T> Lines<const T> edge_record(const Bands<T> &b, int64_t number, int direction, int plane) {
    const Lines<T> lines = columns_of(b.edges[direction / 2], b.column_line[number], band_edge_planes, plane);
    return {lines.from, lines.stride};
}
template <class T> Lines<const T> damping_record(const Bands<T> &b, int64_t number) {
    const Lines<T> lines = columns_of(b.damping, b.column_line[number], 1, 0);
    return {lines.from, lines.stride};
}

// What a sweep through the lines of one band reads and writes.
template <class T> struct Passage {
    Lines<const T> base[2], others[2];  // common part of a pixel's belief: base + reweighting · others
    Lines<T> own[3][2];
    Lines<T> back[3][2];
    Lines<const T> weight[3], difference[3], damping;
    Lines<T> middle[2];  // along rows: receives own + back of the middle edge
    Lines<T> heard[2];   // along columns: receives the sum of all messages
};

// Cavities of the line before, by receiver.
template <class T> struct Leaving { Pack<T> of[3][2]; };

// The sweep through lines begin, begin ± 1, … before `end`. `carry` holds for each line what the band
// before told this one, and receives what this one tells the next: cavities of two edges, four packs.
template <class T, bool forward, bool along_rows, bool with_heard>
GBPN_INLINE void pass(const Passage<T> &p, T rho, int64_t begin, int64_t end, T *carry, Leaving<T> &leaving) {
    using V = Pack<T>;
    constexpr typename Count<lanes<T>>::type all{};
    constexpr int step = forward ? 1 : -1, n = lanes<T>;
    constexpr int far = forward ? 0 : 2;  // the edge whose sender lies two diagonals away
    const T scale = 1 / rho;
    for (int64_t m = begin; m != end; m += step) {
        const int64_t next = m + step * ahead;
        for (int part = 0; part < 2; ++part) {
            foresee<T>(p.own[1][part], next);
            foresee<T>(p.back[1][part], next);
            if (along_rows)
                for (int e = 0; e < 3; e += 2)
                    foresee<T>(p.own[e][part], next), foresee<T>(p.back[e][part], next);
            else
                foresee_both<T>(p.base[part], next);
        }
        for (int e = 0; e < 3; ++e)
            if (along_rows)
                foresee<T>(p.weight[e], next), foresee<T>(p.difference[e], next);
            else
                foresee_both<T>(p.weight[e], next), foresee_both<T>(p.difference[e], next);
        along_rows ? foresee<T>(p.damping, next) : foresee_both<T>(p.damping, next);
        V kept[3][2], common[2], back[2][3], sum[2] = {}, fresh[3][2], arriving[3][2];
        T *const told = carry + (m - step) * 4 * n;
        for (int part = 0; part < 2; ++part) {
            common[part] = load<V>(p.base[part].at(m));
            if (!along_rows) common[part] = common[part] + rho * load<V>(p.others[part].at(m));
            for (int e = 0; e < 3; ++e) back[part][e] = load<V>(p.back[e][part].at(m));
            keep<V, T, 3>(rho, common[part], back[part], part, kept);
            const V two = load<V>(told + part * n), one = load<V>(told + (2 + part) * n);
            if (forward) {
                arriving[0][part] = span<T, n - 2>(two, leaving.of[0][part], all);
                arriving[1][part] = span<T, n - 1>(one, leaving.of[1][part], all);
                arriving[2][part] = leaving.of[2][part];
            } else {
                arriving[2][part] = span<T, 2>(leaving.of[2][part], two, all);
                arriving[1][part] = span<T, 1>(leaving.of[1][part], one, all);
                arriving[0][part] = leaving.of[0][part];
            }
            store(told + part * n, leaving.of[far][part]);
            store(told + (2 + part) * n, leaving.of[1][part]);
        }
        const V damping = load<V>(p.damping.at(m));
        for (int e = 0; e < 3; ++e) {
            const V old[2] = {load<V>(p.own[e][0].at(m)), load<V>(p.own[e][1].at(m))};
            receive(arriving[e], V(scale * load<V>(p.weight[e].at(m))), load<V>(p.difference[e].at(m)),
                    damping, false, old, fresh[e]);
            for (int part = 0; part < 2; ++part) {
                store(p.own[e][part].at(m), fresh[e][part]);
                sum[part] += fresh[e][part];
            }
        }
        for (int e = 0; e < 3; ++e) {
            const V precision = kept[e][1] + rho * sum[1];
            leaving.of[e][0] = where_positive(precision, V(kept[e][0] + rho * sum[0]), V{});
            leaving.of[e][1] = where_positive(precision, precision, V{});
        }
        for (int part = 0; part < 2; ++part) {
            if (along_rows) store(p.middle[part].at(m), V(fresh[1][part] + back[part][1]));
            if (with_heard) {
                const V first = back[part][2] + back[part][1] + back[part][0];
                store(p.heard[part].at(m), V(first + load<V>(p.others[part].at(m)) + sum[part]));
            }
        }
    }
}

// After the last line: what it tells the next band.
template <class T, bool forward> GBPN_INLINE void leave(int64_t end, T *carry, const Leaving<T> &leaving) {
    T *const told = carry + (end - (forward ? 1 : -1)) * 4 * lanes<T>;
    for (int part = 0; part < 2; ++part) {
        store(told + part * lanes<T>, leaving.of[forward ? 0 : 2][part]);
        store(told + (2 + part) * lanes<T>, leaving.of[1][part]);
    }
}

template <class T> Lines<T> piece(const Bands<T> &b, int number, int64_t first) {
    return {b.scratch + (number * b.longest - first) * lanes<T>, lanes<T>};
}

// Pieces of scratch: two that a sweep along rows leaves to the one along columns, then what either reads.
constexpr int middle0 = 0, common0 = 2;
constexpr int others0 = 2, turned0 = 4, partial0 = 12;  // partial: rows that lie partly outside the image
static_assert(partial0 + 9 == band_pieces, "scratch is cut by these numbers");

template <class T, bool forward> void horizontal(const Bands<T> &b, int64_t number) {
    constexpr int direction = forward ? 0 : 2;
    const Band<T> band(b.height, b.width, number);
    Passage<T> p{};
    for (int e = 0; e < 3; ++e) {
        p.weight[e] = edge_record(b, number, direction, e);
        p.difference[e] = edge_record(b, number, direction, 3 + e);
        for (int part = 0; part < 2; ++part) {
            const int own = slot_of(direction, 3, e);
            p.own[e][part] = record(b, number, own, part), p.back[e][part] = record(b, number, 7 - own, part);
        }
    }
    p.damping = damping_record(b, number);
    for (int part = 0; part < 2; ++part) {
        const Lines<T> above = record(b, number, 1, part), below = record(b, number, 6, part);
        const Lines<T> common = piece(b, common0 + part, band.first_column);
        const Lines<const T> rows = band.rows(b.base[part]);
        const T rho = b.reweighting;
        const auto others = [&](int64_t y) GBPN_LAMBDA_INLINE {
            foresee<T>(above, y - 4 * ahead);
            return load<Pack<T>>(above.at(y)) + load<Pack<T>>(below.at(y));
        };
        band.to_columns(
            [&](int64_t y) GBPN_LAMBDA_INLINE {
                foresee_both<T>(rows, y - 4 * ahead);
                return Pack<T>(load<Pack<T>>(rows.at(y)) + rho * others(y));
            },
            [&](int64_t y) GBPN_LAMBDA_INLINE {
                return Pack<T>(band.part(b.base[part], y) + rho * others(y));
            },
            [&](int64_t x, Pack<T> line) GBPN_LAMBDA_INLINE { store(common.at(x), line); });
        p.base[part] = {common.from, common.stride};
        p.middle[part] = piece(b, middle0 + part, band.first_column);
    }
    Leaving<T> leaving{};
    const int64_t begin = forward ? band.first_column : band.last_column,
                  end = forward ? band.last_column + 1 : band.first_column - 1;
    pass<T, forward, true, false>(p, b.reweighting, begin, end, b.carry[0], leaving);
    leave<T, forward>(end, b.carry[0], leaving);
}

template <class T, bool forward, bool with_heard> void vertical(const Bands<T> &b, int64_t number) {
    constexpr int direction = forward ? 1 : 3;
    const Band<T> band(b.height, b.width, number);
    const Edges<T> &edge = b.edge[direction];
    const auto turn = [&](Lines<T> columns, int to) {
        const Lines<T> lines = piece(b, to, band.first_row);
        band.to_rows([&](int64_t x) GBPN_LAMBDA_INLINE { return load<Pack<T>>(columns.at(x)); },
                     [&](int64_t y, Pack<T> line) GBPN_LAMBDA_INLINE { store(lines.at(y), line); });
        return lines;
    };
    Passage<T> whole{};
    for (int part = 0; part < 2; ++part) {
        const Lines<T> others = turn(piece(b, middle0 + part, band.first_column), others0 + part);
        whole.others[part] = {others.from, others.stride};
        for (int e = 0; e < 3; ++e) {
            const int own = slot_of(direction, 3, e);
            const Lines<T> mine = record(b, number, own, part), theirs = record(b, number, 7 - own, part);
            whole.own[e][part] = e == 1 ? mine : turn(mine, turned0 + 2 * e + part);
            whole.back[e][part] = e == 1 ? theirs : turn(theirs, turned0 + 2 + 2 * e + part);
        }
    }
    // Whole rows are read where they are, the others from copies.
    Passage<T> partial = whole;
    const int64_t last_before = band.first_whole - 1, first_after = band.last_whole + 1;
    const auto place = [&](const T *plane, Lines<const T> &in_image, Lines<const T> &in_copy, int to) {
        const Lines<T> lines = piece(b, partial0 + to, band.first_row);
        for (int64_t y = band.first_row; y <= last_before; ++y) store(lines.at(y), band.part(plane, y));
        for (int64_t y = first_after; y <= band.last_row; ++y) store(lines.at(y), band.part(plane, y));
        in_image = band.rows(plane), in_copy = {lines.from, lines.stride};
    };
    for (int e = 0; e < 3; ++e) {
        place(edge.weight[e], whole.weight[e], partial.weight[e], e);
        place(edge.difference[e], whole.difference[e], partial.difference[e], 3 + e);
    }
    place(edge.damping, whole.damping, partial.damping, 6);
    for (int part = 0; part < 2; ++part) {
        place(b.base[part], whole.base[part], partial.base[part], 7 + part);
        if (!with_heard) continue;
        whole.heard[part] = band.rows(b.heard[part]);
        partial.heard[part] = piece(b, middle0 + part, band.first_row);
    }
    Leaving<T> leaving{};
    const auto sweep = [&](const Passage<T> &p, int64_t first, int64_t last) {
        if (first > last) return;
        pass<T, forward, false, with_heard>(p, b.reweighting, forward ? first : last,
                                            forward ? last + 1 : first - 1, b.carry[1], leaving);
    };
    if (!forward) sweep(partial, first_after, band.last_row);
    if (forward) sweep(partial, band.first_row, last_before);
    sweep(whole, band.first_whole, band.last_whole);
    if (!forward) sweep(partial, band.first_row, last_before);
    if (forward) sweep(partial, first_after, band.last_row);
    leave<T, forward>(forward ? band.last_row + 1 : band.first_row - 1, b.carry[1], leaving);
    for (int part = 0; part < 2; ++part) {
        if (with_heard)
            for (int64_t y = band.first_row; y <= band.last_row; ++y)
                if (!band.whole(y))
                    band.write(b.heard[part], y, load<Pack<T>>(partial.heard[part].at(y)));
        for (int e = 0; e < 3; e += 2) {
            const Lines<T> mine = whole.own[e][part],
                           to = record(b, number, slot_of(direction, 3, e), part);
            const auto read = [&](int64_t y) GBPN_LAMBDA_INLINE { return load<Pack<T>>(mine.at(y)); };
            band.to_columns(read, read,
                            [&](int64_t x, Pack<T> line) GBPN_LAMBDA_INLINE { store(to.at(x), line); });
        }
    }
}

}  // namespace

template <class T> int64_t band_lanes() { return lanes<T>; }

template <class T> void band_along_rows(const Bands<T> &b, int64_t number, bool forward) {
    forward ? horizontal<T, true>(b, number) : horizontal<T, false>(b, number);
}

template <class T> void band_along_columns(const Bands<T> &b, int64_t number, bool forward) {
    if (forward)
        vertical<T, true, false>(b, number);
    else
        b.heard[0] ? vertical<T, false, true>(b, number) : vertical<T, false, false>(b, number);
}

template <class T> void edges_to_band(const Bands<T> &b, int64_t number, const EdgesWanted &wanted) {
    const Band<T> band(b.height, b.width, number);
    const int64_t line = b.column_line[number];
    for (int pair = 0; pair < 2; ++pair)
        for (int e = 0; e < 3; ++e) {
            const Edges<T> &edge = b.edge[2 * pair];
            if (wanted.weight)
                band.plane_to_columns(edge.weight[e], columns_of(b.edges[pair], line, band_edge_planes, e));
            if (wanted.difference)
                band.plane_to_columns(edge.difference[e],
                                      columns_of(b.edges[pair], line, band_edge_planes, 3 + e));
        }
    if (wanted.damping) band.plane_to_columns(b.edge[0].damping, columns_of(b.damping, line, 1, 0));
}

template <class T> void messages_to_band(const Bands<T> &b, int64_t number, const T *const slot[8][2]) {
    const Band<T> band(b.height, b.width, number);
    for (int m = 0; m < message_slots; ++m)
        for (int part = 0; part < 2; ++part) {
            const Lines<T> to = record(b, number, m, part);
            const T *const plane = slot[m][part];
            if (slot_in_rows[m])
                for (int64_t y = band.first_row; y <= band.last_row; ++y)
                    store(to.at(y), band.read(plane, y));
            else
                band.plane_to_columns(plane, to);
        }
}

template <class T> void messages_from_band(const Bands<T> &b, int64_t number, T *const slot[8][2]) {
    const Band<T> band(b.height, b.width, number);
    for (int m = 0; m < message_slots; ++m)
        for (int part = 0; part < 2; ++part) {
            const Lines<T> from = record(b, number, m, part);
            T *const plane = slot[m][part];
            const auto read = [&](int64_t n) GBPN_LAMBDA_INLINE { return load<Pack<T>>(from.at(n)); };
            const auto write = [&](int64_t y, Pack<T> line) GBPN_LAMBDA_INLINE { band.write(plane, y, line); };
            if (slot_in_rows[m])
                for (int64_t y = band.first_row; y <= band.last_row; ++y) write(y, read(y));
            else
                band.to_rows(read, write);
        }
}

#define GBPN_INSTANTIATE(T)                                                          \
    template int64_t band_lanes<T>();                                                \
    template void band_along_rows(const Bands<T> &, int64_t, bool);                  \
    template void band_along_columns(const Bands<T> &, int64_t, bool);               \
    template void edges_to_band(const Bands<T> &, int64_t, const EdgesWanted &);     \
    template void messages_to_band(const Bands<T> &, int64_t, const T *const[8][2]); \
    template void messages_from_band(const Bands<T> &, int64_t, T *const[8][2]);
GBPN_INSTANTIATE(float)
GBPN_INSTANTIATE(double)

}  // namespace gbpn::GBPN_LEVEL

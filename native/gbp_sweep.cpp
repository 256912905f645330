// A serial sweep: every line hears the line before it, which has just been updated.
#include "gbp_lines.h"

namespace gbpn::GBPN_LEVEL {
namespace {

// Planes of one line (or of all lines, with `at` as index) while it hears the line before.
template <class T, int E> struct Heard {
    const T *weight[E], *difference[E], *damping;
    T *slot[E][2], *saved[E][2];
    T *arriving[E][2];  // cavities of the line before, aligned to the receiver
    T *leaving[E][2];   // cavities of this line, aligned to the receiver in the next line
    bool always;
};

template <class V, class T, int E>
GBPN_INLINE void hear(const Heard<T, E> &h, T rho, int64_t at, int64_t i, const V (&kept)[E][2]) {
    const T scale = 1 / rho;
    const V damping = load<V>(h.damping + at);
    V sum[2] = {};
    for (int e = 0; e < E; ++e) {
        const V sender[2] = {load<V>(h.arriving[e][0] + i), load<V>(h.arriving[e][1] + i)};
        const V old[2] = {load<V>(h.slot[e][0] + at), load<V>(h.slot[e][1] + at)};
        V fresh[2];
        receive(sender, V(scale * load<V>(h.weight[e] + at)), load<V>(h.difference[e] + at), damping, h.always,
                old, fresh);
        if (h.saved[e][0]) {
            store(h.saved[e][0] + at, old[0]);
            store(h.saved[e][1] + at, old[1]);
        }
        for (int part = 0; part < 2; ++part) {
            store(h.slot[e][part] + at, fresh[part]);
            sum[part] += fresh[part];
        }
    }
    for (int e = 0; e < E; ++e) {
        const V precision = kept[e][1] + rho * sum[1];
        store(h.leaving[e][0] + i, where_positive(precision, kept[e][0] + rho * sum[0], V{}));
        store(h.leaving[e][1] + i, where_positive(precision, precision, V{}));
    }
}

// Two sets of line buffers with zeros beyond both ends: a sender outside the image knows nothing.
template <class T, int E> struct Cavities {
    T *start;
    int64_t stride;
    int turn = 0;

    void next(Heard<T, E> &h) {
        for (int e = 0; e < E; ++e)
            for (int part = 0; part < 2; ++part) {
                T *first = start + (2 * e + part) * stride, *second = first + 2 * E * stride;
                h.arriving[e][part] = (turn ? second : first) + 2;
                h.leaving[e][part] = (turn ? first : second) + 2 - (e - E / 2);
            }
        turn = 1 - turn;
    }
};

template <class T, int E> void vertical(const Sweep<T> &s) {
    const Around<T, E> around(s.base, s.slot, s.direction);
    Heard<T, E> h;
    for (int e = 0; e < E; ++e) {
        h.weight[e] = s.edge.weight[e];
        h.difference[e] = s.edge.difference[e];
        for (int part = 0; part < 2; ++part) {
            h.slot[e][part] = s.slot[slot_of(s.direction, E, e)][part];
            h.saved[e][part] = s.saved[e][part];
        }
    }
    h.damping = s.edge.damping;
    h.always = s.always;
    const T rho = s.reweighting;
    Cavities<T, E> cavities{s.scratch, line_stride(s.width)};
    clear(s.scratch, 4 * E * cavities.stride);
    for (int64_t n = 0; n < s.height; ++n) {
        const int64_t line = s.direction == 1 ? n : s.height - 1 - n, row = line * s.width;
        cavities.next(h);
        along<T>(s.width, [&](auto pack, int64_t i) {
            using V = decltype(pack);
            V kept[E][2];
            around.rest(rho, row + i, kept);
            hear<V>(h, rho, row + i, i, kept);
        });
    }
}

// A panel of columns goes transposed into the cache, is swept with rows side by side, and goes back.
template <class T, int E> struct Columns {
    const Sweep<T> &s;
    const Around<T, E> around;
    Panel<T> panel;
    T *tiles;
    T *own[E][2];
    // Planes of the panel: kept [E][2], slot [E][2], weight [E], difference [E], damping.
    static constexpr int slot0 = 2 * E, weight0 = 4 * E, difference0 = 5 * E, damping0 = 6 * E,
                         planes = 6 * E + 1;

    // Plane by plane, so that a row is read in one go.
    void bring(int64_t x, int64_t columns, int64_t y, int rows) {
        const int64_t at = y * s.width + x, plane_size = tile<T> * widest_panel;
        for (int r = 0; r < rows; ++r)
            along<T>(columns, [&](auto pack, int64_t i) {
                using V = decltype(pack);
                V kept[E][2];
                around.rest(s.reweighting, at + r * s.width + i, kept);
                for (int p = 0; p < 2 * E; ++p)
                    store(tiles + p * plane_size + r * widest_panel + i, kept[p / 2][p % 2]);
            });
        for (int part = 0; part < 2; ++part) {
            foresee(around.base[part] + at, columns, y);
            for (int n = 0; n < 8 - 2 * E; ++n) foresee(around.other[n][part] + at, columns, y);
            for (int e = 0; e < E; ++e) foresee(around.back[e][part] + at, columns, y);
        }
        for (int p = 0; p < 2 * E; ++p) turn(tiles + p * plane_size, widest_panel, p, columns, y, rows);
        for (int e = 0; e < E; ++e) {
            for (int part = 0; part < 2; ++part) {
                foresee(own[e][part] + at, columns, y);
                turn(own[e][part] + at, s.width, slot0 + 2 * e + part, columns, y, rows);
            }
            foresee(s.edge.weight[e] + at, columns, y);
            turn(s.edge.weight[e] + at, s.width, weight0 + e, columns, y, rows);
            foresee(s.edge.difference[e] + at, columns, y);
            turn(s.edge.difference[e] + at, s.width, difference0 + e, columns, y, rows);
        }
        foresee(s.edge.damping + at, columns, y);
        turn(s.edge.damping + at, s.width, damping0, columns, y, rows);
    }

    // Rows are pages apart, which no hardware prefetcher foresees: ask for those of the next tile in time.
    void foresee(const T *from, int64_t columns, int64_t y) const {
        const int64_t after = s.height - y - tile<T>, rows = after < tile<T> ? after : tile<T>;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; c += tile<T>)
                __builtin_prefetch(from + (tile<T> + r) * s.width + c, 0, 2);
    }

    void turn(const T *from, int64_t stride, int plane, int64_t columns, int64_t y, int rows) {
        for (int64_t c = 0; c < columns; c += tile<T>) {
            const int width = static_cast<int>(columns - c < tile<T> ? columns - c : tile<T>);
            transpose(from + c, stride, panel.line(plane, c) + y, panel.stride, rows, width);
        }
    }

    void take_back(int64_t x, int64_t columns, int64_t y, int rows) {
        const int64_t at = y * s.width + x;
        for (int e = 0; e < E; ++e)
            for (int part = 0; part < 2; ++part) {
                T *to = own[e][part] + at;
                if (T *saved = s.saved[e][part])
                    for (int r = 0; r < rows; ++r)
                        along<T>(columns, [&](auto pack, int64_t i) {
                            using V = decltype(pack);
                            store(saved + at + r * s.width + i, load<V>(to + r * s.width + i));
                        });
                for (int64_t c = 0; c < columns; c += tile<T>) {
                    const int width = static_cast<int>(columns - c < tile<T> ? columns - c : tile<T>);
                    transpose(panel.line(slot0 + 2 * e + part, c) + y, panel.stride, to + c, s.width, width,
                              rows);
                }
            }
    }
};

template <class T, int E> void horizontal(const Sweep<T> &s) {
    const int64_t stride = line_stride(s.height),
                  step = panel_columns(Columns<T, E>::planes * stride * sizeof(T));
    Cavities<T, E> cavities{s.scratch, stride};
    clear(s.scratch, 4 * E * stride);
    T *after = s.scratch + 4 * E * stride;
    Columns<T, E> columns{s, Around<T, E>(s.base, s.slot, s.direction), {after, stride, step}, nullptr, {}};
    columns.tiles = after + Columns<T, E>::planes * (step + 2) * stride;
    columns.panel.clear_rest(Columns<T, E>::planes, s.height);
    for (int e = 0; e < E; ++e)
        for (int part = 0; part < 2; ++part) columns.own[e][part] = s.slot[slot_of(s.direction, E, e)][part];

    const T rho = s.reweighting;
    const int64_t panels = (s.width + step - 1) / step;
    const int64_t rows = (s.height + lanes<T> - 1) / lanes<T> * lanes<T>;
    for (int64_t n = 0; n < panels; ++n) {
        const int64_t x = (s.direction == 0 ? n : panels - 1 - n) * step;
        const int64_t count = s.width - x < step ? s.width - x : step;
        for (int64_t y = 0; y < s.height; y += tile<T>)
            columns.bring(x, count, y, static_cast<int>(s.height - y < tile<T> ? s.height - y : tile<T>));
        for (int64_t m = 0; m < count; ++m) {
            const int64_t c = s.direction == 0 ? m : count - 1 - m;
            Heard<T, E> h;
            const T *kept_line[E][2];
            for (int e = 0; e < E; ++e) {
                h.weight[e] = columns.panel.line(columns.weight0 + e, c);
                h.difference[e] = columns.panel.line(columns.difference0 + e, c);
                for (int part = 0; part < 2; ++part) {
                    kept_line[e][part] = columns.panel.line(2 * e + part, c);
                    h.slot[e][part] = columns.panel.line(columns.slot0 + 2 * e + part, c);
                    h.saved[e][part] = nullptr;
                }
            }
            h.damping = columns.panel.line(columns.damping0, c);
            h.always = s.always;
            cavities.next(h);
            along<T>(rows, [&](auto pack, int64_t i) {
                using V = decltype(pack);
                V kept[E][2];
                for (int p = 0; p < 2 * E; ++p) kept[p / 2][p % 2] = load<V>(kept_line[p / 2][p % 2] + i);
                hear<V>(h, rho, i, i, kept);
            });
        }
        for (int64_t y = 0; y < s.height; y += tile<T>)
            columns.take_back(x, count, y, static_cast<int>(s.height - y < tile<T> ? s.height - y : tile<T>));
    }
}

}  // namespace

template <class T> void sweep(const Sweep<T> &s) {
    const bool columns = s.direction % 2 == 0;
    if (s.edges == 3)
        columns ? horizontal<T, 3>(s) : vertical<T, 3>(s);
    else
        columns ? horizontal<T, 1>(s) : vertical<T, 1>(s);
}

template void sweep(const Sweep<float> &);
template void sweep(const Sweep<double> &);

}  // namespace gbpn::GBPN_LEVEL

// The adjoint of a serial sweep: lines are visited backwards, the cotangent of what a line told the next
// one is handed from line to line. Conditions of the forward rule are constants.
//
// Words. All are of one line, seen from the pixel that receives a message; index e is the sender, part 0 is
// the information η and part 1 the precision Λ of a Gaussian.
//   grad_X            cotangent of X: the derivative of the loss by X
//   cavity            what a sender of the line before knows without what it heard from this receiver (η, Λ
//   below) saved, old        the message before the sweep; `slot` holds the one after it f cotangent F of the
//   new message: from the messages after the sweep, and through `leaving` leaving           cavities that
//   this line tells the next; their cotangent has already been found there arriving          cavities of the
//   line before, which this line heard; their cotangent is found here answer            one pixel: from F to
//   the cotangents of edge, old message and arriving cavities spread            one pixel: from the cotangent
//   of its cavities to that of everything they were summed from keep              share b of the old message
//   that was kept: the damping, or 0 where there was no old message gain, t, through  g, t and G / (w + Λ) of
//   the rule above `answer` en, ln            (1 − b) F_η and (1 − b) F_Λ: cotangent of the new message
//   before damping scale             1 / ρ, where ρ (rho) is the reweighting 0 behind a name   first of
//   several planes of a panel, as in weight0
#include "gbp_lines.h"

namespace gbpn::GBPN_LEVEL {
namespace {

template <class T, int E> struct Answer {
    const T *weight[E], *difference[E], *damping;
    const T *saved[E][2];  // messages before the sweep
    T *slot[E][2];         // receives `saved`; null when the caller does that
    T *grad[E][2];         // cotangent of the messages after the sweep; becomes that of those before
    T *grad_weight[E], *grad_difference[E], *grad_damping;
    bool add_edges, add_damping;
    const T *cavity[E][2];        // of the line before, aligned to the receiver
    const T *grad_leaving[E][2];  // cotangent of this line's cavities, aligned to this line
    T *grad_arriving[E][2];       // receives that of the line before, aligned to the receiver
    bool always;
};

// With F the cotangent of a new message, g = w / (w + Λ), t = η + r·Λ (η, Λ: the sender's cavity), b the
// damping:
//   b' = F·(old − new undamped);  old' = b F;  r' = (1−b) F_η g Λ;  w' = G (1−g) / (w + Λ);
//   η' = (1−b) g F_η;  Λ' = g ((1−b)(F_Λ + r F_η) − G / (w + Λ));  G = (1−b)(F_η t + F_Λ Λ).
template <class V, class T, int E>
GBPN_INLINE void answer(const Answer<T, E> &a, T rho, int64_t at, int64_t i, const V (&sum)[2]) {
    const T scale = 1 / rho;
    const V damping = load<V>(a.damping + at);
    V grad_damping{};
    for (int e = 0; e < E; ++e) {
        const V f_information = load<V>(a.grad[e][0] + at) + rho * sum[0];
        const V f_precision = load<V>(a.grad[e][1] + at) + rho * sum[1];
        const V information = load<V>(a.cavity[e][0] + i), precision = load<V>(a.cavity[e][1] + i);
        const V old_information = load<V>(a.saved[e][0] + at), old_precision = load<V>(a.saved[e][1] + at);
        const V weight = scale * load<V>(a.weight[e] + at), difference = load<V>(a.difference[e] + at);
        const V one = V{} + 1;
        const V total = weight + precision, safe = where_positive(total - tiny<T>, total, V{} + tiny<T>);
        const V inverse = one / where_positive(precision, safe, one);
        const V gain = weight * inverse, t = information + difference * precision;
        const V keep = a.always ? damping : where_positive(old_precision, damping, V{});
        const V slope =
            f_information * (old_information - gain * t) + f_precision * (old_precision - gain * precision);
        const V damped = where_positive(precision, where_positive(old_precision, slope, V{}), V{});
        grad_damping += a.always ? slope : damped;
        const V en = where_positive(precision, (1 - keep) * f_information, V{});
        const V ln = where_positive(precision, (1 - keep) * f_precision, V{});
        const V through = (en * t + ln * precision) * inverse;
        V grad_weight = scale * through * (1 - gain), grad_difference = en * gain * precision;
        if (a.add_edges) {
            grad_weight += load<V>(a.grad_weight[e] + at);
            grad_difference += load<V>(a.grad_difference[e] + at);
        }
        store(a.grad_weight[e] + at, grad_weight);
        store(a.grad_difference[e] + at, grad_difference);
        store(a.grad_arriving[e][0] + i, gain * en);
        store(a.grad_arriving[e][1] + i, gain * (ln + difference * en - through));
        const V silent = a.always ? keep : V{} + 1;
        store(a.grad[e][0] + at, where_positive(precision, keep, silent) * f_information);
        store(a.grad[e][1] + at, where_positive(precision, keep, silent) * f_precision);
        if (a.slot[e][0]) {
            store(a.slot[e][0] + at, old_information);
            store(a.slot[e][1] + at, old_precision);
        }
    }
    if (a.add_damping) grad_damping += load<V>(a.grad_damping + at);
    store(a.grad_damping + at, grad_damping);
}

// Where the cotangent of a pixel's cavities goes, apart from the messages it heard in this sweep.
template <class T, int E> struct Spread {
    T *base[2], *other[8 - 2 * E][2], *back[E][2];

    Spread(const SweepAdjoint<T> &s) {
        const T *const base_planes[2] = {s.grad_base[0], s.grad_base[1]};
        const Around<T, E> around(base_planes, s.grad_slot, s.direction);
        for (int part = 0; part < 2; ++part) {
            base[part] = s.grad_base[part];
            for (int n = 0; n < 8 - 2 * E; ++n) other[n][part] = const_cast<T *>(around.other[n][part]);
            for (int e = 0; e < E; ++e) back[e][part] = const_cast<T *>(around.back[e][part]);
        }
    }

    template <class V> GBPN_INLINE void add(T rho, int64_t at, const V (&leaving)[E][2], V (&sum)[2]) const {
        for (int part = 0; part < 2; ++part) {
            V total{};
            for (int e = 0; e < E; ++e) total += leaving[e][part];
            sum[part] = total;
            store(base[part] + at, load<V>(base[part] + at) + total);
            for (int n = 0; n < 8 - 2 * E; ++n)
                store(other[n][part] + at, load<V>(other[n][part] + at) + rho * total);
            for (int e = 0; e < E; ++e) {
                V rest{};
                for (int f = 0; f < E; ++f)
                    if (f != e) rest += leaving[f][part];
                T *to = back[e][part] + at;
                store(to, load<V>(to) + rho * rest - (1 - rho) * leaving[e][part]);
            }
        }
    }
};

// The cavities of a pixel from the messages after the sweep.
template <class V, class T, int E>
GBPN_INLINE void cavity(const Around<T, E> &around, T *const (&own)[E][2], T rho, int64_t at,
                        V (&out)[E][2]) {
    around.rest(rho, at, out);
    V sum[2] = {};
    for (int e = 0; e < E; ++e)
        for (int part = 0; part < 2; ++part) sum[part] += load<V>(own[e][part] + at);
    for (int e = 0; e < E; ++e) {
        const V precision = out[e][1] + rho * sum[1];
        out[e][0] = where_positive(precision, out[e][0] + rho * sum[0], V{});
        out[e][1] = where_positive(precision, precision, V{});
    }
}

template <class T, int E> void vertical(const SweepAdjoint<T> &s) {
    const Around<T, E> around(s.base, s.slot, s.direction);
    const Spread<T, E> spread(s);
    const T rho = s.reweighting;
    const int64_t stride = line_stride(s.width);
    T *cavities = s.scratch, *leaving = cavities + 2 * E * stride, *arriving = leaving + 2 * E * stride;
    clear(s.scratch, 6 * E * stride);
    Answer<T, E> a;
    T *own[E][2];
    for (int e = 0; e < E; ++e) {
        a.weight[e] = s.edge.weight[e];
        a.difference[e] = s.edge.difference[e];
        a.grad_weight[e] = s.grad_edge.weight[e];
        a.grad_difference[e] = s.grad_edge.difference[e];
        for (int part = 0; part < 2; ++part) {
            const int slot = slot_of(s.direction, E, e);
            a.saved[e][part] = s.saved[e][part];
            a.slot[e][part] = own[e][part] = s.slot[slot][part];
            a.grad[e][part] = s.grad_slot[slot][part];
            a.cavity[e][part] = cavities + (2 * e + part) * stride + 2 + (e - E / 2);
        }
    }
    a.damping = s.edge.damping;
    a.always = s.always;
    a.grad_damping = s.grad_edge.damping;
    a.add_edges = s.grad_edge.add_edges;
    a.add_damping = s.grad_edge.add_damping;
    for (int64_t n = s.height - 1; n >= 0; --n) {
        const int64_t row = (s.direction == 1 ? n : s.height - 1 - n) * s.width;
        const int64_t before = row + (s.direction == 1 ? -s.width : s.width);
        if (n > 0)
            along<T>(s.width, [&](auto pack, int64_t i) {
                using V = decltype(pack);
                V out[E][2];
                cavity<V>(around, own, rho, before + i, out);
                for (int p = 0; p < 2 * E; ++p) store(cavities + p * stride + 2 + i, out[p / 2][p % 2]);
            });
        else
            clear(cavities, 2 * E * stride);
        for (int p = 0; p < 2 * E; ++p) {
            a.grad_leaving[p / 2][p % 2] = leaving + p * stride + 2;
            a.grad_arriving[p / 2][p % 2] = arriving + p * stride + 2 + (p / 2 - E / 2);
        }
        along<T>(s.width, [&](auto pack, int64_t i) {
            using V = decltype(pack);
            V grad[E][2], sum[2];
            for (int p = 0; p < 2 * E; ++p) grad[p / 2][p % 2] = load<V>(a.grad_leaving[p / 2][p % 2] + i);
            spread.add(rho, row + i, grad, sum);
            answer<V>(a, rho, row + i, i, sum);
        });
        T *swap = leaving;
        leaving = arriving;
        arriving = swap;
    }
}

// As in the forward sweep, a panel of columns is worked on transposed.
template <class T, int E> struct Columns {
    const SweepAdjoint<T> &s;
    const Around<T, E> around;
    const Spread<T, E> spread;
    Panel<T> panel;
    T *tiles;
    T *own[E][2], *grad[E][2];
    // Planes: cavity [E][2], cotangent of cavities [E][2], saved [E][2], cotangent of messages [E][2],
    // weight [E] and difference [E] and damping (each replaced by its gradient).
    static constexpr int leaving0 = 2 * E, saved0 = 4 * E, grad0 = 6 * E, weight0 = 8 * E,
                         difference0 = 9 * E, damping0 = 10 * E, planes = 10 * E + 1;

    void bring(int64_t x, int64_t columns, int64_t y, int rows) {
        for (int64_t c = 0; c < columns; c += tile<T>) {
            const int width = static_cast<int>(columns - c < tile<T> ? columns - c : tile<T>);
            const int64_t at = y * s.width + x + c;
            for (int r = 0; r < rows; ++r)
                along<T>(width, [&](auto pack, int64_t i) {
                    using V = decltype(pack);
                    V out[E][2];
                    cavity<V>(around, own, s.reweighting, at + r * s.width + i, out);
                    for (int p = 0; p < 2 * E; ++p)
                        store(tiles + (p * tile<T> + r) * tile<T> + i, out[p / 2][p % 2]);
                });
            for (int p = 0; p < 2 * E; ++p)
                transpose(tiles + p * tile<T> * tile<T>, tile<T>, panel.line(p, c) + y, panel.stride, rows,
                          width);
            const auto plane = [&](int p, const T *from) {
                transpose(from + at, s.width, panel.line(p, c) + y, panel.stride, rows, width);
            };
            for (int e = 0; e < E; ++e) {
                for (int part = 0; part < 2; ++part) {
                    plane(saved0 + 2 * e + part, s.saved[e][part]);
                    plane(grad0 + 2 * e + part, grad[e][part]);
                }
                plane(weight0 + e, s.edge.weight[e]);
                plane(difference0 + e, s.edge.difference[e]);
            }
            plane(damping0, s.edge.damping);
        }
    }

    // Cavities of the column just outside the panel, from which its last column heard.
    void bring_sender(int64_t x, int64_t column) {
        const bool inside = x >= 0 && x < s.width;
        for (int p = 0; p < 2 * E; ++p) clear(panel.line(p, column), panel.stride);
        for (int64_t y = 0; inside && y < s.height; ++y) {
            T out[E][2];
            cavity<T>(around, own, s.reweighting, y * s.width + x, out);
            for (int p = 0; p < 2 * E; ++p) panel.line(p, column)[y] = out[p / 2][p % 2];
        }
    }

    void put(int plane, T *to, int64_t at, int64_t c, int64_t y, int rows, int width, bool add) {
        const T *from = panel.line(plane, c) + y;
        if (!add) return transpose(from, panel.stride, to + at, s.width, width, rows);
        transpose(from, panel.stride, tiles, tile<T>, width, rows);
        for (int r = 0; r < rows; ++r)
            along<T>(width, [&](auto pack, int64_t i) {
                using V = decltype(pack);
                T *there = to + at + r * s.width + i;
                store(there, load<V>(there) + load<V>(tiles + r * tile<T> + i));
            });
    }

    void take_back(int64_t x, int64_t columns, int64_t y, int rows) {
        for (int64_t c = 0; c < columns; c += tile<T>) {
            const int width = static_cast<int>(columns - c < tile<T> ? columns - c : tile<T>);
            const int64_t at = y * s.width + x + c;
            for (int e = 0; e < E; ++e) {
                put(weight0 + e, s.grad_edge.weight[e], at, c, y, rows, width, s.grad_edge.add_edges);
                put(difference0 + e, s.grad_edge.difference[e], at, c, y, rows, width, s.grad_edge.add_edges);
                for (int part = 0; part < 2; ++part)
                    put(grad0 + 2 * e + part, grad[e][part], at, c, y, rows, width, false);
            }
            put(damping0, s.grad_edge.damping, at, c, y, rows, width, s.grad_edge.add_damping);
            for (int p = 0; p < 2 * E; ++p)
                transpose(panel.line(leaving0 + p, c) + y, panel.stride, tiles + p * tile<T> * tile<T>,
                          tile<T>, width, rows);
            for (int r = 0; r < rows; ++r)
                along<T>(width, [&](auto pack, int64_t i) {
                    using V = decltype(pack);
                    const int64_t there = at + r * s.width + i;
                    V leaving[E][2], sum[2];
                    for (int p = 0; p < 2 * E; ++p) {
                        leaving[p / 2][p % 2] = load<V>(tiles + (p * tile<T> + r) * tile<T> + i);
                        store(own[p / 2][p % 2] + there, load<V>(s.saved[p / 2][p % 2] + there));
                    }
                    spread.add(s.reweighting, there, leaving, sum);
                });
        }
    }

    void column(int64_t c, int64_t sender, int64_t rows) {
        Answer<T, E> a;
        for (int e = 0; e < E; ++e) {
            a.weight[e] = a.grad_weight[e] = panel.line(weight0 + e, c);
            a.difference[e] = a.grad_difference[e] = panel.line(difference0 + e, c);
            for (int part = 0; part < 2; ++part) {
                const int p = 2 * e + part, shift = e - E / 2;
                a.saved[e][part] = panel.line(saved0 + p, c);
                a.grad[e][part] = panel.line(grad0 + p, c);
                a.slot[e][part] = nullptr;
                a.cavity[e][part] = panel.line(p, sender) + shift;
                a.grad_leaving[e][part] = panel.line(leaving0 + p, c);
                a.grad_arriving[e][part] = panel.line(leaving0 + p, sender) + shift;
            }
        }
        a.damping = a.grad_damping = panel.line(damping0, c);
        a.always = s.always;
        a.add_edges = a.add_damping = false;
        along<T>(rows, [&](auto pack, int64_t i) {
            using V = decltype(pack);
            V sum[2] = {};
            for (int p = 0; p < 2 * E; ++p) sum[p % 2] += load<V>(a.grad_leaving[p / 2][p % 2] + i);
            answer<V>(a, s.reweighting, i, i, sum);
        });
    }
};

template <class T, int E> void horizontal(const SweepAdjoint<T> &s) {
    using Work = Columns<T, E>;
    const int64_t stride = line_stride(s.height), step = panel_columns(Work::planes * stride * sizeof(T));
    clear(s.scratch, 16);
    Work work{s,
              Around<T, E>(s.base, s.slot, s.direction),
              Spread<T, E>(s),
              {s.scratch + 16, stride, step},
              nullptr,
              {},
              {}};
    work.tiles = s.scratch + 16 + Work::planes * (step + 2) * stride;
    work.panel.clear_rest(Work::planes, s.height);
    for (int p = 0; p < 2 * E; ++p) {
        work.own[p / 2][p % 2] = s.slot[slot_of(s.direction, E, p / 2)][p % 2];
        work.grad[p / 2][p % 2] = s.grad_slot[slot_of(s.direction, E, p / 2)][p % 2];
        clear(work.panel.line(Work::leaving0 + p, -1), (step + 2) * stride);
    }
    const bool left_right = s.direction == 0;
    const int64_t panels = (s.width + step - 1) / step;
    const int64_t rows = (s.height + lanes<T> - 1) / lanes<T> * lanes<T>;
    for (int64_t n = 0; n < panels; ++n) {
        const int64_t x = (left_right ? panels - 1 - n : n) * step;
        const int64_t count = s.width - x < step ? s.width - x : step;
        const int64_t first = left_right ? count - 1 : 0, outside = left_right ? -1 : count;
        if (n > 0)  // what the panel before found out about this panel's edge
            for (int p = 0; p < 2 * E; ++p) {
                const T *from = work.panel.line(Work::leaving0 + p, left_right ? -1 : step);
                T *to = work.panel.line(Work::leaving0 + p, first);
                for (int64_t i = 0; i < s.height; ++i) to[i] = from[i];
            }
        for (int64_t y = 0; y < s.height; y += tile<T>)
            work.bring(x, count, y, static_cast<int>(s.height - y < tile<T> ? s.height - y : tile<T>));
        work.bring_sender(left_right ? x - 1 : x + count, outside);
        for (int64_t m = 0; m < count; ++m) {
            const int64_t c = left_right ? count - 1 - m : m;
            work.column(c, left_right ? c - 1 : c + 1, rows);
        }
        for (int64_t y = 0; y < s.height; y += tile<T>)
            work.take_back(x, count, y, static_cast<int>(s.height - y < tile<T> ? s.height - y : tile<T>));
    }
}

}  // namespace

template <class T> void sweep_adjoint(const SweepAdjoint<T> &s) {
    const bool columns = s.direction % 2 == 0;
    if (s.edges == 3)
        columns ? horizontal<T, 3>(s) : vertical<T, 3>(s);
    else
        columns ? horizontal<T, 1>(s) : vertical<T, 1>(s);
}

template void sweep_adjoint(const SweepAdjoint<float> &);
template void sweep_adjoint(const SweepAdjoint<double> &);

}  // namespace gbpn::GBPN_LEVEL

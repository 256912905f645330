// Gaussian belief propagation on an image grid: what the kernels are asked to do, for one image.
// Planes are [H, W], rows contiguous. Pairs are (information, precision). src/gbpn/gbp/reference.py is the
// definition.
#pragma once

#include <cstdint>

#include "simd.h"

namespace gbpn {

constexpr int max_edges = 3;
constexpr int message_slots = 8;

// Slots that each sweep writes, in the order of the edge axis; a single edge is the middle one. 7 − slot
// points back at the sender. Python has the same table in gbpn.mrf.SENDERS.
constexpr int senders[4][max_edges] = {{0, 3, 5}, {0, 1, 2}, {2, 4, 7}, {5, 6, 7}};

static constexpr int slot_of(int direction, int edges, int edge) {
    return senders[direction][edges == 1 ? 1 : edge];
}

template <class T> struct Edges { const T *weight[max_edges], *difference[max_edges], *damping; };

template <class T> struct EdgeGradients {
    T *weight[max_edges], *difference[max_edges], *damping;
    bool add_edges, add_damping;  // add to what is there, or overwrite it
};

// One serial sweep, in place.
template <class T> struct Sweep {
    int64_t height, width;
    int direction;  // 0 left-right, 1 top-bottom, 2 right-left, 3 bottom-top
    int edges;      // 1 or 3 senders per pixel
    T reweighting;
    bool always;  // damp also against an empty slot, and against nothing where the sender knows nothing
    const T *base[2];
    T *slot[8][2];
    Edges<T> edge;
    T *saved[max_edges][2];  // receives what the sweep overwrites; null when nothing is to be kept
    T *scratch;
};

// The same sweep backwards: `slot` holds the messages after it and, on return, those before it.
template <class T> struct SweepAdjoint {
    int64_t height, width;
    int direction, edges;
    T reweighting;
    bool always;
    const T *base[2];
    T *slot[8][2];
    Edges<T> edge;
    const T *saved[max_edges][2];
    T *grad_slot[8][2];  // cotangent of the messages after the sweep; on return, before it
    T *grad_base[2];     // added to
    EdgeGradients<T> grad_edge;
    T *scratch;
};

constexpr int max_learned = 16;

template <class T> struct LearnedEdges {
    const T *weight[max_learned], *difference[max_learned], *offset[max_learned][2], *damping;
};

// One parallel step along the learned edges. Fields hold (information, precision) of neighbouring pixels side
// by side, with a border of one zero pixel: [H + 2, W + 2, 2].
template <class T> struct NonLocal {
    int64_t height, width;
    int64_t first, last;  // rows that are computed: first ≤ row < last
    int count;
    T reweighting;
    const T *base[2];
    const T *total[2];
    T *result[2];  // may be `total`
    const T *field;
    T *next_field;  // base + reweighting · result; null when not needed
    LearnedEdges<T> edge;
};

template <class T> struct NonLocalAdjoint {
    int64_t height, width;
    int count;
    T reweighting;
    const T *total[2];  // before the step
    const T *field;
    LearnedEdges<T> edge;
    T *grad_total[2];  // cotangent of the result; on return, of `total`
    T *grad_base[2];   // added to
    T *grad_field;     // scratch, like a field
    T *grad_weight[max_learned], *grad_difference[max_learned], *grad_offset[max_learned][2], *grad_damping;
    bool add;
};

// An image in diagonal bands: band n holds the pixels with n · lanes ≤ row + column < (n + 1) · lanes, all
// bands together (height + width − 1) / lanes, rounded up. Messages lie in records of one line of a band
// each, those from above and below by row, the others by column, and so do edges of sweeps along rows; all
// else is read and written in the image.
constexpr int band_column_planes = 12, band_row_planes = 4, band_edge_planes = 6, band_pieces = 21;
template <class T> struct Bands {
    int64_t height, width;
    T reweighting;
    const T *base[2];
    Edges<T> edge[4];
    T *heard[2];  // receives the sum of the messages of the eight slots; null: not wanted
    T *columns, *rows, *edges[2], *damping;
    const int64_t *column_line, *row_line;  // by band: record that its column 0, its row 0 has or would have
    T *scratch;                             // band_pieces · longest lines
    int64_t longest;                        // most lines of a band
    T *carry[2];                            // 4 planes for lines −1 … length, by columns and by rows
};

// Which edges are to be brought into bands.
struct EdgesWanted { bool weight, difference, damping; };

// Sums over the slots of a pixel, in this order: (0 + 1 + 2) + (3 + 4) + (5 + 6 + 7), then the far ones.
template <class T> struct Slots {
    int64_t pixels;
    T reweighting;
    const T *unary[2];
    const T *slot[8][2];
    const T *heard[2];  // the sum over the slots, where it is known; null: it is made
    const T *far[2];    // null: without the non-local sum
    T *result[2];
};

// What a scan over values found.
struct Range {
    double low, high;
    int64_t not_finite;
};

#define GBPN_DECLARE(LEVEL)                                                                                 \
    namespace LEVEL {                                                                                       \
    template <class T> void sweep(const Sweep<T> &);                                                        \
    template <class T> void sweep_adjoint(const SweepAdjoint<T> &);                                         \
    template <class T> void nonlocal_step(const NonLocal<T> &);                                             \
    template <class T> void nonlocal_adjoint(const NonLocalAdjoint<T> &);                                   \
    template <class T> void sum_slots(const Slots<T> &);                                                    \
    template <class T> /* Rows first ≤ row < last of base + rho · total, with the zeros beside them. */  \
    void make_field(const T *const base[2], const T *const total[2], T rho, int64_t first, int64_t last,    \
                    int64_t width, T *field);                                                               \
    /* Zeros around a field. */                                                                             \
    template <class T> void clear_border(int64_t height, int64_t width, T *field);                          \
    template <class T> void scan(const T *values, int64_t count, Range &range);                             \
    template <class T> int64_t band_lanes();                                                                \
    /* Left-right or right-left, then top-bottom or bottom-top: bands forth or back, each both in turn. */  \
    template <class T> void band_along_rows(const Bands<T> &, int64_t number, bool forward);                \
    template <class T> void band_along_columns(const Bands<T> &, int64_t number, bool forward);             \
    template <class T>                                                                                      \
    void edges_to_band(const Bands<T> &, int64_t number, const EdgesWanted &wanted);                        \
    template <class T>                                                                                      \
    void messages_to_band(const Bands<T> &, int64_t number, const T *const slot[8][2]);                     \
    template <class T>                                                                                      \
    void messages_from_band(const Bands<T> &, int64_t number, T *const slot[8][2]);                         \
    }
GBPN_FOR_LEVELS(GBPN_DECLARE)
#undef GBPN_DECLARE

// Elements of scratch that a sweep and its adjoint need. Static: no instruction set may share a function.
static inline int64_t line_stride(int64_t length) { return (length + 15) / 16 * 16 + 16; }
constexpr int64_t widest_panel = 32;
// Columns of a panel: as many as the second-level cache holds with room to spare.
static inline int64_t panel_columns(int64_t bytes_per_column) {
    return bytes_per_column * widest_panel > 1600000 ? 16 : widest_panel;
}
static inline int64_t sweep_scratch(int64_t height, int64_t width) {
    const int64_t longest = line_stride(height > width ? height : width);
    const int64_t adjoint_planes = 10 * max_edges + 1;
    return 64 + 8 * max_edges * longest + adjoint_planes * (widest_panel + 2) * line_stride(height) +
           2 * max_edges * 16 * widest_panel;
}

}  // namespace gbpn

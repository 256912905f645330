// Maps around an inference: rows over threads, and the Python functions.
//   field_directed  both directions of undirected edges
//   belief_out      a belief → depth in metres and the logit of its confidence
//   belief_seen     a belief and its measurements → what a second stage looks at
//   stage_cues      that → the channels of its input
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "border.h"
#include "field_maps.h"
#include "gbp.h"
#include "threads.h"

namespace nb = nanobind;

namespace gbpn {
namespace {

using In = Array<const float>;
using Out = Array<float>;

constexpr int64_t rows_at_once = 16;
// (row, column) of message slots, and of the other end of undirected edges: gbpn.mrf.RING, SYMMETRIC_RING.
constexpr int slots[8][2] = {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}};
constexpr int undirected[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};

template <class Work> void over_rows(int64_t batch, int64_t height, int threads, const Work &work) {
    const int64_t blocks = (height + rows_at_once - 1) / rows_at_once;
    parallel(batch * blocks, threads, [&](int64_t piece) {
        const int64_t first = piece % blocks * rows_at_once;
        for (int64_t y = first; y < std::min(first + rows_at_once, height); ++y) work(piece / blocks, y);
    });
}

// The undirected edge that ends at a neighbour, or that comes from there.
int edge_to(int row, int column) {
    for (int u = 0; u < 4; ++u)
        if (undirected[u][0] == row && undirected[u][1] == column) return u;
    return -1;
}

// Row y of the plane `from`, moved: to[x] = from[y + row][x + column], 0 where that is outside.
template <class T>
void moved(const T *from, int64_t y, int row, int column, int64_t height, int64_t width, T *to) {
    if (y + row < 0 || y + row >= height) {
        std::memset(to, 0, width * sizeof(T));
        return;
    }
    const T *line = from + (y + row) * width;
    if (column > 0) {
        std::memcpy(to, line + 1, (width - 1) * sizeof(T));
        to[width - 1] = 0;
    } else if (column < 0) {
        to[0] = 0;
        std::memcpy(to + 1, line, (width - 1) * sizeof(T));
    } else {
        std::memcpy(to, line, width * sizeof(T));
    }
}

template <class T> struct Directed {
    Array<const T> weight, difference;
    Array<T> weights, differences;  // [B, T, 4, E, H, W]

    void row(int64_t b, int64_t y) const {
        const int edges = int(weights.shape[3]);
        for (int direction = 0; direction < 4; ++direction)
            for (int e = 0; e < edges; ++e) {
                const int slot = slot_of(direction, edges, e);
                for (int64_t t = 0; t < weights.shape[1]; ++t)
                    edge(b, t, y, slot, weights.at(b, t, direction, e), nullptr);
                for (int64_t t = 0; t < differences.shape[1]; ++t)
                    edge(b, t, y, slot, nullptr, differences.at(b, t, direction, e));
            }
    }

  private:
    // Of the message that arrives in `slot`: its weight or its difference.
    void edge(int64_t b, int64_t t, int64_t y, int slot, T *to_weight, T *to_difference) const {
        const int64_t height = weight.shape[3], width = weight.shape[4], at = y * width;
        const int row = slots[slot][0], column = slots[slot][1];
        const int own = edge_to(row, column), u = own < 0 ? edge_to(-row, -column) : own;
        if (own < 0) {  // stored at the sender
            if (to_weight) moved(weight.at(b, t, u), y, row, column, height, width, to_weight + at);
            if (to_difference)
                moved(difference.at(b, t, u), y, row, column, height, width, to_difference + at);
            return;
        }
        if (to_difference) {
            const T *from = difference.at(b, t, u) + at;
            for (int64_t x = 0; x < width; ++x) to_difference[at + x] = -from[x];
            return;
        }
        const bool outside = y + row >= height;
        std::memcpy(to_weight + at, weight.at(b, t, u) + at, width * sizeof(T));
        if (outside) std::memset(to_weight + at, 0, width * sizeof(T));
        if (column > 0) to_weight[at + width - 1] = 0;
        if (column < 0) to_weight[at] = 0;
    }
};

void bind_directed(const nb::dict &inputs, const nb::dict &outputs, int threads) {
    require_between("threads", threads, 1, most_of_any);
    Border border;
    by_kind(border, inputs, "weight", [&](auto kind) {
        using T = decltype(kind);
        Size batch{"B"}, height{"H", 1, longest_side}, width{"W", 1, longest_side}, edges{"U", 2, 4};
        Size weights{"T of weight", 1}, differences{"T of difference", 1};
        Group given(border, inputs, ""), wanted(border, outputs, "outputs.");
        Directed<T> d;
        given.read(d.weight, "weight", {batch, weights, edges, height, width});
        given.read(d.difference, "difference", {batch, differences, edges, height, width});
        given.end();
        if (edges.length == 3) refuse("weight must have 2 or 4 undirected edges per pixel; got 3");
        const int64_t senders = edges.length == 4 ? 3 : 1;
        wanted.read(d.weights, "weight", {batch, weights, 4, senders, height, width});
        wanted.read(d.differences, "difference", {batch, differences, 4, senders, height, width});
        wanted.end();
        const nb::gil_scoped_release unlocked;
        over_rows(batch.length, height.length, threads, [&](int64_t b, int64_t y) { d.row(b, y); });
    });
}

struct Maps {
    Border border;
    Size batch{"B"}, height{"H", 1, longest_side}, width{"W", 1, longest_side};

    void begin(const nb::dict &tensors, const char *first, int threads) {
        require_between("threads", threads, 1, most_of_any);
        Group group(border, tensors, "");
        border.decide_kind(group.get(first), first);
        if (border.kind() != Border::Kind::single)
            refuse(std::string(first) + " must be float32: other kinds have no compiled form");
    }
    template <class T> void read(Group &group, Array<T> &to, const char *name) {
        group.read(to, name, {batch, 1, height, width});
    }
    // One number per image.
    const float *numbers(Group &group, const char *name) {
        return static_cast<const float *>(group.read(name, {batch}, Layout::contiguous, false).data);
    }
    template <class Work> void run(int threads, const Work &work) const {
        over_rows(batch.length, height.length, threads, work);
    }
};

void bind_belief_out(const nb::dict &inputs, const nb::dict &outputs, int threads) {
    Maps maps;
    maps.begin(inputs, "information", threads);
    Group given(maps.border, inputs, ""), wanted(maps.border, outputs, "outputs.");
    In information, precision, residual;
    Out mean, logit;
    maps.read(given, information, "information"), maps.read(given, precision, "precision");
    maps.read(given, residual, "residual");
    const float *const metres = maps.numbers(given, "metres");
    given.end();
    maps.read(wanted, mean, "mean"), maps.read(wanted, logit, "logit");
    wanted.end();
    const nb::gil_scoped_release unlocked;
    maps.run(threads, [&](int64_t b, int64_t y) {
        const int64_t n = information.shape[3], at = y * n;
        GBPN_PICK(belief_out_row)
        (information.at(b) + at, precision.at(b) + at, residual.at(b) + at, metres[b], mean.at(b) + at,
         logit.at(b) + at, n);
    });
}

void bind_belief_seen(const nb::dict &inputs, const nb::dict &outputs, int threads) {
    Maps maps;
    maps.begin(inputs, "information", threads);
    Group given(maps.border, inputs, ""), wanted(maps.border, outputs, "outputs.");
    In information, precision, residual, measurement, weight;
    Out depth, confidence, measured;
    maps.read(given, information, "information"), maps.read(given, precision, "precision");
    maps.read(given, residual, "residual");
    maps.read(given, measurement, "measurement"), maps.read(given, weight, "weight");
    const float *const shift = maps.numbers(given, "shift");
    given.end();
    maps.read(wanted, depth, "depth"), maps.read(wanted, confidence, "confidence");
    maps.read(wanted, measured, "measured");
    wanted.end();
    const nb::gil_scoped_release unlocked;
    maps.run(threads, [&](int64_t b, int64_t y) {
        const int64_t n = information.shape[3], at = y * n;
        GBPN_PICK(belief_seen_row)
        (information.at(b) + at, precision.at(b) + at, residual.at(b) + at, shift[b], depth.at(b) + at,
         confidence.at(b) + at, n);
        GBPN_PICK(measured_row)
        (measurement.at(b) + at, weight.at(b) + at, shift[b], measured.at(b) + at, n);
    });
}

constexpr int cue_channels = 13;  // gbpn.network.refiner.CUES

struct Cues {
    In image, depth, confidence, measured;
    const float *intrinsics;  // [B, 3, 3]
    float *cues;              // [B, H, W, 13]
    float step;

    void row(int64_t b, int64_t y) const {
        const int64_t height = depth.shape[2], width = depth.shape[3], at = y * width;
        std::vector<float> memory((cue_channels + 1) * width);
        float *const line = memory.data(), *const there = line + cue_channels * width;
        const auto channel = [&](int n) { return line + n * width; };
        const float *const here = depth.at(b) + at, *const camera = intrinsics + 9 * b;
        for (int c = 0; c < 3; ++c) std::memcpy(channel(c), image.at(b, c) + at, width * sizeof(float));
        const float up = (float(y) - camera[5]) / camera[4];
        for (int64_t x = 0; x < width; ++x) channel(3)[x] = here[x] * ((float(x) - camera[2]) / camera[0]);
        for (int64_t x = 0; x < width; ++x) channel(4)[x] = here[x] * up;
        std::memcpy(channel(5), here, width * sizeof(float));
        std::memcpy(channel(6), confidence.at(b) + at, width * sizeof(float));
        GBPN_PICK(off_row)(measured.at(b) + at, here, step, channel(7), channel(8), width);
        for (int u = 0; u < 4; ++u) {
            moved(depth.at(b), y, undirected[u][0], undirected[u][1], height, width, there);
            GBPN_PICK(steep_row)(there, here, step, channel(9 + u), width);
        }
        float *to = cues + (b * height + y) * width * cue_channels;
        for (int64_t x = 0; x < width; ++x)
            for (int c = 0; c < cue_channels; ++c) *to++ = line[c * width + x];
    }
};

void bind_cues(const nb::dict &inputs, const nb::dict &outputs, double step, int threads) {
    Maps maps;
    maps.begin(inputs, "depth", threads);
    require_finite("step", step);
    if (!(float(step) > 0)) refuse("step must be above 0; got " + std::to_string(step));
    Group given(maps.border, inputs, ""), wanted(maps.border, outputs, "outputs.");
    Cues c{};
    c.step = float(step);
    maps.read(given, c.depth, "depth"), maps.read(given, c.confidence, "confidence");
    maps.read(given, c.measured, "measured");
    given.read(c.image, "image", {maps.batch, 3, maps.height, maps.width});
    c.intrinsics = static_cast<const float *>(
        given.read("intrinsics", {maps.batch, 3, 3}, Layout::contiguous, false).data);
    given.end();
    c.cues = static_cast<float *>(
        wanted.read("cues", {maps.batch, cue_channels, maps.height, maps.width}, Layout::dense_pixels, true)
            .data);
    wanted.end();
    const nb::gil_scoped_release unlocked;
    maps.run(threads, [&](int64_t b, int64_t y) { c.row(b, y); });
}

}  // namespace
}  // namespace gbpn

void bind_stage_maps(nb::module_ &module) {
    using namespace nb::literals;
    module.def("field_directed", &gbpn::bind_directed, nb::kw_only(), "inputs"_a, "outputs"_a, "threads"_a);
    module.def("belief_out", &gbpn::bind_belief_out, nb::kw_only(), "inputs"_a, "outputs"_a, "threads"_a);
    module.def("belief_seen", &gbpn::bind_belief_seen, nb::kw_only(), "inputs"_a, "outputs"_a, "threads"_a);
    module.def("stage_cues", &gbpn::bind_cues, nb::kw_only(), "inputs"_a, "outputs"_a, "step"_a, "threads"_a);
}

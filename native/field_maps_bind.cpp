// The maps that a field is made of: rows over threads, and the Python functions.
//   field_read        raw maps of the heads → precisions, differences, damping
//   field_corrected   what every iteration changes of them
//   field_responding  what the density of the measurements changes, and the steps of the depth-like map
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "border.h"
#include "field_maps.h"
#include "threads.h"

namespace nb = nanobind;

namespace gbpn {
namespace {

using In = Array<const float>;
using Out = Array<float>;

constexpr int64_t rows_at_once = 16;
// (row, column) of the other end of the undirected edges of a pixel; gbpn.mrf.SYMMETRIC_RING.
constexpr int ring[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};

// Calls work(b, first row, row after the last) for all rows of a batch.
template <class Work> void over_rows(int64_t batch, int64_t height, int threads, const Work &work) {
    const int64_t blocks = (height + rows_at_once - 1) / rows_at_once;
    parallel(batch * blocks, threads, [&](int64_t piece) {
        const int64_t first = piece % blocks * rows_at_once;
        work(piece / blocks, first, std::min(first + rows_at_once, height));
    });
}

// A small map [h, w] of any strides that is enlarged row by row.
struct Small {
    const float *data;
    int64_t row_step, step;
    int height, width, factor;

    Small(const View &maps, int64_t b, int64_t channel, int factor)
        : data(static_cast<const float *>(maps.data) + b * maps.stride[0] + channel * maps.stride[1]),
          row_step(maps.stride[2]),
          step(maps.stride[3]),
          height(int(maps.shape[2])),
          width(int(maps.shape[3])),
          factor(factor) {}

    void row(int64_t y, float *scratch, float *to) const {
        const float place = std::max((y + 0.5f) / factor - 0.5f, 0.0f);
        const int upper = static_cast<int>(place), lower = std::min(upper + 1, height - 1);
        GBPN_PICK(enlarge_row)
        ({data + upper * row_step, data + lower * row_step, step, place - upper, width, factor, scratch, to});
    }
};

struct Common {
    Border border;
    Size batch{"B"}, height{"H", 1, longest_side}, width{"W", 1, longest_side};

    // Group `tensors` of which the tensor `first` decides the kind: float32.
    void begin(const nb::dict &tensors, const char *first, int threads) {
        require_between("threads", threads, 1, most_of_any);
        Group group(border, tensors, "");
        border.decide_kind(group.get(first), first);
        if (border.kind() != Border::Kind::single)
            refuse(std::string(first) + " must be float32: other kinds have no compiled form");
    }
};

struct ReadNumbers {
    double difference_unit, least, contrast, faintest, unlike;
};

struct Read {
    In weight, difference, damping, contrast, image;
    const float *unit;
    Out precision, differences, dampings;

    void rows(const ReadNumbers &number, int64_t b, int64_t first, int64_t last) const {
        const int64_t width = weight.shape[3], edges = contrast ? contrast.shape[1] : 0;
        std::vector<float> lost(width), there(3 * (width + 2));
        for (int64_t y = first; y < last; ++y) {
            const int64_t at = y * width;
            for (int64_t c = 0; c < weight.shape[1]; ++c)
                GBPN_PICK(precision_row)
                (weight.at(b, c) + at, float(number.least), unit[c], precision.at(b, c) + at, width);
            for (int64_t u = 0; u < edges; ++u) {
                colours(b, y, u, there.data(), lost.data(), number);
                float *kept = precision.at(b, 2 + u) + at;
                GBPN_PICK(keep_row)
                (kept, contrast.at(b, u) + at, lost.data(), float(number.contrast), kept, width);
            }
            for (int64_t c = 0; c < difference.shape[1]; ++c) {
                const float *from = difference.at(b, c) + at, by = float(number.difference_unit);
                float *to = differences.at(b, c) + at;
                for (int64_t x = 0; x < width; ++x) to[x] = from[x] * by;
            }
            for (int64_t c = 0; c < damping.shape[1]; ++c)
                GBPN_PICK(sigmoid_row)(damping.at(b, c) + at, dampings.at(b, c) + at, width);
        }
    }

    // How much is lost along edge u of row y; colours outside the image are 0.
    void colours(int64_t b, int64_t y, int64_t u, float *there, float *lost, const ReadNumbers &number) const {
        const int64_t height = weight.shape[2], width = weight.shape[3], row = y + ring[u][0];
        const float *from[3], *to[3];
        for (int c = 0; c < 3; ++c) {
            from[c] = image.at(b, c) + y * width;
            float *padded = there + c * (width + 2);
            padded[0] = padded[width + 1] = 0;
            if (row < height)
                std::memcpy(padded + 1, image.at(b, c) + row * width, width * sizeof(float));
            else
                std::memset(padded + 1, 0, width * sizeof(float));
            to[c] = padded + 1 + ring[u][1];
        }
        GBPN_PICK(lost_row)(from, to, float(number.faintest), float(number.unlike), lost, width);
    }
};

void require_positive(const char *name, double value) {
    require_finite(name, value);
    if (!(float(value) > 0)) refuse(std::string(name) + " must be above 0; got " + std::to_string(value));
}

void bind_read(const nb::dict &inputs, const nb::dict &outputs, int local_edges, double difference_unit,
               double least, double contrast, double faintest, double unlike, int threads) {
    Common c;
    c.begin(inputs, "weight", threads);
    require_between("local_edges", local_edges, 1, 4);
    require_finite("difference_unit", difference_unit);
    require_finite("contrast", contrast);
    require_positive("least", least);
    require_positive("faintest", faintest);
    require_positive("unlike", unlike);
    Size weights{"C", 2 + local_edges}, dampings{"D"};
    Group given(c.border, inputs, ""), wanted(c.border, outputs, "outputs.");
    Read r{};
    given.read(r.weight, "weight", {c.batch, weights, c.height, c.width});
    const int64_t edges = weights.length - 2;
    given.read(r.difference, "difference", {c.batch, edges, c.height, c.width});
    given.read(r.damping, "damping", {c.batch, dampings, c.height, c.width});
    r.unit = static_cast<const float *>(given.read("unit", {weights}, Layout::contiguous, false).data);
    if (given.has("contrast")) {
        given.read(r.contrast, "contrast", {c.batch, local_edges, c.height, c.width});
        given.read(r.image, "image", {c.batch, 3, c.height, c.width});
    }
    given.end();
    wanted.read(r.precision, "precision", {c.batch, weights, c.height, c.width});
    wanted.read(r.differences, "difference", {c.batch, edges, c.height, c.width});
    wanted.read(r.dampings, "damping", {c.batch, dampings, c.height, c.width});
    wanted.end();
    const nb::gil_scoped_release unlocked;
    const ReadNumbers numbers{difference_unit, least, contrast, faintest, unlike};
    over_rows(c.batch.length, c.height.length, threads,
              [&](int64_t b, int64_t first, int64_t last) { r.rows(numbers, b, first, last); });
}

struct Corrected {
    View corrections;
    In damping, far_weight, far_damping;
    Out dampings, far_weights, far_dampings;

    void rows(int64_t b, int64_t first, int64_t last) const {
        const int64_t width = damping.shape[3], sets = dampings.shape[1];
        const int64_t learned = far_weight ? far_weight.shape[2] : 0, each = far_weight ? 2 + learned : 1;
        std::vector<float> scratch(width), change(width);
        for (int64_t y = first; y < last; ++y)
            for (int64_t t = 0; t < sets; ++t) {
                const int64_t at = y * width;
                const auto bring = [&](int64_t channel) {
                    Small(corrections, b, t * each + channel, 4).row(y, scratch.data(), change.data());
                };
                bring(0);
                GBPN_PICK(redamp_row)(damping.at(b, 0) + at, change.data(), dampings.at(b, t) + at, width);
                if (!far_weight) continue;
                bring(1);
                GBPN_PICK(redamp_row)
                (far_damping.at(b, 0) + at, change.data(), far_dampings.at(b, t) + at, width);
                for (int64_t k = 0; k < learned; ++k) {
                    bring(2 + k);
                    GBPN_PICK(times_exp_row)
                    (far_weight.at(b, 0, k) + at, change.data(), far_weights.at(b, t, k) + at, width);
                }
            }
    }
};

void bind_corrected(const nb::dict &inputs, const nb::dict &outputs, int threads) {
    Common c;
    c.begin(inputs, "damping", threads);
    Size sets{"T", 1}, learned{"K"}, channels{"T·(1 or 2 + K)", 1}, rows{"H/4", 1}, columns{"W/4", 1};
    Group given(c.border, inputs, ""), wanted(c.border, outputs, "outputs.");
    Corrected r{};
    r.corrections = given.read("corrections", {c.batch, channels, rows, columns}, Layout::strided, false);
    c.height.length = product({4, rows.length}), c.width.length = product({4, columns.length});
    given.read(r.damping, "damping", {c.batch, 1, c.height, c.width});
    const bool far = given.has("far_weight");
    if (far) {
        given.read(r.far_weight, "far_weight", {c.batch, 1, learned, c.height, c.width});
        given.read(r.far_damping, "far_damping", {c.batch, 1, c.height, c.width});
    }
    given.end();
    wanted.read(r.dampings, "damping", {c.batch, sets, c.height, c.width});
    if (far) {
        wanted.read(r.far_weights, "far_weight", {c.batch, sets, learned, c.height, c.width});
        wanted.read(r.far_dampings, "far_damping", {c.batch, sets, c.height, c.width});
    }
    wanted.end();
    if (channels.length != product({sets.length, far ? 2 + learned.length : 1}))
        refuse("corrections must have the channels of every iteration, T·(2 + K) or T; got " +
               std::to_string(channels.length));
    const nb::gil_scoped_release unlocked;
    over_rows(c.batch.length, c.height.length, threads,
              [&](int64_t b, int64_t first, int64_t last) { r.rows(b, first, last); });
}

struct Responding {
    View change;
    In unary, weight, difference, damping, prior, far_weight, far_difference, far_offset;
    Out unaries, weights, differences, dampings, far_weights, far_differences;
    Out half, far_steps;  // [B, 1, H/2, W/2], [B, T·K, H/2, W/2]
    float largest;

    int64_t height() const { return unary.shape[2]; }
    int64_t width() const { return unary.shape[3]; }

    // The map at half resolution.
    void halve(int64_t b, int64_t first, int64_t last) const {
        const int64_t columns = width() / 2;
        for (int64_t y = first; y < last; ++y) {
            const float *upper = prior.at(b) + 2 * y * width(), *lower = upper + width();
            float *to = half.at(b) + y * columns;
            for (int64_t x = 0; x < columns; ++x)
                to[x] = (upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1]) / 4;
        }
    }

    // Its squeezed steps to where learned edges end; ends outside read the border.
    void far_rows(int64_t b, int64_t first, int64_t last) const {
        const int64_t rows = height() / 2, columns = width() / 2, learned = far_offset.shape[2];
        const float *map = half.at(b);
        std::vector<float> there(columns);
        const auto inside = [](float place, int64_t length) {
            return place > 0 ? std::min(place, float(length - 1)) : 0.0f;
        };
        for (int64_t n = 0; n < far_steps.shape[1]; ++n)
            for (int64_t y = first; y < last; ++y) {
                const float *offsets[2];
                for (int axis = 0; axis < 2; ++axis)
                    offsets[axis] = far_offset.at(b, n / learned, n % learned, axis) + 2 * y * width();
                for (int64_t x = 0; x < columns; ++x) {
                    float at[2] = {float(y), float(x)};
                    for (int axis = 0; axis < 2; ++axis) {
                        const float *upper = offsets[axis] + 2 * x, *lower = upper + width();
                        at[axis] += (upper[0] + upper[1] + lower[0] + lower[1]) / 8;
                        at[axis] = inside(at[axis], axis ? columns : rows);
                    }
                    const int64_t top = int64_t(at[0]), left = int64_t(at[1]);
                    const int64_t below = top + 1 < rows ? columns : 0, beside = left + 1 < columns ? 1 : 0;
                    const float down = at[0] - top, right = at[1] - left;
                    const float *corner = map + top * columns + left;
                    there[x] = (corner[0] * (1 - right) + corner[beside] * right) * (1 - down) +
                               (corner[below] * (1 - right) + corner[below + beside] * right) * down;
                }
                GBPN_PICK(squeeze_row)
                (map + y * columns, there.data(), largest, far_steps.at(b, n) + y * columns, columns);
            }
    }

    void rows(int64_t b, int64_t first, int64_t last) const {
        const int64_t w = width();
        std::vector<float> memory(6 * w + 2 * (w + 2));
        float *const scratch = memory.data(), *const step = scratch + 6 * w + w + 2;
        float *const changes = scratch + w;  // by unary, local, far, damping, share
        for (int64_t y = first; y < last; ++y) {
            const int64_t at = y * w;
            for (int n = 0; n < 5; ++n) Small(change, b, n, 8).row(y, scratch, changes + n * w);
            const float *local = changes + w, *share = changes + 4 * w;
            GBPN_PICK(times_row)(unary.at(b) + at, changes, unaries.at(b) + at, w);
            for (int64_t t = 0; t < weights.shape[1]; ++t)
                for (int64_t u = 0; u < weights.shape[2]; ++u)
                    GBPN_PICK(times_row)(weight.at(b, t, u) + at, local, weights.at(b, t, u) + at, w);
            for (int64_t t = 0; t < dampings.shape[1]; ++t)
                GBPN_PICK(redamp_row)(damping.at(b, t) + at, changes + 3 * w, dampings.at(b, t) + at, w);
            for (int64_t u = 0; u < differences.shape[2]; ++u) {
                GBPN_PICK(squeeze_row)
                (neighbours(b, y, u, scratch + 6 * w), prior.at(b) + at, largest, step, w);
                for (int64_t t = 0; t < differences.shape[1]; ++t)
                    GBPN_PICK(add_times_row)
                    (difference.at(b, t, u) + at, step, share, differences.at(b, t, u) + at, w);
            }
            if (far_weight) far(b, y, changes + 2 * w, share, scratch, step);
        }
    }

    // Row y of the map as edge u sees it, 0 outside; `space` for W + 2.
    const float *neighbours(int64_t b, int64_t y, int64_t u, float *space) const {
        const int64_t w = width(), row = y + ring[u][0];
        space[0] = space[w + 1] = 0;
        if (row < height())
            std::memcpy(space + 1, prior.at(b) + row * w, w * sizeof(float));
        else
            std::memset(space + 1, 0, w * sizeof(float));
        return space + 1 + ring[u][1];
    }

    void far(int64_t b, int64_t y, const float *by, const float *share, float *scratch, float *step) const {
        const int64_t w = width(), at = y * w, learned = far_weight.shape[2];
        for (int64_t t = 0; t < far_weights.shape[1]; ++t)
            for (int64_t k = 0; k < learned; ++k)
                GBPN_PICK(times_row)(far_weight.at(b, t, k) + at, by, far_weights.at(b, t, k) + at, w);
        View steps;
        steps.data = far_steps.data, steps.rank = 4;
        for (int axis = 0; axis < 4; ++axis)
            steps.shape[axis] = far_steps.shape[axis], steps.stride[axis] = far_steps.stride[axis];
        for (int64_t n = 0; n < far_steps.shape[1]; ++n) {
            Small(steps, b, n, 2).row(y, scratch, step);
            GBPN_PICK(add_times_row)
            (far_difference.at(b, n / learned, n % learned) + at, step, share,
             far_differences.at(b, n / learned, n % learned) + at, w);
        }
    }
};

void bind_responding(const nb::dict &inputs, const nb::dict &outputs, double largest_step, int threads) {
    Common c;
    c.begin(inputs, "unary", threads);
    Size rows{"H/8", 1}, columns{"W/8", 1}, edges{"U", 1, 4}, learned{"K"};
    Size weights{"T of weight", 1}, differences{"T of difference", 1}, dampings{"T of damping", 1};
    Size far_weights{"T of far_weight", 1}, far_differences{"T of far_difference", 1};
    Group given(c.border, inputs, ""), wanted(c.border, outputs, "outputs.");
    require_positive("largest_step", largest_step);
    Responding r{};
    r.largest = float(largest_step);
    r.change = given.read("change", {c.batch, 5, rows, columns}, Layout::strided, false);
    c.height.length = product({8, rows.length}), c.width.length = product({8, columns.length});
    given.read(r.unary, "unary", {c.batch, 1, c.height, c.width});
    given.read(r.prior, "prior", {c.batch, 1, c.height, c.width});
    given.read(r.weight, "weight", {c.batch, weights, edges, c.height, c.width});
    given.read(r.difference, "difference", {c.batch, differences, edges, c.height, c.width});
    given.read(r.damping, "damping", {c.batch, dampings, c.height, c.width});
    wanted.read(r.unaries, "unary", {c.batch, 1, c.height, c.width});
    wanted.read(r.weights, "weight", {c.batch, weights, edges, c.height, c.width});
    wanted.read(r.differences, "difference", {c.batch, differences, edges, c.height, c.width});
    wanted.read(r.dampings, "damping", {c.batch, dampings, c.height, c.width});
    const bool far = given.has("far_weight");
    const int64_t half_height = c.height.length / 2, half_width = c.width.length / 2;
    if (far) {
        given.read(r.far_weight, "far_weight", {c.batch, far_weights, learned, c.height, c.width});
        given.read(r.far_difference, "far_difference",
                   {c.batch, far_differences, learned, c.height, c.width});
        given.read(r.far_offset, "far_offset", {c.batch, far_differences, learned, 2, c.height, c.width});
        wanted.read(r.far_weights, "far_weight", {c.batch, far_weights, learned, c.height, c.width});
        wanted.read(r.far_differences, "far_difference",
                    {c.batch, far_differences, learned, c.height, c.width});
        wanted.read(r.half, "half", {c.batch, 1, half_height, half_width});
        wanted.read(r.far_steps, "far_steps",
                    {c.batch, product({far_differences.length, learned.length}), half_height, half_width});
    }
    given.end(), wanted.end();
    const nb::gil_scoped_release unlocked;
    if (far) {
        over_rows(c.batch.length, half_height, threads,
                  [&](int64_t b, int64_t first, int64_t last) { r.halve(b, first, last); });
        over_rows(c.batch.length, half_height, threads,
                  [&](int64_t b, int64_t first, int64_t last) { r.far_rows(b, first, last); });
    }
    over_rows(c.batch.length, c.height.length, threads,
              [&](int64_t b, int64_t first, int64_t last) { r.rows(b, first, last); });
}

}  // namespace
}  // namespace gbpn

void bind_field_maps(nb::module_ &module) {
    using namespace nb::literals;
    module.def("field_read", &gbpn::bind_read, nb::kw_only(), "inputs"_a, "outputs"_a, "local_edges"_a,
               "difference_unit"_a, "least"_a, "contrast"_a, "faintest"_a, "unlike"_a, "threads"_a);
    module.def("field_corrected", &gbpn::bind_corrected, nb::kw_only(), "inputs"_a, "outputs"_a, "threads"_a);
    module.def("field_responding", &gbpn::bind_responding, nb::kw_only(), "inputs"_a, "outputs"_a,
               "largest_step"_a, "threads"_a);
    nb::list edges;
    for (const auto &edge : gbpn::ring) edges.append(nb::make_tuple(edge[0], edge[1]));
    module.attr("UNDIRECTED_RING") = nb::tuple(edges);
}

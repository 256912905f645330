// Neighbourhood attention: windows, order of work over threads, and the Python functions.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "attention.h"
#include "border.h"
#include "threads.h"

namespace nb = nanobind;

namespace gbpn {
namespace {

constexpr int padding = 16;         // lanes of the widest vector: scores of a pixel fill whole vectors
constexpr int64_t grain = 1 << 15;  // keys read by one thread, below which another one does not pay

// [B, C, H, W] with the channels of a pixel side by side.
template <class T> Pixels<T> pixels(const View &view) {
    return {static_cast<T *>(view.data), view.stride[0], view.stride[2], view.stride[3]};
}

struct Inputs {
    View query, key, value, bias;
};

struct AxisTable {
    int window, dilation;
    std::vector<int> first, bias;

    AxisTable(int length, int kernel, int wanted)
        : window(std::min(kernel, length)),
          dilation(std::max(1, std::min(wanted, length / kernel))),
          first(length),
          bias(length) {
        for (int p = 0; p < length; ++p) {
            const int residue = p % dilation, own = p / dilation;
            const int members = (length - residue + dilation - 1) / dilation;
            const int start = std::min(std::max(own - kernel / 2, 0), std::max(members - window, 0));
            first[p] = start * dilation + residue;
            bias[p] = start - own + kernel - 1;
        }
    }

    Axis view() const { return {window, dilation, first.data(), bias.data()}; }
};

// One call: owns the tables that its `Attention` points to.
template <class T> struct Call {
    int batches, height, threads;
    AxisTable rows, columns;
    Attention<T> attention;
    std::vector<T> patches;

    Call(const Inputs &in, int dilation, double scale, int wanted_threads)
        : batches(int(in.query.shape[0])),
          height(int(in.query.shape[2])),
          rows(height, kernel_of(in.bias), dilation),
          columns(int(in.query.shape[3]), kernel_of(in.bias), dilation) {
        const int heads = int(in.bias.shape[0]), keys = int(product({rows.window, columns.window}));
        attention = {heads,
                     int(in.query.shape[1]) / heads,
                     kernel_of(in.bias),
                     int(in.query.shape[3]),
                     rows.view(),
                     columns.view(),
                     keys,
                     (keys + padding - 1) / padding * padding,
                     T(scale),
                     pixels<const T>(in.query),
                     pixels<const T>(in.key),
                     pixels<const T>(in.value),
                     nullptr};
        patches.assign(patch_size(), -std::numeric_limits<T>::infinity());
        const T *const bias = static_cast<const T *>(in.bias.data);
        each_bias([&](size_t patch, size_t entry) { patches[patch] = bias[entry]; });
        attention.patches = patches.data();
        const int64_t work = int64_t(batches) * height * attention.width * heads * keys;
        threads = int(std::max<int64_t>(1, std::min<int64_t>(wanted_threads, work / grain)));
    }

    static int kernel_of(const View &bias) { return int(bias.shape[1] + 1) / 2; }

    size_t patch_size() const {
        return size_t(product({attention.heads, attention.kernel, attention.kernel, attention.stride}));
    }

    // Calls body(index into the patches, index into the bias table) for every entry that a window can reach.
    template <class Body> void each_bias(const Body &body) const {
        const int kernel = attention.kernel, side = 2 * kernel - 1;
        for (int head = 0; head < attention.heads; ++head)
            for (int down = 0; down < kernel; ++down)
                for (int right = 0; right < kernel; ++right)
                    for (int i = 0; i < rows.window; ++i)
                        for (int j = 0; j < columns.window; ++j)
                            body(attention.patch(head, down, right) + i * columns.window + j,
                                 (size_t(head) * side + down + i) * side + right + j);
    }
};

// What one thread needs for one pixel at a time.
template <class T> struct Scratch {
    std::vector<int64_t> offsets;
    std::vector<T> values;
    int stride;

    explicit Scratch(int stride) : offsets(3 * stride), values(2 * stride), stride(stride) {}

    AttentionScratch<T> view() {
        int64_t *const at = offsets.data();
        return {at, at + stride, at + 2 * stride, values.data(), values.data() + stride};
    }
};

template <class T> void forward(const Inputs &in, int dilation, double scale, int threads, const View &out) {
    const Call<T> call(in, dilation, scale, threads);
    const Pixels<T> result = pixels<T>(out);
    const auto attend = GBPN_PICK(attend_row<T>);
    parallel(int64_t(call.batches) * call.height, call.threads, [&](int64_t piece) {
        Scratch<T> scratch(call.attention.stride);
        attend(call.attention, scratch.view(), result, int(piece / call.height), int(piece % call.height));
    });
}

// A strip is every dilation-th row; strips that are not neighbours touch different keys and values.
// Longer than a window and a half, so this also holds where the last, shorter strip looks back from the
// border.
constexpr int strip_windows = 2;

template <class T>
void backward(const Inputs &in, int dilation, double scale, int threads, const View &out,
              const Inputs &gradient) {
    const Call<T> call(in, dilation, scale, threads);
    const AttentionGradients<T> gradients{pixels<const T>(out), pixels<T>(gradient.query),
                                          pixels<T>(gradient.key), pixels<T>(gradient.value)};
    const int step = call.rows.dilation, length = strip_windows * call.attention.kernel;
    const int strips = (call.height + step * length - 1) / (step * length);
    const int64_t pieces = product({call.batches, step, strips}), patch_size = int64_t(call.patch_size());
    std::vector<T> patches(product({patch_size, pieces}));  // one per piece, so that the sum has one order
    const auto attend = GBPN_PICK(attend_row_backward<T>);
    for (int parity = 0; parity < 2; ++parity)
        parallel(pieces, call.threads, [&](int64_t piece) {
            const int strip = int(piece % strips), residue = int(piece / strips % step);
            const int batch = int(piece / strips / step);
            if (strip % 2 != parity) return;
            Scratch<T> scratch(call.attention.stride);
            T *own = patches.data() + piece * patch_size;
            for (int i = strip * length; i < (strip + 1) * length && i * step + residue < call.height; ++i)
                attend(call.attention, scratch.view(), gradients, own, batch, i * step + residue);
        });
    T *table = static_cast<T *>(gradient.bias.data);
    for (int64_t piece = 0; piece < pieces; ++piece) {
        const T *own = patches.data() + piece * patch_size;
        call.each_bias([&](size_t patch, size_t entry) { table[entry] += own[patch]; });
    }
}

// Lengths of an attention, and its tensors or their gradients.
struct Images {
    Size batch{"B"}, channels{"heads · size", 1, longest_side}, height{"H", 0, longest_side};
    Size width{"W", 0, longest_side}, heads{"heads", 1, longest_side},
        side{"2 · kernel − 1", 1, most_kernel * 2 - 1};
    static constexpr int64_t most_kernel = int64_t(1) << 12;

    View image(Group &group, const char *name, bool written) {
        return group.read(name, {batch, channels, height, width},
                          written ? Layout::dense_pixels : Layout::pixels, written);
    }

    Inputs read(Group &group, bool written) {
        Inputs in;
        in.query = image(group, "query", written);
        in.key = image(group, "key", written);
        in.value = image(group, "value", written);
        in.bias = group.read("bias", {heads, side, side}, Layout::contiguous, written);
        group.end();
        if (side.length % 4 != 1)
            refuse(group.named("bias") +
                   " must be [heads, 2·kernel − 1, 2·kernel − 1] with an odd kernel; got sides of " +
                   std::to_string(side.length));
        if (channels.length % heads.length)
            refuse(group.named("query") + " must have a multiple of heads = " + std::to_string(heads.length) +
                   " channels (bias has that many tables); got " + std::to_string(channels.length));
        return in;
    }

    bool nothing() const { return batch.length == 0 || height.length == 0 || width.length == 0; }
};

void check_options(int dilation, double scale, int threads) {
    require_between("dilation", dilation, 1, most_of_any);
    require_finite("scale", scale);
    require_between("threads", threads, 1, most_of_any);
}

void bind_forward(const nb::dict &inputs, const nb::dict &outputs, int dilation, double scale, int threads) {
    check_options(dilation, scale, threads);
    Border border;
    by_kind(border, inputs, "query", [&](auto kind) {
        using T = decltype(kind);
        Images images;
        Group given(border, inputs, ""), wanted(border, outputs, "outputs.");
        const Inputs in = images.read(given, false);
        const View out = images.image(wanted, "out", true);
        wanted.end();
        if (images.nothing()) return;
        const nb::gil_scoped_release unlocked;
        forward<T>(in, dilation, scale, threads, out);
    });
}

// `gradients`: that of the query is overwritten, the others are added to.
void bind_backward(const nb::dict &inputs, const nb::dict &cotangents, const nb::dict &gradients,
                   int dilation, double scale, int threads) {
    check_options(dilation, scale, threads);
    Border border;
    by_kind(border, inputs, "query", [&](auto kind) {
        using T = decltype(kind);
        Images images;
        Group given(border, inputs, ""), along(border, cotangents, "cotangents.");
        Group wanted(border, gradients, "gradients.");
        const Inputs in = images.read(given, false);
        const View out = images.image(along, "out", false);
        along.end();
        const Inputs gradient = images.read(wanted, true);
        if (images.nothing()) return;
        const nb::gil_scoped_release unlocked;
        backward<T>(in, dilation, scale, threads, out, gradient);
    });
}

}  // namespace
}  // namespace gbpn

void bind_attention(nb::module_ &module) {
    using namespace nb::literals;
    module.def("attention_forward", &gbpn::bind_forward, nb::kw_only(), "inputs"_a, "outputs"_a, "dilation"_a,
               "scale"_a, "threads"_a);
    module.def("attention_backward", &gbpn::bind_backward, nb::kw_only(), "inputs"_a, "cotangents"_a,
               "gradients"_a, "dilation"_a, "scale"_a, "threads"_a);
}

// The transposed convolution of the heads: rows over threads, and the Python function.
#include <nanobind/nanobind.h>

#include <vector>

#include "border.h"
#include "threads.h"
#include "upscale.h"

namespace nb = nanobind;

namespace gbpn {
namespace {

template <class T>
void run_upscale(const View &x, const View &weight, const View &bias, int threads, const View &planes) {
    const int64_t batch = x.shape[0], channels = x.shape[1], height = x.shape[2], width = x.shape[3];
    const int64_t out = bias.shape[0];
    const int64_t padded = (width + upscale_columns - 1) / upscale_columns * upscale_columns;
    const T *const from = static_cast<const T *>(x.data);
    T *const to = static_cast<T *>(planes.data);
    const auto row = GBPN_PICK(upscale_row<T>);
    parallel(batch * height, threads, [&](int64_t piece) {
        const int64_t b = piece / height, y = piece % height;
        std::vector<T> scratch(channels * padded + 4 * upscale_columns);
        row({int(channels), int(out), int(width), padded, static_cast<const T *>(weight.data),
             static_cast<const T *>(bias.data), from + (b * x.stride[0] + y * x.stride[2]), x.stride[3],
             x.stride[1], to + (b * out * height + y) * 4 * width, 4 * height * width, scratch.data()});
    });
}

void bind_upscale(const nb::dict &inputs, const nb::dict &outputs, int threads) {
    require_between("threads", threads, 1, most_of_any);
    Border border;
    by_kind(border, inputs, "x", [&](auto kind) {
        using T = decltype(kind);
        Size batch{"B"}, channels{"C", 0, longest_side}, out{"out", 0, longest_side};
        Size height{"H", 0, longest_side}, width{"W", 0, longest_side};
        Group given(border, inputs, ""), wanted(border, outputs, "outputs.");
        const View x = given.read("x", {batch, channels, height, width}, Layout::strided, false);
        const View weight = given.read("weight", {out, channels, 2, 2}, Layout::contiguous, false);
        const View bias = given.read("bias", {out}, Layout::contiguous, false);
        given.end();
        const View planes = wanted.read("planes", {batch, out, 2 * height.length, 2 * width.length},
                                        Layout::contiguous, true);
        wanted.end();
        product({batch.length, height.length});
        if (batch.length == 0 || out.length == 0 || height.length == 0 || width.length == 0) return;
        const nb::gil_scoped_release unlocked;
        run_upscale<T>(x, weight, bias, threads, planes);
    });
}

}  // namespace
}  // namespace gbpn

void bind_upscale(nb::module_ &module) {
    using namespace nb::literals;
    module.def("upscale", &gbpn::bind_upscale, nb::kw_only(), "inputs"_a, "outputs"_a, "threads"_a);
}

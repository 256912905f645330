// The adjoint of planes grown to twice their resolution: rows over threads, and the Python function.
#include <nanobind/nanobind.h>

#include <vector>

#include "border.h"
#include "doubling.h"
#include "threads.h"

namespace nb = nanobind;

namespace gbpn {
namespace {

template <class T> void run_doubled_adjoint(const View &fine, int threads, const View &result) {
    const int64_t height = result.shape[1], width = result.shape[2];
    const auto row = GBPN_PICK(doubled_adjoint_row<T>);
    parallel(result.shape[0] * height, threads, [&](int64_t piece) {
        const int64_t plane = piece / height, y = piece % height;
        const T *first = static_cast<const T *>(fine.data) + plane * 4 * height * width;
        std::vector<T> scratch(2 * width + 2);
        Doubling<T> d{width, {}, static_cast<T *>(result.data) + piece * width, scratch.data()};
        for (int n = 0; n < 4; ++n) {
            const int64_t at = 2 * y - 1 + n;
            d.fine[n] = first + (at < 0 ? 0 : at < 2 * height ? at : 2 * height - 1) * 2 * width;
        }
        row(d);
    });
}

void bind_adjoint(const nb::dict &inputs, const nb::dict &outputs, int threads) {
    require_between("threads", threads, 1, most_of_any);
    Border border;
    by_kind(border, inputs, "fine", [&](auto kind) {
        using T = decltype(kind);
        Size planes{"N"}, height{"H", 0, longest_side}, width{"W", 0, longest_side};
        Group given(border, inputs, ""), wanted(border, outputs, "outputs.");
        const View result = wanted.read("result", {planes, height, width}, Layout::contiguous, true);
        wanted.end();
        const View fine =
            given.read("fine", {planes, 2 * height.length, 2 * width.length}, Layout::contiguous, false);
        given.end();
        product({planes.length, height.length});
        if (planes.length == 0 || height.length == 0 || width.length == 0) return;
        const nb::gil_scoped_release unlocked;
        run_doubled_adjoint<T>(fine, threads, result);
    });
}

}  // namespace
}  // namespace gbpn

void bind_doubling(nb::module_ &module) {
    using namespace nb::literals;
    module.def("doubled_adjoint", &gbpn::bind_adjoint, nb::kw_only(), "inputs"_a, "outputs"_a,
               "threads"_a);
}

// The transposed convolution of the heads: rows over threads, and the Python function.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "threads.h"
#include "upscale.h"

namespace nb = nanobind;

namespace {

using namespace gbpn;

template <class T>
using Image = nb::ndarray<const T, nb::ndim<4>, nb::device::cpu>;
template <class T>
using Planes = nb::ndarray<T, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
template <class T>
using Weight = nb::ndarray<const T, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
template <class T>
using Bias = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
void upscale(Image<T> x, Weight<T> weight, Bias<T> bias, int threads, Planes<T> planes) {
    nb::gil_scoped_release release;
    const int64_t batch = int64_t(x.shape(0)), height = int64_t(x.shape(2)), width = int64_t(x.shape(3));
    const int channels = int(x.shape(1)), out = int(bias.shape(0));
    const int64_t padded = (width + upscale_columns - 1) / upscale_columns * upscale_columns;
    const auto row = GBPN_PICK(upscale_row<T>);
    parallel(batch * height, threads, [&](int64_t piece) {
        const int64_t b = piece / height, y = piece % height;
        std::vector<T> scratch(channels * padded + 4 * upscale_columns);
        row({channels, out, int(width), padded, weight.data(), bias.data(),
             x.data() + b * x.stride(0) + y * x.stride(2), x.stride(3), x.stride(1),
             planes.data() + (b * out * height + y) * 4 * width, 4 * height * width, scratch.data()});
    });
}

}  // namespace

void bind_upscale(nb::module_ &module) {
    module.def("upscale", &upscale<float>);
    module.def("upscale", &upscale<double>);
}

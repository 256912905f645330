// Neighbourhood attention: windows, order of work over threads, and the Python functions.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <limits>
#include <vector>

#include "attention.h"
#include "threads.h"

namespace nb = nanobind;

namespace {

using namespace gbpn;

constexpr int padding = 16;       // lanes of the widest vector: scores of a pixel fill whole vectors
constexpr int64_t grain = 1 << 15;  // keys read by one thread, below which another one does not pay

template <class T>
using Array = nb::ndarray<const T, nb::ndim<4>, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<4>, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutputTable = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// [B, C, H, W] with the channels of a pixel side by side.
template <class T, class A>
Pixels<T> pixels(const A &array) {
    return {static_cast<T *>(array.data()), array.stride(0), array.stride(2), array.stride(3)};
}

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
template <class T>
struct Call {
    int batches, height, threads;
    AxisTable rows, columns;
    Attention<T> attention;
    std::vector<T> patches;

    Call(const Array<T> &query, const Array<T> &key, const Array<T> &value, const Table<T> &bias, int dilation,
         double scale, int wanted_threads)
        : batches(int(query.shape(0))),
          height(int(query.shape(2))),
          rows(height, kernel_of(bias), dilation),
          columns(int(query.shape(3)), kernel_of(bias), dilation) {
        const int heads = int(bias.shape(0)), keys = rows.window * columns.window;
        attention = {heads,
                     int(query.shape(1)) / heads,
                     kernel_of(bias),
                     int(query.shape(3)),
                     rows.view(),
                     columns.view(),
                     keys,
                     (keys + padding - 1) / padding * padding,
                     T(scale),
                     pixels<const T>(query),
                     pixels<const T>(key),
                     pixels<const T>(value),
                     nullptr};
        patches.assign(patch_size(), -std::numeric_limits<T>::infinity());
        each_bias([&](size_t patch, size_t entry) { patches[patch] = bias.data()[entry]; });
        attention.patches = patches.data();
        const int64_t work = int64_t(batches) * height * attention.width * heads * keys;
        threads = int(std::max<int64_t>(1, std::min<int64_t>(wanted_threads, work / grain)));
    }

    static int kernel_of(const Table<T> &bias) { return int(bias.shape(1) + 1) / 2; }

    size_t patch_size() const {
        return size_t(attention.heads) * attention.kernel * attention.kernel * attention.stride;
    }

    // Calls body(index into the patches, index into the bias table) for every entry that a window can reach.
    template <class Body>
    void each_bias(const Body &body) const {
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
template <class T>
struct Scratch {
    std::vector<int64_t> offsets;
    std::vector<T> values;
    int stride;

    explicit Scratch(int stride) : offsets(3 * stride), values(2 * stride), stride(stride) {}

    AttentionScratch<T> view() {
        int64_t *const at = offsets.data();
        return {at, at + stride, at + 2 * stride, values.data(), values.data() + stride};
    }
};

template <class T>
void forward(Array<T> query, Array<T> key, Array<T> value, Table<T> bias, int dilation, double scale, int threads,
             Output<T> out) {
    nb::gil_scoped_release release;
    const Call<T> call(query, key, value, bias, dilation, scale, threads);
    const Pixels<T> result = pixels<T>(out);
    const auto attend = GBPN_PICK(attend_row<T>);
    parallel(int64_t(call.batches) * call.height, call.threads, [&](int64_t piece) {
        Scratch<T> scratch(call.attention.stride);
        attend(call.attention, scratch.view(), result, int(piece / call.height), int(piece % call.height));
    });
}

// A strip is every dilation-th row; strips that are not neighbours touch different keys and values.
// Longer than a window and a half, so this also holds where the last, shorter strip looks back from the border.
constexpr int strip_windows = 2;

template <class T>
void backward(Array<T> query, Array<T> key, Array<T> value, Table<T> bias, int dilation, double scale, int threads,
              Array<T> grad, Output<T> grad_query, Output<T> grad_key, Output<T> grad_value,
              OutputTable<T> grad_bias) {
    nb::gil_scoped_release release;
    const Call<T> call(query, key, value, bias, dilation, scale, threads);
    const AttentionGradients<T> gradients{pixels<const T>(grad), pixels<T>(grad_query), pixels<T>(grad_key),
                                          pixels<T>(grad_value)};
    const int step = call.rows.dilation, length = strip_windows * call.attention.kernel;
    const int strips = (call.height + step * length - 1) / (step * length);
    const int64_t pieces = int64_t(call.batches) * step * strips;
    std::vector<T> patches(call.patch_size() * pieces);  // one per piece, so that the sum has one order
    const auto attend = GBPN_PICK(attend_row_backward<T>);
    for (int parity = 0; parity < 2; ++parity)
        parallel(pieces, call.threads, [&](int64_t piece) {
            const int strip = int(piece % strips), residue = int(piece / strips % step);
            const int batch = int(piece / strips / step);
            if (strip % 2 != parity) return;
            Scratch<T> scratch(call.attention.stride);
            T *own = patches.data() + piece * call.patch_size();
            for (int i = strip * length; i < (strip + 1) * length && i * step + residue < call.height; ++i)
                attend(call.attention, scratch.view(), gradients, own, batch, i * step + residue);
        });
    T *table = grad_bias.data();
    for (int64_t piece = 0; piece < pieces; ++piece) {
        const T *own = patches.data() + piece * call.patch_size();
        call.each_bias([&](size_t patch, size_t entry) { table[entry] += own[patch]; });
    }
}

}  // namespace

void bind_attention(nb::module_ &module) {
    module.def("attention_forward", &forward<float>);
    module.def("attention_forward", &forward<double>);
    module.def("attention_backward", &backward<float>);
    module.def("attention_backward", &backward<double>);
}

// All maps of the heads at once: rows over threads, and the Python function.
#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "border.h"
#include "head_planes.h"
#include "threads.h"

namespace nb = nanobind;

namespace gbpn {
namespace {

using Row = void (*)(const HeadPlanes &);

// The function for rows of channels, or of pairs of bfloat16; null where this processor has none.
Row row_function(bool pairs) {
    if (!pairs) return GBPN_PICK(head_planes_row);
#if defined(GBPN_X86_LEVELS)
    if (level() == Level::avx512 && __builtin_cpu_supports("avx512bf16"))
        return avx512::head_planes_row_of_pairs;
#endif
    return nullptr;
}

struct HeadInputs {
    View x, weight, bias, fine, fine_weight;
    std::vector<View> add;
};

void run_head_planes(const HeadInputs &in, Row row, int threads, const View &planes) {
    const int64_t batch = in.x.shape[0], height = in.x.shape[1], width = in.x.shape[2];
    const int64_t terms = in.x.shape[3], out = in.bias.shape[0];
    const int64_t fine_terms = in.fine.data ? in.fine.shape[3] : 0;
    const auto *const x = static_cast<const float *>(in.x.data);
    const auto *const fine = static_cast<const float *>(in.fine.data);
    parallel(batch * height, threads, [&](int64_t piece) {
        const int64_t b = piece / height, y = piece % height;
        const std::unique_ptr<float[]> scratch(new float[head_scratch(width, terms, fine_terms)]);
        std::vector<const float *> add;
        for (const View &old : in.add)
            for (int64_t plane = 0; plane < old.shape[1]; ++plane)
                add.push_back(static_cast<const float *>(old.data) + b * old.stride[0] +
                              plane * old.stride[1] + 4 * y * width);
        HeadPlanes h{};
        h.width = int(width), h.out = int(out), h.terms = int(terms), h.fine_terms = int(fine_terms);
        h.weight = static_cast<const float *>(in.weight.data);
        h.fine_weight = static_cast<const float *>(in.fine_weight.data);
        h.bias = static_cast<const float *>(in.bias.data);
        h.x = x + b * in.x.stride[0] + y * in.x.stride[1];
        h.step = in.x.stride[2];
        for (int64_t r = 0; fine_terms && r < 4; ++r) {
            const int64_t at = 2 * y - 1 + r;
            const bool inside = at >= 0 && at < 2 * height;
            h.fine[r] = inside ? fine + b * in.fine.stride[0] + at * in.fine.stride[1] : nullptr;
        }
        h.fine_step = fine_terms ? in.fine.stride[2] : 0;
        h.add = add.empty() ? nullptr : add.data();
        h.planes = static_cast<float *>(planes.data) + (b * out * height + y) * 4 * width;
        h.next_plane = 4 * height * width;
        h.scratch = scratch.get();
        row(h);
    });
}

void bind_head_planes(const nb::dict &inputs, const nb::dict &outputs, bool pairs, int threads) {
    require_between("threads", threads, 1, most_of_any);
    const Row row = row_function(pairs);
    if (!row) refuse("pairs of bfloat16 need a processor with AVX512_BF16: give float32");
    Border border;
    Size batch{"B"}, height{"H", 0, longest_side}, width{"W", 0, longest_side};
    Size terms{"terms", 1, longest_side}, fine_terms{"fine terms", 1, longest_side};
    Size out{"out", 0, longest_side};
    Group given(border, inputs, ""), wanted(border, outputs, "outputs.");
    HeadInputs in;
    in.x = given.read("x", {batch, height, width, terms}, Layout::contiguous, false);
    if (border.kind() != Border::Kind::single) refuse("x must be float32; got float64");
    in.weight = given.read("weight", {out, terms, 2, 2}, Layout::contiguous, false);
    in.bias = given.read("bias", {out}, Layout::contiguous, false);
    const Length rows = 2 * height.length, columns = 2 * width.length;
    if (given.has("fine")) {
        in.fine = given.read("fine", {batch, rows, columns, fine_terms}, Layout::contiguous, false);
        in.fine_weight = given.read("fine_weight", {out, fine_terms, 3, 3}, Layout::contiguous, false);
    }
    int64_t added = 0;
    for (std::string name = "add_0"; given.has(name.c_str()); name = "add_" + std::to_string(in.add.size())) {
        Size count{"planes", 0, out.length - added};
        in.add.push_back(given.read(name, {batch, count, rows, columns}, Layout::planes, false));
        added += count.length;
    }
    given.end();
    if (!in.add.empty() && added != out.length)
        refuse("add_0 and those after it must have " + std::to_string(out.length) + " planes together; got " +
               std::to_string(added));
    const View planes = wanted.read("planes", {batch, out, rows, columns}, Layout::contiguous, true);
    wanted.end();
    product({4, height.length, width.length, out.length, batch.length});
    if (batch.length == 0 || out.length == 0 || height.length == 0 || width.length == 0) return;
    const nb::gil_scoped_release unlocked;
    run_head_planes(in, row, threads, planes);
}

}  // namespace
}  // namespace gbpn

void bind_head_planes(nb::module_ &module) {
    using namespace nb::literals;
    module.def("head_planes", &gbpn::bind_head_planes, nb::kw_only(), "inputs"_a, "outputs"_a, "pairs"_a,
               "threads"_a);
    module.def(
        "has_pairs", [] { return gbpn::row_function(true) != nullptr; },
        "Whether the kernels multiply pairs of bfloat16 on this processor.");
}

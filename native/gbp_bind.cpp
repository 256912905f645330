// Python's door to the inference. Tensors arrive as lists in the order of the structs they fill.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <type_traits>
#include <vector>

#include "gbp_inference.h"

namespace nb = nanobind;
using Tensor = nb::ndarray<nb::device::cpu>;
using Tensors = std::vector<Tensor>;

namespace gbpn {
namespace {

template <class T> Array<T> view(const Tensor &tensor) {
    Array<T> array;
    if (tensor.size() == 0) return array;  // a part that is not there
    if (tensor.dtype() != nb::dtype<std::remove_const_t<T>>())
        throw std::invalid_argument("all tensors must have one dtype, float32 or float64");
    array.data = static_cast<T *>(tensor.data());
    array.rank = static_cast<int>(tensor.ndim());
    if (array.rank < 2 || array.rank > 6) throw std::invalid_argument("a tensor must have 2 to 6 axes");
    for (int axis = 0; axis < array.rank; ++axis) {
        array.shape[axis] = static_cast<int64_t>(tensor.shape(axis));
        array.stride[axis] = tensor.stride(axis);
    }
    const int64_t height = array.shape[array.rank - 2], width = array.shape[array.rank - 1];
    if ((width > 1 && array.stride[array.rank - 1] != 1) || (height > 1 && array.stride[array.rank - 2] != width))
        throw std::invalid_argument("the rows and columns of a tensor must be contiguous");
    return array;
}

// Reads tensors one after the other; all must have the batch, height and width of the first.
struct Reader {
    const Tensors &tensors;
    size_t next = 0;
    int64_t batch = -1, height = -1, width = -1;
    template <class T> void operator()(Array<T> &to) {
        to = view<T>(tensors.at(next++));
        if (!to.data) return;
        const int64_t b = to.shape[0], h = to.shape[to.rank - 2], w = to.shape[to.rank - 1];
        if (batch < 0) batch = b, height = h, width = w;
        if (b != batch || h != height || w != width)
            throw std::invalid_argument("all tensors must have one batch size, height and width");
    }
    template <class T> void operator()(Array<T> (&to)[2]) { (*this)(to[0]), (*this)(to[1]); }
    template <class A, class... Rest> void all(A &first, Rest &...rest) {
        (*this)(first);
        if constexpr (sizeof...(rest) > 0) all(rest...);
    }
};

template <class T> Field<T> read_field(const Tensors &inputs) {
    Field<T> f;
    Reader{inputs}.all(f.unary, f.local, f.far, f.weight, f.difference, f.damping, f.far_weight, f.far_difference,
                       f.far_offset, f.far_damping);
    return f;
}

template <class T>
Plan read_plan(const Field<T> &f, int iterations, int steps, double reweighting, bool checkpoints, int threads) {
    Plan plan{};
    plan.batch = f.unary[0].shape[0], plan.height = f.unary[0].shape[2], plan.width = f.unary[0].shape[3];
    plan.edges = static_cast<int>(f.weight.shape[3]);
    plan.count = f.far_weight ? static_cast<int>(f.far_weight.shape[2]) : 0;
    if (plan.count > max_learned) throw std::invalid_argument("at most 16 learned edges per pixel");
    plan.iterations = iterations, plan.steps = steps, plan.reweighting = reweighting;
    plan.checkpoints = checkpoints, plan.threads = threads;
    return plan;
}

// Calls work(float{}) or work(double{}), without Python's lock.
template <class Work> void by_kind(const Tensor &like, const Work &work) {
    const bool single = like.dtype() == nb::dtype<float>();
    if (!single && like.dtype() != nb::dtype<double>()) throw std::invalid_argument("tensors must be float32 or float64");
    const nb::gil_scoped_release unlocked;
    if (single)
        work(float{});
    else
        work(double{});
}

void bind_infer(const Tensors &inputs, const Tensors &outputs, int iterations, int steps, double reweighting,
                bool checkpoints, int threads) {
    by_kind(inputs.at(0), [&](auto kind) {
        using T = decltype(kind);
        const Field<T> field = read_field<T>(inputs);
        Outcome<T> out;
        Reader{outputs}.all(out.belief, out.local, out.far, out.tape);
        infer(field, read_plan(field, iterations, steps, reweighting, checkpoints, threads), out);
    });
}

void bind_infer_adjoint(const Tensors &inputs, const Tensors &given, const Tensors &gradients, int iterations, int steps,
                        double reweighting, bool checkpoints, int threads) {
    by_kind(inputs.at(0), [&](auto kind) {
        using T = decltype(kind);
        const Field<T> field = read_field<T>(inputs);
        Cotangents<T> c;
        Reader{given}.all(c.belief, c.local, c.far, c.final_local, c.final_far, c.tape);
        Gradients<T> g;
        Reader{gradients}.all(g.unary, g.local, g.far, g.weight, g.difference, g.damping, g.far_weight, g.far_difference,
                              g.far_offset, g.far_damping);
        infer_adjoint(field, read_plan(field, iterations, steps, reweighting, checkpoints, threads), c, g);
    });
}

template <class T> void fill_edges(Edges<T> &edge, int count, int64_t b, const Array<const T> &weight,
                                   const Array<const T> &difference, const Array<const T> &damping) {
    for (int e = 0; e < count; ++e) edge.weight[e] = weight.at(b, e), edge.difference[e] = difference.at(b, e);
    edge.damping = damping.at(b);
}

constexpr int senders[4][3] = {{0, 3, 5}, {0, 1, 2}, {2, 4, 7}, {5, 6, 7}};

// inputs: base pair, weight, difference, damping; messages: the pair to change in place.
void bind_sweep(const Tensors &inputs, const Tensors &messages, int direction, double reweighting) {
    by_kind(inputs.at(0), [&](auto kind) {
        using T = decltype(kind);
        Array<const T> base[2], weight, difference, damping;
        Reader{inputs}.all(base, weight, difference, damping);
        Array<T> slots[2];
        Reader{messages}(slots);
        for (int64_t b = 0; b < base[0].shape[0]; ++b) {
            Sweep<T> s{};
            s.height = base[0].shape[2], s.width = base[0].shape[3];
            s.direction = direction, s.edges = static_cast<int>(weight.shape[1]);
            s.reweighting = static_cast<T>(reweighting);
            fill_edges(s.edge, s.edges, b, weight, difference, damping);
            for (int part = 0; part < 2; ++part) {
                s.base[part] = base[part].at(b);
                for (int m = 0; m < 8; ++m) s.slot[m][part] = slots[part].at(b, m);
            }
            run_sweep(s);
        }
    });
}

// inputs: base pair, old message pair, weight, difference, damping; outputs: message pair after the sweep (becomes
// the old), its cotangent (becomes that of the old), then gradients of base pair, weight, difference, damping.
void bind_sweep_adjoint(const Tensors &inputs, const Tensors &outputs, int direction, double reweighting) {
    by_kind(inputs.at(0), [&](auto kind) {
        using T = decltype(kind);
        Array<const T> base[2], old[2], weight, difference, damping;
        Reader{inputs}.all(base, old, weight, difference, damping);
        Array<T> slots[2], grad_slots[2], grad_base[2], grad_weight, grad_difference, grad_damping;
        Reader{outputs}.all(slots, grad_slots, grad_base, grad_weight, grad_difference, grad_damping);
        for (int64_t b = 0; b < base[0].shape[0]; ++b) {
            SweepAdjoint<T> s{};
            s.height = base[0].shape[2], s.width = base[0].shape[3];
            s.direction = direction, s.edges = static_cast<int>(weight.shape[1]);
            s.reweighting = static_cast<T>(reweighting);
            fill_edges(s.edge, s.edges, b, weight, difference, damping);
            for (int e = 0; e < s.edges; ++e) {
                s.grad_edge.weight[e] = grad_weight.at(b, e), s.grad_edge.difference[e] = grad_difference.at(b, e);
                for (int part = 0; part < 2; ++part)
                    s.saved[e][part] = old[part].at(b, s.edges == 3 ? senders[direction][e] : senders[direction][1]);
            }
            s.grad_edge.damping = grad_damping.at(b);
            for (int part = 0; part < 2; ++part) {
                s.base[part] = base[part].at(b), s.grad_base[part] = grad_base[part].at(b);
                for (int m = 0; m < 8; ++m)
                    s.slot[m][part] = slots[part].at(b, m), s.grad_slot[m][part] = grad_slots[part].at(b, m);
            }
            run_sweep_adjoint(s);
        }
    });
}

template <class T> void fill_learned(LearnedEdges<T> &edge, int count, int64_t b, const Array<const T> &weight,
                                     const Array<const T> &difference, const Array<const T> &offset,
                                     const Array<const T> &damping) {
    for (int k = 0; k < count; ++k) {
        edge.weight[k] = weight.at(b, k), edge.difference[k] = difference.at(b, k);
        for (int axis = 0; axis < 2; ++axis) edge.offset[k][axis] = offset.at(b, k, axis);
    }
    edge.damping = damping.at(b);
}

// inputs: base pair, total pair, weight, difference, offset, damping; outputs: the new total pair.
void bind_nonlocal(const Tensors &inputs, const Tensors &outputs, double reweighting) {
    by_kind(inputs.at(0), [&](auto kind) {
        using T = decltype(kind);
        Array<const T> base[2], total[2], weight, difference, offset, damping;
        Reader{inputs}.all(base, total, weight, difference, offset, damping);
        Array<T> result[2];
        Reader{outputs}(result);
        for (int64_t b = 0; b < base[0].shape[0]; ++b) {
            NonLocal<T> s{};
            s.height = base[0].shape[2], s.width = base[0].shape[3];
            s.count = static_cast<int>(weight.shape[1]), s.reweighting = static_cast<T>(reweighting);
            fill_learned(s.edge, s.count, b, weight, difference, offset, damping);
            for (int part = 0; part < 2; ++part)
                s.base[part] = base[part].at(b), s.total[part] = total[part].at(b), s.result[part] = result[part].at(b);
            run_nonlocal(s);
        }
    });
}

// outputs: cotangent of the result (becomes that of the total), gradients of base pair, weight, difference, offset, damping.
void bind_nonlocal_adjoint(const Tensors &inputs, const Tensors &outputs, double reweighting) {
    by_kind(inputs.at(0), [&](auto kind) {
        using T = decltype(kind);
        Array<const T> base[2], total[2], weight, difference, offset, damping;
        Reader{inputs}.all(base, total, weight, difference, offset, damping);
        Array<T> grad_total[2], grad_base[2], grad_weight, grad_difference, grad_offset, grad_damping;
        Reader{outputs}.all(grad_total, grad_base, grad_weight, grad_difference, grad_offset, grad_damping);
        for (int64_t b = 0; b < base[0].shape[0]; ++b) {
            NonLocalAdjoint<T> s{};
            s.height = base[0].shape[2], s.width = base[0].shape[3];
            s.count = static_cast<int>(weight.shape[1]), s.reweighting = static_cast<T>(reweighting);
            fill_learned(s.edge, s.count, b, weight, difference, offset, damping);
            for (int k = 0; k < s.count; ++k) {
                s.grad_weight[k] = grad_weight.at(b, k), s.grad_difference[k] = grad_difference.at(b, k);
                for (int axis = 0; axis < 2; ++axis) s.grad_offset[k][axis] = grad_offset.at(b, k, axis);
            }
            s.grad_damping = grad_damping.at(b);
            const T *bases[2];
            for (int part = 0; part < 2; ++part) {
                bases[part] = base[part].at(b), s.total[part] = total[part].at(b);
                s.grad_total[part] = grad_total[part].at(b), s.grad_base[part] = grad_base[part].at(b);
            }
            run_nonlocal_adjoint(s, bases);
        }
    });
}

nb::tuple bind_scan(const Tensor &values) {
    Range range{};
    by_kind(values, [&](auto kind) {
        using T = decltype(kind);
        range = scan_values(static_cast<const T *>(values.data()), static_cast<int64_t>(values.size()));
    });
    return nb::make_tuple(range.low, range.high, range.not_finite);
}

}  // namespace
}  // namespace gbpn

void bind_gbp(nb::module_ &module) {
    using namespace nb::literals;
    module.def("gbp_infer", &gbpn::bind_infer, "inputs"_a, "outputs"_a, "iterations"_a, "steps"_a, "reweighting"_a,
               "checkpoints"_a, "threads"_a);
    module.def("gbp_infer_adjoint", &gbpn::bind_infer_adjoint, "inputs"_a, "given"_a, "gradients"_a, "iterations"_a,
               "steps"_a, "reweighting"_a, "checkpoints"_a, "threads"_a);
    module.def("gbp_sweep", &gbpn::bind_sweep, "inputs"_a, "messages"_a, "direction"_a, "reweighting"_a);
    module.def("gbp_sweep_adjoint", &gbpn::bind_sweep_adjoint, "inputs"_a, "outputs"_a, "direction"_a, "reweighting"_a);
    module.def("gbp_nonlocal", &gbpn::bind_nonlocal, "inputs"_a, "outputs"_a, "reweighting"_a);
    module.def("gbp_nonlocal_adjoint", &gbpn::bind_nonlocal_adjoint, "inputs"_a, "outputs"_a, "reweighting"_a);
    module.def("scan", &gbpn::bind_scan, "values"_a, "Smallest, largest, and number of not finite values of a contiguous tensor.");
}

// Python's door to the inference: the tensors of each operator by name, their shapes, and what the kernels
// make of them.
#include <nanobind/nanobind.h>

#include "border.h"
#include "gbp_tensors.h"

namespace nb = nanobind;

namespace gbpn {
namespace {

// The tape is read and written plane after plane, so it has no gaps.
template <class T> void read_tape(Array<T> &tape, Named &group, Sizes &s, const Plan &plan) {
    const int64_t planes = tape_planes(plan.edges, plan.learned, plan.steps, plan.checkpoints);
    tape = Array<T>(group.read("tape", {s.batch, plan.iterations, planes, s.height, s.width},
                               Layout::contiguous, !std::is_const_v<T>));
}

void bind_infer(const nb::dict &field, const nb::dict &outcome, int iterations, int steps, double reweighting,
                bool checkpoints, int threads) {
    const Order order{iterations, steps, reweighting, checkpoints, threads};
    order.check();
    Border border;
    by_kind(border, field, "unary_information", [&](auto kind) {
        using T = decltype(kind);
        Sizes s;
        Times time(iterations);
        Group given(border, field, ""), wanted(border, outcome, "outcome.");
        const bool learned = has_learned(given);
        Field<T> f;
        read_field(f, given, s, time, learned);
        const Plan plan = order.plan<T>(s, learned);
        Outcome<T> out;
        wanted.read(out.belief, "belief", {s.batch, 1, s.height, s.width});
        read_messages(out.local, out.far, wanted, s);
        if (wanted.has("tape")) read_tape(out.tape, wanted, s, plan);
        wanted.end();
        if (s.nothing()) return;
        const nb::gil_scoped_release unlocked;
        infer(f, plan, out);
    });
}

void bind_infer_adjoint(const nb::dict &field, const nb::dict &outcome, const nb::dict &cotangents,
                        const nb::dict &gradients, int iterations, int steps, double reweighting,
                        bool checkpoints, int threads) {
    const Order order{iterations, steps, reweighting, checkpoints, threads};
    order.check();
    Border border;
    by_kind(border, field, "unary_information", [&](auto kind) {
        using T = decltype(kind);
        Sizes s;
        Times time(iterations);
        Group given(border, field, ""), before(border, outcome, "outcome.");
        Group along(border, cotangents, "cotangents."), wanted(border, gradients, "gradients.");
        const bool learned = has_learned(given);
        Field<T> f;
        read_field(f, given, s, time, learned);
        const Plan plan = order.plan<T>(s, learned);
        Cotangents<T> c;
        read_messages(c.final_local, c.final_far, before, s);
        read_tape(c.tape, before, s, plan);
        before.end();
        along.read(c.belief, "belief", {s.batch, 1, s.height, s.width});
        read_messages(c.local, c.far, along, s);
        along.end();
        Gradients<T> g;
        read_field(g, wanted, s, time, learned);
        if (s.nothing()) return;
        const nb::gil_scoped_release unlocked;
        infer_adjoint(f, plan, c, g);
    });
}

// Edges of one sweep, or their gradients.
template <class Tensors> void read_edges(Tensors &to, Group &group, Sizes &s) {
    group.read(to.base, "base", {s.batch, 1, s.height, s.width});
    group.read(to.weight, "weight", {s.batch, s.edges, s.height, s.width});
    group.read(to.difference, "difference", {s.batch, s.edges, s.height, s.width});
    group.read(to.damping, "damping", {s.batch, 1, s.height, s.width});
}

template <class T> struct SweepTensors { Array<T> base[2], weight, difference, damping; };

template <class T> void fill_edges(Edges<T> &edge, int count, int64_t b, const SweepTensors<const T> &from) {
    for (int e = 0; e < count; ++e)
        edge.weight[e] = from.weight.at(b, e), edge.difference[e] = from.difference.at(b, e);
    edge.damping = from.damping.at(b);
}

void bind_sweep(const nb::dict &inputs, const nb::dict &messages, int direction, double reweighting,
                bool always) {
    require_between("direction", direction, 0, 3);
    Border border;
    by_kind(border, inputs, "base_information", [&](auto kind) {
        using T = decltype(kind);
        const T rho = reweighting_of<T>(reweighting);
        Sizes size;
        Group given(border, inputs, ""), changed(border, messages, "messages.");
        SweepTensors<const T> in;
        read_edges(in, given, size);
        given.end();
        Array<T> slots[2];
        changed.read(slots, "", {size.batch, message_slots, size.height, size.width});
        changed.end();
        if (size.nothing()) return;
        const nb::gil_scoped_release unlocked;
        for (int64_t b = 0; b < size.batch.length; ++b) {
            Sweep<T> s{};
            s.height = size.height.length, s.width = size.width.length;
            s.direction = direction, s.edges = int(size.edges.length), s.reweighting = rho;
            s.always = always;
            fill_edges(s.edge, s.edges, b, in);
            for (int part = 0; part < 2; ++part) {
                s.base[part] = in.base[part].at(b);
                for (int m = 0; m < message_slots; ++m) s.slot[m][part] = slots[part].at(b, m);
            }
            run_sweep(s);
        }
    });
}

// `after`: messages after the sweep, become those before; `cotangents`: theirs, become those of the messages
// before.
void bind_sweep_adjoint(const nb::dict &inputs, const nb::dict &after, const nb::dict &cotangents,
                        const nb::dict &gradients, int direction, double reweighting, bool always) {
    require_between("direction", direction, 0, 3);
    Border border;
    by_kind(border, inputs, "base_information", [&](auto kind) {
        using T = decltype(kind);
        const T rho = reweighting_of<T>(reweighting);
        Sizes size;
        Group given(border, inputs, ""), changed(border, after, "after.");
        Group along(border, cotangents, "cotangents."), wanted(border, gradients, "gradients.");
        SweepTensors<const T> in;
        Array<const T> old[2];
        read_edges(in, given, size);
        given.read(old, "", {size.batch, message_slots, size.height, size.width});
        given.end();
        Array<T> slots[2], grad_slots[2];
        changed.read(slots, "", {size.batch, message_slots, size.height, size.width});
        changed.end();
        along.read(grad_slots, "", {size.batch, message_slots, size.height, size.width});
        along.end();
        SweepTensors<T> grad;
        read_edges(grad, wanted, size);
        wanted.end();
        if (size.nothing()) return;
        const nb::gil_scoped_release unlocked;
        for (int64_t b = 0; b < size.batch.length; ++b) {
            SweepAdjoint<T> s{};
            s.height = size.height.length, s.width = size.width.length;
            s.direction = direction, s.edges = int(size.edges.length), s.reweighting = rho;
            s.always = always;
            fill_edges(s.edge, s.edges, b, in);
            for (int e = 0; e < s.edges; ++e) {
                s.grad_edge.weight[e] = grad.weight.at(b, e),
                s.grad_edge.difference[e] = grad.difference.at(b, e);
                for (int part = 0; part < 2; ++part)
                    s.saved[e][part] = old[part].at(b, slot_of(direction, s.edges, e));
            }
            s.grad_edge.damping = grad.damping.at(b);
            for (int part = 0; part < 2; ++part) {
                s.base[part] = in.base[part].at(b), s.grad_base[part] = grad.base[part].at(b);
                for (int m = 0; m < message_slots; ++m)
                    s.slot[m][part] = slots[part].at(b, m), s.grad_slot[m][part] = grad_slots[part].at(b, m);
            }
            run_sweep_adjoint(s);
        }
    });
}

template <class T> struct StepTensors { Array<T> base[2], weight, difference, offset, damping; };

// Learned edges of one step, or their gradients.
template <class Tensors> void read_learned(Tensors &to, Group &group, Sizes &s) {
    group.read(to.base, "base", {s.batch, 1, s.height, s.width});
    group.read(to.weight, "weight", {s.batch, s.learned, s.height, s.width});
    group.read(to.difference, "difference", {s.batch, s.learned, s.height, s.width});
    group.read(to.offset, "offset", {s.batch, s.learned, 2, s.height, s.width});
    group.read(to.damping, "damping", {s.batch, 1, s.height, s.width});
}

template <class T>
void fill_learned(LearnedEdges<T> &edge, int count, int64_t b, const StepTensors<const T> &from) {
    for (int k = 0; k < count; ++k) {
        edge.weight[k] = from.weight.at(b, k), edge.difference[k] = from.difference.at(b, k);
        for (int axis = 0; axis < 2; ++axis) edge.offset[k][axis] = from.offset.at(b, k, axis);
    }
    edge.damping = from.damping.at(b);
}

void bind_nonlocal_step(const nb::dict &inputs, const nb::dict &result, double reweighting, int threads) {
    require_between("threads", threads, 1, most_of_any);
    Border border;
    by_kind(border, inputs, "base_information", [&](auto kind) {
        using T = decltype(kind);
        const T rho = reweighting_of<T>(reweighting);
        Sizes size;
        Group given(border, inputs, ""), wanted(border, result, "result.");
        StepTensors<const T> in;
        Array<const T> total[2];
        read_learned(in, given, size);
        given.read(total, "", {size.batch, 1, size.height, size.width});
        given.end();
        size.check_pixels();
        Array<T> out[2];
        wanted.read(out, "", {size.batch, 1, size.height, size.width});
        wanted.end();
        if (size.nothing()) return;
        const nb::gil_scoped_release unlocked;
        for (int64_t b = 0; b < size.batch.length; ++b) {
            NonLocal<T> s{};
            s.height = size.height.length, s.width = size.width.length;
            s.count = int(size.learned.length), s.reweighting = rho;
            fill_learned(s.edge, s.count, b, in);
            for (int part = 0; part < 2; ++part)
                s.base[part] = in.base[part].at(b), s.total[part] = total[part].at(b),
                s.result[part] = out[part].at(b);
            run_nonlocal(s, threads);
        }
    });
}

// `cotangents`: those of the result, become those of the total before the step.
void bind_nonlocal_step_adjoint(const nb::dict &inputs, const nb::dict &cotangents, const nb::dict &gradients,
                                double reweighting) {
    Border border;
    by_kind(border, inputs, "base_information", [&](auto kind) {
        using T = decltype(kind);
        const T rho = reweighting_of<T>(reweighting);
        Sizes size;
        Group given(border, inputs, ""), along(border, cotangents, "cotangents.");
        Group wanted(border, gradients, "gradients.");
        StepTensors<const T> in;
        Array<const T> total[2];
        read_learned(in, given, size);
        given.read(total, "", {size.batch, 1, size.height, size.width});
        given.end();
        size.check_pixels();
        Array<T> grad_total[2];
        along.read(grad_total, "", {size.batch, 1, size.height, size.width});
        along.end();
        StepTensors<T> grad;
        read_learned(grad, wanted, size);
        wanted.end();
        if (size.nothing()) return;
        const nb::gil_scoped_release unlocked;
        for (int64_t b = 0; b < size.batch.length; ++b) {
            NonLocalAdjoint<T> s{};
            s.height = size.height.length, s.width = size.width.length;
            s.count = int(size.learned.length), s.reweighting = rho;
            fill_learned(s.edge, s.count, b, in);
            for (int k = 0; k < s.count; ++k) {
                s.grad_weight[k] = grad.weight.at(b, k), s.grad_difference[k] = grad.difference.at(b, k);
                for (int axis = 0; axis < 2; ++axis) s.grad_offset[k][axis] = grad.offset.at(b, k, axis);
            }
            s.grad_damping = grad.damping.at(b);
            const T *bases[2];
            for (int part = 0; part < 2; ++part) {
                bases[part] = in.base[part].at(b), s.total[part] = total[part].at(b);
                s.grad_total[part] = grad_total[part].at(b), s.grad_base[part] = grad.base[part].at(b);
            }
            run_nonlocal_adjoint(s, bases);
        }
    });
}

nb::tuple bind_scan(const nb::object &values) {
    Border border;
    const View view = border.read_values(values, "values");
    Range range{};
    {
        const nb::gil_scoped_release unlocked;
        range = border.kind() == Border::Kind::single
                    ? scan_values(static_cast<const float *>(view.data), view.shape[0])
                    : scan_values(static_cast<const double *>(view.data), view.shape[0]);
    }
    return nb::make_tuple(range.low, range.high, range.not_finite);
}

int64_t bind_tape_planes(int edges, bool learned, int steps, bool checkpoints) {
    return tape_planes(edges, learned, steps, checkpoints);
}

nb::tuple sender_table() {
    nb::list rows;
    for (const auto &slots : senders) rows.append(nb::make_tuple(slots[0], slots[1], slots[2]));
    return nb::tuple(rows);
}

}  // namespace
}  // namespace gbpn

void bind_gbp(nb::module_ &module) {
    using namespace nb::literals;
    module.attr("SENDERS") = gbpn::sender_table();
    module.attr("MESSAGE_SLOTS") = gbpn::message_slots;
    module.attr("MOST_LEARNED_EDGES") = gbpn::max_learned;
    module.def("tape_planes", &gbpn::bind_tape_planes, nb::kw_only(), "edges"_a, "learned"_a, "steps"_a,
               "checkpoints"_a, "Planes [H, W] of tape for one iteration.");
    module.def("gbp_infer", &gbpn::bind_infer, nb::kw_only(), "field"_a, "outcome"_a, "iterations"_a,
               "steps"_a, "reweighting"_a, "checkpoints"_a, "threads"_a);
    module.def("gbp_infer_adjoint", &gbpn::bind_infer_adjoint, nb::kw_only(), "field"_a, "outcome"_a,
               "cotangents"_a, "gradients"_a, "iterations"_a, "steps"_a, "reweighting"_a, "checkpoints"_a,
               "threads"_a);
    module.def("gbp_sweep", &gbpn::bind_sweep, nb::kw_only(), "inputs"_a, "messages"_a, "direction"_a,
               "reweighting"_a, "always"_a = false);
    module.def("gbp_sweep_adjoint", &gbpn::bind_sweep_adjoint, nb::kw_only(), "inputs"_a, "after"_a,
               "cotangents"_a, "gradients"_a, "direction"_a, "reweighting"_a, "always"_a = false);
    module.def("gbp_nonlocal_step", &gbpn::bind_nonlocal_step, nb::kw_only(), "inputs"_a, "result"_a,
               "reweighting"_a, "threads"_a);
    module.def("gbp_nonlocal_step_adjoint", &gbpn::bind_nonlocal_step_adjoint, nb::kw_only(), "inputs"_a,
               "cotangents"_a, "gradients"_a, "reweighting"_a);
    module.def("scan", &gbpn::bind_scan, "values"_a.none(),
               "Smallest, largest, and number of not finite values of a contiguous tensor.");
}

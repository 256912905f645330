// The tensors of an inference: their names, their shapes, and the numbers that go with them. Python and C
// read them here.
#pragma once

#include <string>

#include "gbp_inference.h"
#include "guard.h"

namespace gbpn {

// Lengths that the tensors of a call have in common.
struct Sizes {
    Size batch{"B"}, height{"H", 0, longest_side}, width{"W", 0, longest_side};
    Size edges{"E", 3, 3, true}, learned{"K", 0, max_learned};

    bool nothing() const { return batch.length == 0 || height.length == 0 || width.length == 0; }
    // Corners of learned edges are counted in 32 bits.
    void check_pixels() const {
        if (product({height.length + 2, width.length + 2}) > most_of_any)
            refuse("learned edges want an image of less than 2³¹ pixels; got H=" +
                   std::to_string(height.length) + ", W=" + std::to_string(width.length));
    }
};

// Lengths of the iteration axes: each parameter has one set for all iterations, or its own for each.
struct Times {
    Size weight, difference, damping, far_weight, far_difference, far_offset, far_damping;

    explicit Times(int iterations)
        : weight{"T", iterations, most_of_any, true},
          difference(weight),
          damping(weight),
          far_weight(weight),
          far_difference(weight),
          far_offset(weight),
          far_damping(weight) {}
};

constexpr const char *learned_names[] = {"nonlocal_weight", "nonlocal_difference", "nonlocal_offset",
                                         "nonlocal_damping"};

inline bool has_learned(const Named &group) {
    bool any = false;
    for (const char *name : learned_names) any |= group.has(name);
    return any;
}

// The 13 tensors of a field, or their gradients.
template <class Tensors> void read_field(Tensors &to, Named &group, Sizes &s, Times &time, bool learned) {
    group.read(to.unary, "unary", {s.batch, 1, s.height, s.width});
    group.read(to.local, "messages_local", {s.batch, message_slots, s.height, s.width});
    group.read(to.far, "messages_nonlocal", {s.batch, 1, s.height, s.width});
    group.read(to.weight, "local_weight", {s.batch, time.weight, 4, s.edges, s.height, s.width});
    group.read(to.difference, "local_difference", {s.batch, time.difference, 4, s.edges, s.height, s.width});
    group.read(to.damping, "local_damping", {s.batch, time.damping, s.height, s.width});
    if (learned) {
        group.read(to.far_weight, learned_names[0], {s.batch, time.far_weight, s.learned, s.height, s.width});
        group.read(to.far_difference, learned_names[1],
                   {s.batch, time.far_difference, s.learned, s.height, s.width});
        group.read(to.far_offset, learned_names[2],
                   {s.batch, time.far_offset, s.learned, 2, s.height, s.width});
        group.read(to.far_damping, learned_names[3], {s.batch, time.far_damping, s.height, s.width});
    }
    group.end();
}

struct Order {
    int iterations, steps;
    double reweighting;
    bool checkpoints;
    int threads;

    void check() const {
        require_between("iterations", iterations, 0, most_of_any);
        require_between("steps", steps, 0, most_of_any);
        require_between("threads", threads, 1, most_of_any);
    }

    template <class T> Plan plan(const Sizes &s, bool learned) const {
        reweighting_of<T>(reweighting);
        Plan plan{};
        plan.batch = s.batch.length, plan.height = s.height.length, plan.width = s.width.length;
        plan.edges = int(s.edges.length), plan.count = learned ? int(s.learned.length) : 0,
        plan.learned = learned;
        plan.iterations = iterations, plan.steps = steps, plan.reweighting = reweighting;
        plan.checkpoints = checkpoints, plan.threads = threads;
        if (learned) s.check_pixels();
        product({2 * plan.overwritten() + 128, plan.height + 2, plan.width + 2, int64_t(sizeof(T))});
        return plan;
    }
};

template <class T> void read_messages(Array<T> (&local)[2], Array<T> (&far)[2], Named &group, Sizes &s) {
    group.read(local, "messages_local", {s.batch, message_slots, s.height, s.width});
    group.read(far, "messages_nonlocal", {s.batch, 1, s.height, s.width});
}

}  // namespace gbpn

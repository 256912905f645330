// Whole inferences over a batch: the order of sweeps and steps, the tape, and threads.
#pragma once

#include <cstdint>

#include "array.h"
#include "gbp.h"

namespace gbpn {

// What an inference reads. Pairs are (information, precision).
template <class T> struct Field {
    Array<const T> unary[2];                     // [B, 1, H, W]
    Array<const T> local[2], far[2];             // [B, 8, H, W], [B, 1, H, W]
    Array<const T> weight, difference, damping;  // [B, T, 4, E, H, W] twice, [B, T, H, W]
    Array<const T> far_weight, far_difference, far_offset, far_damping;  // [B, T, K, (2,) H, W], [B, T, H, W]
};

// The tape of one iteration, in planes [H, W]: what its four sweeps and its steps overwrote, in their order,
// E pairs by sweep and one pair by step; or, with checkpoints, the messages before it, one pair by slot and
// the far pair last. gbpn.gbp.operators.tape_planes says the same to Python.
inline int64_t overwritten_planes(int64_t edges, bool learned, int64_t steps) {
    return 4 * 2 * edges + (learned ? 2 * steps : 0);
}
inline int64_t tape_planes(int64_t edges, bool learned, int64_t steps, bool checkpoints) {
    return checkpoints ? 2 * (message_slots + 1) : overwritten_planes(edges, learned, steps);
}

struct Plan {
    int64_t batch, height, width;
    int edges, count;  // E, K
    bool learned;      // are there learned edges?
    int iterations, steps;
    double reweighting;
    bool checkpoints;  // the tape holds messages before each iteration instead of what each sweep overwrote
    int threads;

    int64_t pixels() const { return height * width; }
    int64_t overwritten() const { return overwritten_planes(edges, learned, steps); }
};

template <class T> struct Outcome {
    Array<T> belief[2], local[2], far[2];
    Array<T> tape;  // [B, T, P, H, W]; null when no gradient is wanted
};

template <class T> struct Cotangents {
    Array<const T> belief[2], local[2], far[2];
    Array<const T> final_local[2], final_far[2], tape;  // from the forward pass
};

template <class T> struct Gradients {
    Array<T> unary[2], local[2], far[2], weight, difference, damping;
    Array<T> far_weight, far_difference, far_offset, far_damping;
};

template <class T> void infer(const Field<T> &, const Plan &, const Outcome<T> &);
template <class T>
void infer_adjoint(const Field<T> &, const Plan &, const Cotangents<T> &, const Gradients<T> &);

// Single steps, for one image each.
template <class T> void run_sweep(Sweep<T>);
template <class T> void run_sweep_adjoint(SweepAdjoint<T>);
template <class T> void run_nonlocal(NonLocal<T>, int threads);
template <class T> void run_nonlocal_adjoint(NonLocalAdjoint<T>, const T *const base[2]);

template <class T> Range scan_values(const T *values, int64_t count);

}  // namespace gbpn

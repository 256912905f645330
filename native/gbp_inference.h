// Whole inferences over a batch: the order of sweeps and steps, the tape, and threads.
#pragma once

#include <cstdint>

#include "gbp.h"

namespace gbpn {

// A tensor whose last two axes are contiguous rows and columns.
template <class T> struct Array {
    T *data = nullptr;
    int rank = 0;
    int64_t shape[6] = {}, stride[6] = {};

    template <class... Index> T *at(Index... index) const {
        const int64_t indices[] = {static_cast<int64_t>(index)...};
        T *plane = data;
        for (int axis = 0; axis < static_cast<int>(sizeof...(index)); ++axis)
            plane += stride[axis] * (shape[axis] > 1 ? indices[axis] : 0);  // an axis of length 1 is shared
        return plane;
    }
    explicit operator bool() const { return data != nullptr; }
};

// What an inference reads. Pairs are (information, precision).
template <class T> struct Field {
    Array<const T> unary[2];                    // [B, 1, H, W]
    Array<const T> local[2], far[2];            // [B, 8, H, W], [B, 1, H, W]
    Array<const T> weight, difference, damping;  // [B, T, 4, E, H, W] twice, [B, T, H, W]
    Array<const T> far_weight, far_difference, far_offset, far_damping;  // [B, T, K, (2,) H, W], [B, T, H, W]
};

struct Plan {
    int64_t batch, height, width;
    int edges, count;  // E, K (0: no learned edges)
    int iterations, steps;
    double reweighting;
    bool checkpoints;  // the tape holds messages before each iteration instead of what each sweep overwrote
    int threads;

    int64_t pixels() const { return height * width; }
    // Planes of tape for one iteration.
    int64_t overwritten() const { return 8 * edges + (count ? 2 * steps : 0); }
    int64_t tape_planes() const { return checkpoints ? 18 : overwritten(); }
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
template <class T> void infer_adjoint(const Field<T> &, const Plan &, const Cotangents<T> &, const Gradients<T> &);

// Single steps, for one image each.
template <class T> void run_sweep(Sweep<T>);
template <class T> void run_sweep_adjoint(SweepAdjoint<T>);
template <class T> void run_nonlocal(NonLocal<T>);
template <class T> void run_nonlocal_adjoint(NonLocalAdjoint<T>, const T *const base[2]);

template <class T> Range scan_values(const T *values, int64_t count);

}  // namespace gbpn

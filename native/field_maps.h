// Rows of the maps that a field is made of: what the kernels of every instruction set get. float32 only.
#pragma once

#include <cstdint>

#include "simd.h"

namespace gbpn {

// One row of a small map enlarged `factor` times, bilinearly between the centres of its pixels.
struct Enlarge {
    const float *upper, *lower;  // rows of the small map
    int64_t step;                // elements from one pixel of it to the next
    float down;                  // share of the lower row
    int width;                   // of the small map
    int factor;                  // 2, 4 or 8
    float *scratch;              // width
    float *to;                   // width · factor
};

// All rows have `n` elements; `to` may be one of the inputs.
#define GBPN_DECLARE(LEVEL)                                                                                \
    namespace LEVEL {                                                                                      \
    void enlarge_row(const Enlarge &);                                                                     \
    /* a · b */                                                                                            \
    void times_row(const float *a, const float *b, float *to, int64_t n);                                  \
    /* a + b · c */                                                                                        \
    void add_times_row(const float *a, const float *b, const float *c, float *to, int64_t n);              \
    /* a · exp(b) */                                                                                       \
    void times_exp_row(const float *a, const float *b, float *to, int64_t n);                              \
    /* sigmoid(logit(damping) + change) */                                                                 \
    void redamp_row(const float *damping, const float *change, float *to, int64_t n);                      \
    /* step / (1 + |step| / largest), step = there − here */                                               \
    void squeeze_row(const float *there, const float *here, float largest, float *to, int64_t n);          \
    /* (softplus(x) + least) · unit */                                                                     \
    void precision_row(const float *x, float least, float unit, float *to, int64_t n);                     \
    void sigmoid_row(const float *x, float *to, int64_t n);                                                \
    /* −log(faintest + (1 − faintest) · exp(−distance / unlike)) of two colours, three planes each */      \
    void lost_row(const float *const here[3], const float *const there[3], float faintest, float unlike,   \
                  float *to, int64_t n);                                                                   \
    /* weight · exp(−contrast · softplus(x) · lost) */                                                     \
    void keep_row(const float *weight, const float *x, const float *lost, float contrast, float *to,       \
                  int64_t n);                                                                              \
    /* Of a belief in log units: metres · exp(mean) or NaN, and log(precision) + residual */               \
    void belief_out_row(const float *information, const float *precision, const float *residual,           \
                        float metres, float *mean, float *logit, int64_t n);                               \
    /* exp(its mean + shift), with mean 0 where nothing is known; sigmoid of that logit */                 \
    void belief_seen_row(const float *information, const float *precision, const float *residual,          \
                         float shift, float *depth, float *confidence, int64_t n);                         \
    /* exp(measurement + shift) where weight > 0, else 0 */                                                \
    void measured_row(const float *measurement, const float *weight, float shift, float *to, int64_t n);   \
    /* 1 where measured > 0; off / (half + |off|), off = measured / depth − 1 there and 0 elsewhere */     \
    void off_row(const float *measured, const float *depth, float half, float *there, float *to,           \
                 int64_t n);                                                                               \
    /* step / (half + |step|), step = there / here − 1 */                                                  \
    void steep_row(const float *there, const float *here, float half, float *to, int64_t n);               \
    }
GBPN_FOR_LEVELS(GBPN_DECLARE)
#undef GBPN_DECLARE

}  // namespace gbpn

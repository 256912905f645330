// Rows of the maps that a field is made of, several steps of arithmetic in one pass.
#include "field_maps.h"

namespace gbpn::GBPN_LEVEL {
namespace {

typedef Pack<float> V;
typedef typename PackOf<int32_t, lanes<float>>::type I;

GBPN_INLINE V all(float value) { return V{} + value; }
// Of two; a first one that is no number stays.
GBPN_INLINE V larger(V a, V b) { return b > a ? b : a; }
GBPN_INLINE V smaller(V a, V b) { return b < a ? b : a; }
GBPN_INLINE V size_of(V a) { return larger(a, -a); }

GBPN_INLINE V root(V square) {
    alignas(64) float each[lanes<float>];
    store(each, square);
    for (int lane = 0; lane < lanes<float>; ++lane) each[lane] = __builtin_sqrtf(each[lane]);
    return load<V>(each);
}

GBPN_INLINE I bits(V v) {
    I i;
    __builtin_memcpy(&i, &v, sizeof(i));
    return i;
}

GBPN_INLINE V number(I i) {
    V v;
    __builtin_memcpy(&v, &i, sizeof(v));
    return v;
}

// To 2 units in the last place; from −87 down it stays at the smallest normal number.
GBPN_INLINE V exponential(V x) {
    x = smaller(larger(x, all(-87.0f)), all(88.0f));
    const float shift = 12582912.0f;  // 1.5 · 2²³: what is added to it is rounded to a whole number
    const V n = (x * 1.44269504f + shift) - shift;
    const V r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    V p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * number((__builtin_convertvector(n, I) + 127) << 23);
}

// Of normal numbers above 0, to 2 units in the last place.
GBPN_INLINE V logarithm(V x) {
    // the mantissa in [√½, √2): 0x3f3504f3 is √½
    const I above = bits(x) - 0x3f3504f3;
    const I exponent = above >> 23;
    const V m = number((above & 0x007fffff) + 0x3f3504f3) - 1.0f;
    const V e = __builtin_convertvector(exponent, V), z = m * m;
    V p = all(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    return (m * z * p + e * -2.12194440e-4f - 0.5f * z) + m + e * 0.693359375f;
}

// log(1 + exp(x)), with all digits also where exp(x) vanishes beside 1.
GBPN_INLINE V softplus(V x) {
    const V small = exponential(-size_of(x)), one = 1.0f + small, rest = one - 1.0f;
    const V rounded = logarithm(one) * small / larger(rest, all(FLT_MIN));
    return larger(x, V{}) + where_positive(rest, rounded, small);
}

// information / precision, `otherwise` where nothing is known.
GBPN_INLINE V mean_of(V information, V precision, V otherwise) {
    const V safe = where_positive(precision, precision, all(1.0f));
    return where_positive(precision, information / safe, otherwise);
}

// What is not finite stays so.
GBPN_INLINE V confidence_logit(V precision, V residual) {
    return logarithm(larger(precision, all(1e-9f))) + residual + (precision - precision);
}

// Calls step(i, load, store) for packs of a row; the last one is a copy with ones behind the row.
template <class Step> GBPN_INLINE void packs(int64_t n, const Step &step) {
    int64_t i = 0;
    for (; i + lanes<float> <= n; i += lanes<float>)
        step([i](const float *from) { return load<V>(from + i); },
             [i](float *to, V value) { store(to + i, value); });
    if (i == n) return;
    step(
        [i, n](const float *from) {
            V part = all(1.0f);
            for (int64_t k = i; k < n; ++k) part[k - i] = from[k];
            return part;
        },
        [i, n](float *to, V value) {
            for (int64_t k = i; k < n; ++k) to[k] = value[k - i];
        });
}

template <int Factor> void enlarge(const Enlarge &e) {
    for (int x = 0; x < e.width; ++x) {
        const float upper = e.upper[x * e.step], lower = e.lower[x * e.step];
        e.scratch[x] = upper * (1 - e.down) + lower * e.down;
    }
    const float *row = e.scratch;
    constexpr int half = Factor / 2;
    for (int k = 0; k < half; ++k) e.to[k] = row[0];
    for (int x = 0; x + 1 < e.width; ++x)
        for (int k = 0; k < Factor; ++k) {
            const float right = (k + 0.5f) / Factor;
            e.to[half + x * Factor + k] = row[x] * (1 - right) + row[x + 1] * right;
        }
    for (int k = 0; k < half; ++k) e.to[e.width * Factor - half + k] = row[e.width - 1];
}

}  // namespace

void enlarge_row(const Enlarge &e) {
    if (e.factor == 2)
        enlarge<2>(e);
    else if (e.factor == 4)
        enlarge<4>(e);
    else
        enlarge<8>(e);
}

void times_row(const float *a, const float *b, float *to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = a[i] * b[i];
}

void add_times_row(const float *a, const float *b, const float *c, float *to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = a[i] + b[i] * c[i];
}

void times_exp_row(const float *a, const float *b, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) { put(to, take(a) * exponential(take(b))); });
}

void redamp_row(const float *damping, const float *change, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) {
        const V kept = take(damping), odds = exponential(take(change));
        put(to, kept * odds / (1.0f - kept + kept * odds));
    });
}

void squeeze_row(const float *there, const float *here, float largest, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) {
        const V step = take(there) - take(here);
        put(to, step / (1.0f + size_of(step) / largest));
    });
}

void precision_row(const float *x, float least, float unit, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) { put(to, (softplus(take(x)) + least) * unit); });
}

void sigmoid_row(const float *x, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) { put(to, 1.0f / (1.0f + exponential(-take(x)))); });
}

void lost_row(const float *const here[3], const float *const there[3], float faintest, float unlike,
              float *to, int64_t n) {
    packs(n, [&](auto take, auto put) {
        V square{};
        for (int c = 0; c < 3; ++c) {
            const V off = take(here[c]) - take(there[c]);
            square += off * off;
        }
        put(to, -logarithm(faintest + (1 - faintest) * exponential(root(square) / -unlike)));
    });
}

void keep_row(const float *weight, const float *x, const float *lost, float contrast, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) {
        put(to, take(weight) * exponential(-contrast * softplus(take(x)) * take(lost)));
    });
}

void belief_out_row(const float *information, const float *precision, const float *residual, float metres,
                    float *mean, float *logit, int64_t n) {
    packs(n, [&](auto take, auto put) {
        const V known = take(precision);
        const V depth = exponential(mean_of(take(information), known, V{})) * metres;
        put(mean, where_positive(known, depth, all(__builtin_nanf(""))));
        put(logit, confidence_logit(known, take(residual)));
    });
}

void belief_seen_row(const float *information, const float *precision, const float *residual, float shift,
                     float *depth, float *confidence, int64_t n) {
    packs(n, [&](auto take, auto put) {
        const V known = take(precision);
        put(depth, exponential(mean_of(take(information), known, V{}) + shift));
        put(confidence, 1.0f / (1.0f + exponential(-confidence_logit(known, take(residual)))));
    });
}

void measured_row(const float *measurement, const float *weight, float shift, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) {
        put(to, where_positive(take(weight), exponential(take(measurement) + shift), V{}));
    });
}

void off_row(const float *measured, const float *depth, float half, float *there, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) {
        const V found = take(measured), safe = larger(take(depth), all(1e-6f));
        const V off = where_positive(found, found / safe - 1.0f, V{});
        put(there, where_positive(found, all(1.0f), V{}));
        put(to, off / (half + size_of(off)));
    });
}

void steep_row(const float *there, const float *here, float half, float *to, int64_t n) {
    packs(n, [&](auto take, auto put) {
        const V step = take(there) / larger(take(here), all(1e-6f)) - 1.0f;
        put(to, step / (half + size_of(step)));
    });
}

}  // namespace gbpn::GBPN_LEVEL

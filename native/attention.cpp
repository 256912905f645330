// Neighbourhood attention of one row of pixels, and its exact adjoint, which computes the weights again.
#include "attention.h"

namespace gbpn::GBPN_LEVEL {
namespace {

template <class T, int D> constexpr int lanes_for = D < lanes<T> ? D : lanes<T>;

template <class T, int L> using Lanes = typename PackOf<T, L>::type;

template <class To, class From> inline To bits(From from) {
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

// Lane of [a b], L lanes each, that goes to lane i of [low halves of both], in blocks of 2·H lanes.
template <int L, int H> constexpr int low_half(int i) {
    return (i % (2 * H) < H ? 0 : L) + i / (2 * H) * (2 * H) + i % H;
}

template <int L, int H, class V, int... I> inline V fold(V a, V b, Numbers<I...>) {
    return __builtin_shufflevector(a, b, low_half<L, H>(I)...) +
           __builtin_shufflevector(a, b, (low_half<L, H>(I) + H)...);
}

// The sums over the lanes of `Vectors` = L vectors, as one vector; overwrites them.
template <int L, int Vectors, class V> inline V sums(V *v) {
    if constexpr (Vectors == 1) {
        return v[0];
    } else {
        constexpr int half = Vectors / 2;
#pragma GCC unroll 16
        for (int i = 0; i < half; ++i) v[i] = fold<L, half>(v[i], v[i + half], typename Count<L>::type());
        return sums<L, half>(v);
    }
}

template <int H, class V, int... I> inline V high_half(V v, Numbers<I...>) {
    return __builtin_shufflevector(v, v, (I < H ? I + H : I)...);
}

// All L lanes of v combined to one number, halves first.
template <int L, int H, class V, class Combine> inline auto reduce(V v, Combine combine) {
    if constexpr (H == 0) {
        return v[0];
    } else {
        return reduce<L, H / 2>(V(combine(v, high_half<H>(v, typename Count<L>::type()))), combine);
    }
}

// out[n] = factor · vector · image[offset[n]]; D channels, or `size` where D is 0; `keys` is whole vectors.
template <class T, int D>
inline void dots(const T *vector, const T *image, const int64_t *offset, int keys, int size, T factor,
                 T *out) {
    if constexpr (D == 0) {
        for (int n = 0; n < keys; ++n) {
            T sum = 0;
            for (int c = 0; c < size; ++c) sum += vector[c] * image[offset[n] + c];
            out[n] = factor * sum;
        }
    } else {
        constexpr int L = lanes_for<T, D>, parts = D / L;
        Lanes<T, L> q[parts];
        for (int p = 0; p < parts; ++p) q[p] = factor * load<Lanes<T, L>>(vector + p * L);
        for (int n = 0; n < keys; n += L) {
            Lanes<T, L> partial[L];
#pragma GCC unroll 16
            for (int i = 0; i < L; ++i) {
                const T *key = image + offset[n + i];
                partial[i] = q[0] * load<Lanes<T, L>>(key);
#pragma GCC unroll 8
                for (int p = 1; p < parts; ++p) partial[i] += q[p] * load<Lanes<T, L>>(key + p * L);
            }
            store(out + n, sums<L, L>(partial));
        }
    }
}

// out[c] = factor · Σ_n weight[n] · image[offset[n] + c]
template <class T, int D>
inline void weighted_sum(const T *weight, const T *image, const int64_t *offset, int keys, int size, T factor,
                         T *out) {
    if constexpr (D == 0) {
        for (int c = 0; c < size; ++c) {
            T sum = 0;
            for (int n = 0; n < keys; ++n) sum += weight[n] * image[offset[n] + c];
            out[c] = factor * sum;
        }
    } else {
        constexpr int L = lanes_for<T, D>, parts = D / L, chains = parts < 8 ? 8 / parts : 1;
        Lanes<T, L> sum[chains][parts] = {};  // independent chains hide the latency of a multiply-add
        int n = 0;
        for (; n + chains <= keys; n += chains) {
#pragma GCC unroll 8
            for (int i = 0; i < chains; ++i)
#pragma GCC unroll 8
                for (int p = 0; p < parts; ++p)
                    sum[i][p] += weight[n + i] * load<Lanes<T, L>>(image + offset[n + i] + p * L);
        }
        for (; n < keys; ++n)
            for (int p = 0; p < parts; ++p)
                sum[0][p] += weight[n] * load<Lanes<T, L>>(image + offset[n] + p * L);
#pragma GCC unroll 8
        for (int p = 0; p < parts; ++p) {
            for (int i = 1; i < chains; ++i) sum[0][p] += sum[i][p];
            store(out + p * L, factor * sum[0][p]);
        }
    }
}

// image[offset[n] + c] += weight[n] · factor · vector[c]
template <class T, int D>
inline void scatter(const T *weight, const T *vector, T factor, int keys, int size, const int64_t *offset,
                    T *image) {
    if constexpr (D == 0) {
        for (int n = 0; n < keys; ++n)
            for (int c = 0; c < size; ++c) image[offset[n] + c] += weight[n] * factor * vector[c];
    } else {
        constexpr int L = lanes_for<T, D>, parts = D / L;
        Lanes<T, L> v[parts];
        for (int p = 0; p < parts; ++p) v[p] = factor * load<Lanes<T, L>>(vector + p * L);
        for (int n = 0; n < keys; ++n) {
#pragma GCC unroll 8
            for (int p = 0; p < parts; ++p) {
                T *to = image + offset[n] + p * L;
                store(to, load<Lanes<T, L>>(to) + weight[n] * v[p]);
            }
        }
    }
}

// exp of numbers that are not above 0, within 2 units in the last place; ends at about 1e-38.
template <int L> inline Lanes<float, L> exponential(Lanes<float, L> x) {
    typedef Lanes<float, L> V;
    typedef Lanes<uint32_t, L> I;  // wraps around where a score is not finite
    x = x < -87.0f ? V{} - 87.0f : x;
    const float rounder = 12582912.0f;  // 1.5 · 2²³: adding it leaves the nearest integer in the low bits
    const V shifted = x * 1.44269504f + rounder;
    const V n = shifted - rounder;
    const V r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // x − n · ln 2, with ln 2 in two pieces
    V p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    return bits<V>(bits<I>(p) + (bits<I>(shifted) << 23)) + (x - x);  // adds 0, or keeps a NaN one
}

template <int L> inline Lanes<double, L> exponential(Lanes<double, L> x) {
    for (int i = 0; i < L; ++i) x[i] = __builtin_exp(x[i]);
    return x;
}

// score[n] becomes exp(score[n] + bias[n] − maximum); returns their sum. `count` is whole vectors.
template <class T> inline T exponentials(T *score, const T *bias, int count) {
    constexpr int L = lanes<T>;
    Lanes<T, L> most = load<Lanes<T, L>>(score) + load<Lanes<T, L>>(bias);
    store(score, most);
    for (int n = L; n < count; n += L) {
        const Lanes<T, L> s = load<Lanes<T, L>>(score + n) + load<Lanes<T, L>>(bias + n);
        store(score + n, s);
        most = s > most ? s : most;
    }
    const T top = reduce<L, L / 2>(most, [](auto a, auto b) { return a > b ? a : b; });
    Lanes<T, L> total{};
    for (int n = 0; n < count; n += L) {
        const Lanes<T, L> e = exponential<L>(load<Lanes<T, L>>(score + n) - top);
        store(score + n, e);
        total += e;
    }
    return reduce<L, L / 2>(total, [](auto a, auto b) { return a + b; });
}

// Distance of every key of pixel (y, x) from the image's first element; the padding repeats the last key.
template <class T, class U>
inline void place(const Attention<T> &a, const Pixels<U> &image, int y, int x, int64_t *offset) {
    const int64_t down = a.rows.dilation * image.row, right = a.columns.dilation * image.column;
    int64_t row = a.rows.first[y] * image.row + a.columns.first[x] * image.column;
    const int64_t *end = offset + a.stride;
    for (int i = 0; i < a.rows.window; ++i, row += down) {
        int64_t at = row;
        for (int j = 0; j < a.columns.window; ++j, at += right) *offset++ = at;
    }
    for (; offset < end; ++offset) *offset = offset[-1];
}

template <class U> inline bool same_layout(const Pixels<U> &a, const Pixels<U> &b) {
    return a.row == b.row && a.column == b.column;
}

template <class T, int D>
void row(const Attention<T> &a, const AttentionScratch<T> &s, const Pixels<T> &result, int batch, int y) {
    const T *key = a.key.at(batch, 0, 0), *value = a.value.at(batch, 0, 0);
    const int64_t *at_value = same_layout(a.key, a.value) ? s.at_key : s.at_value;
    for (int x = 0; x < a.width; ++x) {
        place(a, a.key, y, x, s.at_key);
        if (at_value != s.at_key) place(a, a.value, y, x, s.at_value);
        const T *query = a.query.at(batch, y, x);
        T *out = result.at(batch, y, x);
        for (int h = 0; h < a.heads; ++h) {
            const int c = h * a.size;
            dots<T, D>(query + c, key + c, s.at_key, a.stride, a.size, a.scale, s.weight);
            const size_t patch = a.patch(h, a.rows.bias[y], a.columns.bias[x]);
            const T sum = exponentials(s.weight, a.patches + patch, a.stride);
            weighted_sum<T, D>(s.weight, value + c, at_value, a.keys, a.size, 1 / sum, out + c);
        }
    }
}

template <class T, int D>
void row_backward(const Attention<T> &a, const AttentionScratch<T> &s, const AttentionGradients<T> &g,
                  T *patches, int batch, int y) {
    const T *key = a.key.at(batch, 0, 0), *value = a.value.at(batch, 0, 0);
    T *to_key = g.key.at(batch, 0, 0), *to_value = g.value.at(batch, 0, 0);
    const int64_t *at_value = same_layout(a.key, a.value) ? s.at_key : s.at_value;
    for (int x = 0; x < a.width; ++x) {
        place(a, a.key, y, x, s.at_key);
        if (at_value != s.at_key) place(a, a.value, y, x, s.at_value);
        place(a, g.key, y, x, s.at_gradient);
        const T *query = a.query.at(batch, y, x), *out = g.out.at(batch, y, x);
        T *to_query = g.query.at(batch, y, x);
        for (int h = 0; h < a.heads; ++h) {
            const int c = h * a.size;
            const size_t patch = a.patch(h, a.rows.bias[y], a.columns.bias[x]);
            dots<T, D>(query + c, key + c, s.at_key, a.stride, a.size, a.scale, s.weight);
            const T share = 1 / exponentials(s.weight, a.patches + patch, a.stride);
            dots<T, D>(out + c, value + c, at_value, a.stride, a.size, T(1), s.change);
            T mean = 0;
            for (int n = 0; n < a.keys; ++n) {
                s.weight[n] *= share;
                mean += s.weight[n] * s.change[n];
            }
            for (int n = 0; n < a.keys; ++n) {
                s.change[n] = s.weight[n] * (s.change[n] - mean);  // gradient of the score
                patches[patch + n] += s.change[n];
            }
            weighted_sum<T, D>(s.change, key + c, s.at_key, a.keys, a.size, a.scale, to_query + c);
            scatter<T, D>(s.change, query + c, a.scale, a.keys, a.size, s.at_gradient, to_key + c);
            scatter<T, D>(s.weight, out + c, T(1), a.keys, a.size, s.at_gradient, to_value + c);
        }
    }
}

}  // namespace

template <class T>
void attend_row(const Attention<T> &a, const AttentionScratch<T> &s, const Pixels<T> &out, int batch, int y) {
    switch (a.size) {
        case 32: return row<T, 32>(a, s, out, batch, y);
        case 16: return row<T, 16>(a, s, out, batch, y);
        case 8: return row<T, 8>(a, s, out, batch, y);
        default: return row<T, 0>(a, s, out, batch, y);
    }
}

template <class T>
void attend_row_backward(const Attention<T> &a, const AttentionScratch<T> &s, const AttentionGradients<T> &g,
                         T *patches, int batch, int y) {
    switch (a.size) {
        case 32: return row_backward<T, 32>(a, s, g, patches, batch, y);
        case 16: return row_backward<T, 16>(a, s, g, patches, batch, y);
        case 8: return row_backward<T, 8>(a, s, g, patches, batch, y);
        default: return row_backward<T, 0>(a, s, g, patches, batch, y);
    }
}

#define GBPN_INSTANTIATE(T)                                                                                \
    template void attend_row<T>(const Attention<T> &, const AttentionScratch<T> &, const Pixels<T> &, int, \
                                int);                                                                      \
    template void attend_row_backward<T>(const Attention<T> &, const AttentionScratch<T> &,                \
                                         const AttentionGradients<T> &, T *, int, int);
GBPN_INSTANTIATE(float)
GBPN_INSTANTIATE(double)

}  // namespace gbpn::GBPN_LEVEL

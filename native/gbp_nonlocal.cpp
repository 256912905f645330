// The parallel step along learned edges, its adjoint (words: gbp_sweep_adjoint.cpp), and the sums around it.
#include "gbp.h"

namespace gbpn::GBPN_LEVEL {
namespace {

constexpr int chunk = 64;

template <class T> using Two = typename PackOf<T, 2>::type;   // (information, precision) of a pixel
template <class T> using Four = typename PackOf<T, 4>::type;  // of a pixel and the one to its right

// Where the senders of some pixels of a row are: upper left corner in a field, and the way to the next
// corner.
template <class T> struct Place {
    int32_t corner[chunk];
    T down[chunk], right[chunk];

    // A sender outside reads the zero border.
    void find(const T *rows, const T *columns, int64_t y, int64_t x, int64_t height, int64_t width,
              int count) {
        int i = 0;
        Pack<T> ahead{};
        for (int lane = 0; lane < lanes<T>; ++lane) ahead[lane] = static_cast<T>(lane);
        for (; i + lanes<T> <= count; i += lanes<T>)
            one<Pack<T>>(rows, columns, y, x, height, width, i, ahead);
        for (; i < count; ++i) one<T>(rows, columns, y, x, height, width, i, T(0));
    }

  private:
    template <class V>
    GBPN_INLINE void one(const T *rows, const T *columns, int64_t y, int64_t x, int64_t height, int64_t width,
                         int i, V ahead) {
        const V zero{}, none = zero - 1;
        const V row = load<V>(rows + i) + static_cast<T>(y);
        const V column = load<V>(columns + i) + (ahead + static_cast<T>(x + i));
        const V row_inside = row > none ? (row < zero + static_cast<T>(height) ? zero + 1 : zero) : zero;
        const V inside = column > none ? (column < zero + static_cast<T>(width) ? row_inside : zero) : zero;
        const V safe_row = where_positive(inside, row, none),
                safe_column = where_positive(inside, column, none);
        const V top = floor_of(safe_row), left = floor_of(safe_column);
        store(down + i, safe_row - top);
        store(right + i, safe_column - left);
        const int32_t row_length = static_cast<int32_t>(width + 2);
        if constexpr (sizeof(V) == sizeof(T)) {
            corner[i] = (static_cast<int32_t>(top) + 1) * row_length + static_cast<int32_t>(left) + 1;
        } else {
            using I = typename PackOf<int32_t, lanes<T>>::type;
            store(corner + i,
                  (__builtin_convertvector(top, I) + 1) * row_length + __builtin_convertvector(left, I) + 1);
        }
    }

    template <class V> static GBPN_INLINE V floor_of(V value) {
        V whole;
        if constexpr (sizeof(V) == sizeof(T)) {
            whole = static_cast<T>(static_cast<int32_t>(value));
        } else {
            using I = typename PackOf<int32_t, lanes<T>>::type;
            whole = __builtin_convertvector(__builtin_convertvector(value, I), V);
        }
        return value < whole ? whole - 1 : whole;
    }
};

template <class T> GBPN_INLINE Four<T> halves_swapped(Four<T> v) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(v, v, 2, 3, 0, 1);
#else
    return Four<T>{v[2], v[3], v[0], v[1]};
#endif
}

// Shares of the left and the right pixel of a pair.
template <class T> GBPN_INLINE Four<T> shares(T right) {
    const Four<T> all = Four<T>{} + right;
    return Four<T>{1, 1, 0, 0} + all * Four<T>{-1, -1, 1, 1};
}

// Both pixels of a pair, weighed and summed; the same pair twice.
template <class T> GBPN_INLINE Four<T> across(Four<T> pair, Four<T> share) {
    const Four<T> weighed = pair * share;
    return weighed + halves_swapped<T>(weighed);
}

template <class T> GBPN_INLINE void store_two(T *to, Four<T> v) {
    Two<T> low;
    __builtin_memcpy(&low, &v, sizeof(low));
    store(to, low);
}

// What is heard at pixel i of a place, as a pair.
template <class T>
GBPN_INLINE void hear_one(const Place<T> &place, const T *field, int64_t stride, int i, T *heard) {
    const T *upper = field + 2 * static_cast<int64_t>(place.corner[i]);
    const Four<T> column =
        load<Four<T>>(upper) * (1 - place.down[i]) + load<Four<T>>(upper + stride) * place.down[i];
    store_two<T>(heard + 2 * i, across<T>(column, shares<T>(place.right[i])));
}

template <class T>
GBPN_INLINE void hear(const Place<T> &place, const T *field, int64_t stride, int count, T *heard) {
    for (int i = 0; i < count; ++i) hear_one(place, field, stride, i, heard);
}

#if defined(__AVX512F__)
// Four pixels in a register.
GBPN_INLINE __m512 four_corners(const float *field, const int32_t *corner) {
    const auto at = [&](int n) { return _mm_loadu_ps(field + 2 * static_cast<int64_t>(corner[n])); };
    const __m512 low = _mm512_insertf32x4(_mm512_castps128_ps512(at(0)), at(1), 1);
    return _mm512_insertf32x4(_mm512_insertf32x4(low, at(2), 2), at(3), 3);
}

GBPN_INLINE __m512 four_times_each(const float *values) {
    const __m512i each = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(each, _mm512_castps128_ps512(_mm_loadu_ps(values)));
}

GBPN_INLINE void hear(const Place<float> &place, const float *field, int64_t stride, int count,
                      float *heard) {
    const __m512 one = _mm512_set1_ps(1);
    const __m512 left = _mm512_setr_ps(1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0);
    const __m512 sign = _mm512_fmadd_ps(left, _mm512_set1_ps(-2), one);
    const __m512i firsts = _mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6);
    int i = 0;
    for (; i + 4 <= count; i += 4) {
        const __m512 down = four_times_each(place.down + i), right = four_times_each(place.right + i);
        const __m512 upper = _mm512_mul_ps(four_corners(field, place.corner + i), _mm512_sub_ps(one, down));
        const __m512 column = _mm512_fmadd_ps(four_corners(field + stride, place.corner + i), down, upper);
        const __m512d weighed = _mm512_castps_pd(_mm512_mul_ps(column, _mm512_fmadd_ps(right, sign, left)));
        const __m512 sum =
            _mm512_add_ps(_mm512_castpd_ps(weighed), _mm512_castpd_ps(_mm512_permute_pd(weighed, 0x55)));
        const __m512d pairs = _mm512_permutexvar_pd(firsts, _mm512_castps_pd(sum));
        _mm256_storeu_ps(heard + 2 * i, _mm256_castpd_ps(_mm512_castpd512_pd256(pairs)));
    }
    for (; i < count; ++i) hear_one(place, field, stride, i, heard);
}
#endif

}  // namespace

template <class T> void clear_border(int64_t height, int64_t width, T *field) {
    const int64_t stride = 2 * (width + 2);
    for (int64_t i = 0; i < stride; ++i) field[i] = field[(height + 1) * stride + i] = 0;
    for (int64_t y = 1; y <= height; ++y) {
        T *row = field + y * stride;
        row[0] = row[1] = row[stride - 2] = row[stride - 1] = 0;
    }
}

template <class T>
void make_field(const T *const base[2], const T *const total[2], T rho, int64_t first, int64_t last,
                int64_t width, T *field) {
    const int64_t stride = 2 * (width + 2);
    for (int64_t y = first; y < last; ++y) {
        T *row = field + (y + 1) * stride;
        row[0] = row[1] = row[stride - 2] = row[stride - 1] = 0;
        for (int64_t x = 0; x < width; ++x) {
            row[2 + 2 * x] = base[0][y * width + x] + rho * total[0][y * width + x];
            row[3 + 2 * x] = base[1][y * width + x] + rho * total[1][y * width + x];
        }
    }
}

template <class T> void nonlocal_step(const NonLocal<T> &s) {
    const T rho = s.reweighting, scale = 1 / rho;
    const int64_t stride = 2 * (s.width + 2);
    Place<T> place;
    alignas(64) T heard[2 * chunk], sum[2][chunk];
    for (int64_t y = s.first; y < s.last; ++y)
        for (int64_t x = 0; x < s.width; x += chunk) {
            const int count = static_cast<int>(s.width - x < chunk ? s.width - x : chunk);
            const int64_t at = y * s.width + x;
            for (int i = 0; i < chunk; ++i) sum[0][i] = sum[1][i] = 0;
            for (int k = 0; k < s.count; ++k) {
                place.find(s.edge.offset[k][0] + at, s.edge.offset[k][1] + at, y, x, s.height, s.width,
                           count);
                hear(place, s.field, stride, count, heard);
                const T *weights = s.edge.weight[k] + at, *differences = s.edge.difference[k] + at;
                for (int i = 0; i < count; ++i) {
                    const T information = heard[2 * i], precision = heard[2 * i + 1],
                            weight = scale * weights[i];
                    const T gain = weight / (weight + precision);
                    const bool informed = precision > 0;
                    sum[0][i] += informed ? gain * (information + precision * differences[i]) : T(0);
                    sum[1][i] += informed ? gain * precision : T(0);
                }
            }
            T *next = s.next_field ? s.next_field + (y + 1) * stride + 2 * (x + 1) : nullptr;
            alignas(64) T result[2][chunk];
            for (int part = 0; part < 2; ++part) {
                const T *total = s.total[part] + at, *damping = s.edge.damping + at;
                T *out = s.result[part] + at;
                for (int i = 0; i < count; ++i)
                    result[part][i] = damping[i] * total[i] + (1 - damping[i]) * sum[part][i];
                for (int i = 0; i < count; ++i) out[i] = result[part][i];
            }
            if (next)
                for (int i = 0; i < count; ++i) {
                    next[2 * i] = s.base[0][at + i] + rho * result[0][i];
                    next[2 * i + 1] = s.base[1][at + i] + rho * result[1][i];
                }
        }
}

template <class T> void nonlocal_adjoint(const NonLocalAdjoint<T> &s) {
    const T rho = s.reweighting, scale = 1 / rho;
    const int64_t stride = 2 * (s.width + 2);
    for (int64_t i = 0; i < (s.height + 2) * stride; ++i) s.grad_field[i] = 0;
    Place<T> place;
    // Read at the sender, and its slopes along the row and column axis; all as pairs.
    alignas(64) T heard[2 * chunk], by_row[2 * chunk], by_column[2 * chunk], grad[2 * chunk], sum[2][chunk];
    for (int64_t y = 0; y < s.height; ++y)
        for (int64_t x = 0; x < s.width; x += chunk) {
            const int count = static_cast<int>(s.width - x < chunk ? s.width - x : chunk);
            const int64_t at = y * s.width + x;
            const T *damping = s.edge.damping + at;
            T *grad_total[2] = {s.grad_total[0] + at, s.grad_total[1] + at};
            for (int i = 0; i < chunk; ++i) sum[0][i] = sum[1][i] = 0;
            for (int k = 0; k < s.count; ++k) {
                place.find(s.edge.offset[k][0] + at, s.edge.offset[k][1] + at, y, x, s.height, s.width,
                           count);
                for (int i = 0; i < count; ++i) {
                    const T *corner = s.field + 2 * static_cast<int64_t>(place.corner[i]);
                    const Four<T> upper = load<Four<T>>(corner), lower = load<Four<T>>(corner + stride);
                    const T down = place.down[i];
                    const Four<T> column = upper * (1 - down) + lower * down,
                                  share = shares<T>(place.right[i]);
                    store_two<T>(heard + 2 * i, across<T>(column, share));
                    store_two<T>(by_row + 2 * i, across<T>(lower - upper, share));
                    store_two<T>(by_column + 2 * i, halves_swapped<T>(column) - column);
                }
                const T *weights = s.edge.weight[k] + at, *differences = s.edge.difference[k] + at;
                T *grad_weight = s.grad_weight[k] + at, *grad_difference = s.grad_difference[k] + at;
                T *grad_row = s.grad_offset[k][0] + at, *grad_column = s.grad_offset[k][1] + at;
                if (!s.add)
                    for (int i = 0; i < count; ++i)
                        grad_weight[i] = grad_difference[i] = grad_row[i] = grad_column[i] = 0;
#pragma GCC ivdep
                for (int i = 0; i < count; ++i) {
                    const T information = heard[2 * i], precision = heard[2 * i + 1];
                    const T weight = scale * weights[i], difference = differences[i];
                    const bool informed = precision > 0;
                    const T total = weight + precision;
                    const T inverse = 1 / (informed ? (total > tiny<T> ? total : tiny<T>) : T(1));
                    const T gain = informed ? weight * inverse : T(0),
                            t = information + difference * precision;
                    const T en = informed ? (1 - damping[i]) * grad_total[0][i] : T(0);
                    const T ln = informed ? (1 - damping[i]) * grad_total[1][i] : T(0);
                    const T through = (en * t + ln * precision) * inverse;
                    const T grad_information = gain * en;
                    const T grad_precision = gain * (ln + difference * en - through);
                    sum[0][i] += gain * t;
                    sum[1][i] += gain * precision;
                    grad_weight[i] = grad_weight[i] + scale * through * (1 - gain);
                    grad_difference[i] = grad_difference[i] + en * gain * precision;
                    grad_row[i] =
                        grad_row[i] + grad_information * by_row[2 * i] + grad_precision * by_row[2 * i + 1];
                    grad_column[i] = grad_column[i] + grad_information * by_column[2 * i] +
                                     grad_precision * by_column[2 * i + 1];
                    grad[2 * i] = grad_information;
                    grad[2 * i + 1] = grad_precision;
                }
                for (int i = 0; i < count; ++i) {
                    T *corner = s.grad_field + 2 * static_cast<int64_t>(place.corner[i]);
                    const T down = place.down[i], right = place.right[i], left = 1 - right;
                    const Four<T> row = {grad[2 * i] * left, grad[2 * i + 1] * left, grad[2 * i] * right,
                                         grad[2 * i + 1] * right};
                    store(corner, load<Four<T>>(corner) + row * (1 - down));
                    store(corner + stride, load<Four<T>>(corner + stride) + row * down);
                }
            }
            T *grad_damping = s.grad_damping + at;
            for (int i = 0; i < count; ++i) {
                const T slope = grad_total[0][i] * (s.total[0][at + i] - sum[0][i]) +
                                grad_total[1][i] * (s.total[1][at + i] - sum[1][i]);
                grad_damping[i] = s.add ? grad_damping[i] + slope : slope;
                grad_total[0][i] = damping[i] * grad_total[0][i];
                grad_total[1][i] = damping[i] * grad_total[1][i];
            }
        }
    for (int64_t y = 0; y < s.height; ++y) {
        const T *row = s.grad_field + (y + 1) * stride + 2;
        for (int part = 0; part < 2; ++part) {
            T *base = s.grad_base[part] + y * s.width, *total = s.grad_total[part] + y * s.width;
            for (int64_t x = 0; x < s.width; ++x) base[x] += row[2 * x + part];
            for (int64_t x = 0; x < s.width; ++x) total[x] += rho * row[2 * x + part];
        }
    }
}

template <class T> void sum_slots(const Slots<T> &s) {
    for (int part = 0; part < 2; ++part) {
        const T *unary = s.unary[part], *far = s.far[part], *heard = s.heard[part];
        T *result = s.result[part];
        const T *const(&slot)[8][2] = s.slot;
        const auto step = [&](auto pack, int64_t i) {
            using V = decltype(pack);
            const auto at = [&](int m) { return load<V>(slot[m][part] + i); };
            V sum = heard ? load<V>(heard + i)
                          : (at(0) + at(1) + at(2)) + (at(3) + at(4)) + (at(5) + at(6) + at(7));
            if (far) sum += load<V>(far + i);
            store(result + i, load<V>(unary + i) + s.reweighting * sum);
        };
        int64_t i = 0;
        for (; i + lanes<T> <= s.pixels; i += lanes<T>) step(Pack<T>{}, i);
        for (; i < s.pixels; ++i) step(T{}, i);
    }
}

template <class T> void scan(const T *values, int64_t count, Range &range) {
    T low = static_cast<T>(range.low), high = static_cast<T>(range.high);
    Pack<T> lows = Pack<T>{} + low, highs = Pack<T>{} + high, poison{};
    int64_t i = 0;
    for (; i + lanes<T> <= count; i += lanes<T>) {
        const Pack<T> v = load<Pack<T>>(values + i);
        lows = v < lows ? v : lows;
        highs = v > highs ? v : highs;
        poison += v * 0;  // stays 0 unless something is not finite
    }
    bool clean = true;
    for (int lane = 0; lane < lanes<T>; ++lane) {
        low = lows[lane] < low ? lows[lane] : low;
        high = highs[lane] > high ? highs[lane] : high;
        clean &= poison[lane] == 0;
    }
    for (; i < count; ++i) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
        clean &= values[i] * 0 == 0;
    }
    range.low = low;
    range.high = high;
    if (clean) return;
    for (int64_t j = 0; j < count; ++j) range.not_finite += values[j] * 0 == 0 ? 0 : 1;
}

#define GBPN_INSTANTIATE(T)                                                                            \
    template void make_field(const T *const[2], const T *const[2], T, int64_t, int64_t, int64_t, T *); \
    template void clear_border(int64_t, int64_t, T *);                                                 \
    template void nonlocal_step(const NonLocal<T> &);                                                  \
    template void nonlocal_adjoint(const NonLocalAdjoint<T> &);                                        \
    template void sum_slots(const Slots<T> &);                                                         \
    template void scan(const T *, int64_t, Range &);
GBPN_INSTANTIATE(float)
GBPN_INSTANTIATE(double)

}  // namespace gbpn::GBPN_LEVEL

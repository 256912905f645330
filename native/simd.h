// Instruction sets: which one the kernels use, decided once at run time, and, in the sources that are
// compiled once per set (GBPN_LEVEL), its short vectors. Nothing here needs the C++ library.
#pragma once

namespace gbpn {

enum class Level { baseline, avx2, avx512 };

// The best level that this CPU and this binary have, or the one that GBPN_SIMD or `force_level` names.
Level level();
Level best_level();

// Use this level from now on ("auto" for the best); throws std::invalid_argument when it cannot run here.
void force_level(const char *name);

const char *level_name(Level level);

}  // namespace gbpn

// Declares or calls something at each level: GBPN_PICK(gbpn, sweep<float>)(arguments).
#if defined(GBPN_X86_LEVELS)
#define GBPN_FOR_LEVELS(DECLARE) DECLARE(baseline) DECLARE(avx2) DECLARE(avx512)
#define GBPN_PICK(function)                                              \
    (::gbpn::level() == ::gbpn::Level::avx512 ? ::gbpn::avx512::function \
     : ::gbpn::level() == ::gbpn::Level::avx2 ? ::gbpn::avx2::function   \
                                              : ::gbpn::baseline::function)
#else
#define GBPN_FOR_LEVELS(DECLARE) DECLARE(baseline)
#define GBPN_PICK(function) (::gbpn::baseline::function)
#endif

#if defined(GBPN_LEVEL)

#include <cfloat>
#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define GBPN_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define GBPN_VECTOR_BYTES 32
#else
#define GBPN_VECTOR_BYTES 16
#endif

#define GBPN_INLINE inline __attribute__((always_inline))
#define GBPN_LAMBDA_INLINE __attribute__((always_inline))

namespace gbpn::GBPN_LEVEL {
namespace {

template <class T, int N> struct PackOf {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
    typedef T unaligned __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T))));
};

// Numbers<0, 1, …, N − 1> is Count<N>::type.
template <int... I> struct Numbers {};
template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
template <int... I> struct Count<0, I...> { typedef Numbers<I...> type; };

template <class T> constexpr int lanes = GBPN_VECTOR_BYTES / sizeof(T);
template <class T> using Pack = typename PackOf<T, lanes<T>>::type;

// A step written once runs on V = Pack<T> for most of a line and on V = T for its tail.
template <class V, class T> GBPN_INLINE V load(const T *from) {
    if constexpr (sizeof(V) == sizeof(T))
        return *from;
    else
        return *reinterpret_cast<const typename PackOf<T, sizeof(V) / sizeof(T)>::unaligned *>(from);
}

template <class V, class T> GBPN_INLINE void store(T *to, V value) {
    if constexpr (sizeof(V) == sizeof(T))
        *to = value;
    else
        *reinterpret_cast<typename PackOf<T, sizeof(V) / sizeof(T)>::unaligned *>(to) = value;
}

// `yes` where a > 0, else `no`.
template <class V> GBPN_INLINE V where_positive(V a, V yes, V no) { return a > V{} ? yes : no; }

// The smallest number whose reciprocal is finite.
template <class T> constexpr T tiny = sizeof(T) == 4 ? T(FLT_MIN) : T(DBL_MIN);

// Side of a square tile: one cache line.
template <class T> constexpr int tile = 64 / sizeof(T);

template <class T>
void transpose_part(const T *from, int64_t from_stride, T *to, int64_t to_stride, int rows, int columns) {
    for (int column = 0; column < columns; ++column)
        for (int row = 0; row < rows; ++row) to[column * to_stride + row] = from[row * from_stride + column];
}

#if defined(__AVX512F__)
// Four rows at a distance of 4 share a register, so that all shuffles stay inside 128-bit lanes.
GBPN_INLINE void transpose_tile(const float *from, int64_t from_stride, float *to, int64_t to_stride) {
    for (int j = 0; j < 16; j += 4) {
        __m512 a[4];
        for (int k = 0; k < 4; ++k) {
            const float *p = from + k * from_stride + j;
            __m512 z = _mm512_castps128_ps512(_mm_loadu_ps(p));
            z = _mm512_insertf32x4(z, _mm_loadu_ps(p + 4 * from_stride), 1);
            z = _mm512_insertf32x4(z, _mm_loadu_ps(p + 8 * from_stride), 2);
            a[k] = _mm512_insertf32x4(z, _mm_loadu_ps(p + 12 * from_stride), 3);
        }
        const __m512d l01 = _mm512_castps_pd(_mm512_unpacklo_ps(a[0], a[1]));
        const __m512d l23 = _mm512_castps_pd(_mm512_unpacklo_ps(a[2], a[3]));
        const __m512d h01 = _mm512_castps_pd(_mm512_unpackhi_ps(a[0], a[1]));
        const __m512d h23 = _mm512_castps_pd(_mm512_unpackhi_ps(a[2], a[3]));
        float *q = to + j * to_stride;
        _mm512_storeu_ps(q, _mm512_castpd_ps(_mm512_unpacklo_pd(l01, l23)));
        _mm512_storeu_ps(q + to_stride, _mm512_castpd_ps(_mm512_unpackhi_pd(l01, l23)));
        _mm512_storeu_ps(q + 2 * to_stride, _mm512_castpd_ps(_mm512_unpacklo_pd(h01, h23)));
        _mm512_storeu_ps(q + 3 * to_stride, _mm512_castpd_ps(_mm512_unpackhi_pd(h01, h23)));
    }
}
#elif defined(__AVX2__)
GBPN_INLINE void transpose_tile(const float *from, int64_t from_stride, float *to, int64_t to_stride) {
    for (int i = 0; i < 16; i += 8)
        for (int j = 0; j < 16; j += 4) {
            __m256 a[4];
            for (int k = 0; k < 4; ++k) {
                const float *p = from + (i + k) * from_stride + j;
                a[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)),
                                            _mm_loadu_ps(p + 4 * from_stride), 1);
            }
            const __m256d l01 = _mm256_castps_pd(_mm256_unpacklo_ps(a[0], a[1]));
            const __m256d l23 = _mm256_castps_pd(_mm256_unpacklo_ps(a[2], a[3]));
            const __m256d h01 = _mm256_castps_pd(_mm256_unpackhi_ps(a[0], a[1]));
            const __m256d h23 = _mm256_castps_pd(_mm256_unpackhi_ps(a[2], a[3]));
            float *q = to + j * to_stride + i;
            _mm256_storeu_ps(q, _mm256_castpd_ps(_mm256_unpacklo_pd(l01, l23)));
            _mm256_storeu_ps(q + to_stride, _mm256_castpd_ps(_mm256_unpackhi_pd(l01, l23)));
            _mm256_storeu_ps(q + 2 * to_stride, _mm256_castpd_ps(_mm256_unpacklo_pd(h01, h23)));
            _mm256_storeu_ps(q + 3 * to_stride, _mm256_castpd_ps(_mm256_unpackhi_pd(h01, h23)));
        }
}
#else
GBPN_INLINE void transpose_tile(const float *from, int64_t from_stride, float *to, int64_t to_stride) {
    transpose_part(from, from_stride, to, to_stride, tile<float>, tile<float>);
}
#endif

GBPN_INLINE void transpose_tile(const double *from, int64_t from_stride, double *to, int64_t to_stride) {
    transpose_part(from, from_stride, to, to_stride, tile<double>, tile<double>);
}

// to[column][row] = from[row][column] for rows × columns ≤ a tile.
template <class T>
GBPN_INLINE void transpose(const T *from, int64_t from_stride, T *to, int64_t to_stride, int rows,
                           int columns) {
    if (rows == tile<T> && columns == tile<T>)
        transpose_tile(from, from_stride, to, to_stride);
    else
        transpose_part(from, from_stride, to, to_stride, rows, columns);
}

}  // namespace
}  // namespace gbpn::GBPN_LEVEL

#endif  // GBPN_LEVEL

// The adjoint of a bilinear growth to twice the resolution: a pixel of the smaller plane weighs 1/4, 3/4, 3/4
// and 1/4 in four rows and four columns of the larger one. Beyond its ends a line goes on as it ends.
#include "doubling.h"

namespace gbpn::GBPN_LEVEL {
namespace {

template <class V, class T> GBPN_INLINE V four(V a, V b, V c, V d) {
    return T(0.75) * (b + c) + T(0.25) * (a + d);
}

}  // namespace

template <class T> void doubled_adjoint_row(const Doubling<T> &d) {
    const int64_t length = 2 * d.width;
    T *const line = d.scratch, *const inner = line + 1;
    int64_t i = 0;
    const auto step = [&](auto pack) {
        using V = decltype(pack);
        store(inner + i, four<V, T>(load<V>(d.fine[0] + i), load<V>(d.fine[1] + i), load<V>(d.fine[2] + i),
                                    load<V>(d.fine[3] + i)));
    };
    for (; i + lanes<T> <= length; i += lanes<T>) step(Pack<T>{});
    for (; i < length; ++i) step(T{});
    line[0] = inner[0];
    inner[length] = inner[length - 1];
    for (int64_t x = 0; x < d.width; ++x)
        d.result[x] = four<T, T>(line[2 * x], line[2 * x + 1], line[2 * x + 2], line[2 * x + 3]);
}

template void doubled_adjoint_row<float>(const Doubling<float> &);
template void doubled_adjoint_row<double>(const Doubling<double> &);

}  // namespace gbpn::GBPN_LEVEL

#include "guard.h"

#include <cmath>

namespace gbpn {

void refuse(const std::string &message) { throw BorderError(message); }

bool Size::admits(int64_t got) const {
    if (length >= 0) return got == length;
    return (or_one && got == 1) || (got >= least && got <= most);
}

std::string Size::text() const {
    if (length >= 0) return std::string(name) + "=" + std::to_string(length);
    const bool bounded = most < most_of_any;
    if (or_one) return std::string(name) + ": 1 or " + (bounded ? "" : "at least ") + std::to_string(least);
    if (!bounded && least == 0) return name;
    return std::string(name) + ": " + std::to_string(least) + " to " + std::to_string(most);
}

std::string Length::text() const { return common ? common->text() : std::to_string(fixed); }

namespace {

std::string text_of(const int64_t *values, size_t count) {
    std::string text = "[";
    for (size_t n = 0; n < count; ++n) text += (n ? ", " : "") + std::to_string(values[n]);
    return text + "]";
}

std::string text_of(Shape shape) {
    std::string text = "[";
    for (const Length &length : shape) text += (text.size() > 1 ? ", " : "") + length.text();
    return text + "]";
}

// Strides that a layout wants on the axes of `order`, from the last, without gaps, to its first.
bool packed(const View &view, std::initializer_list<int> order) {
    int64_t step = 1;
    for (const int *axis = order.end(); axis-- != order.begin();) {
        if (view.shape[*axis] > 1 && view.stride[*axis] != step) return false;
        step *= view.shape[*axis];
    }
    return true;
}

bool fits(const View &view, Layout layout) {
    int64_t step = 1;
    switch (layout) {
        case Layout::planes: return packed(view, {view.rank - 2, view.rank - 1});
        case Layout::pixels: return packed(view, {1});
        case Layout::dense_pixels: return packed(view, {0, 2, 3, 1});
        case Layout::strided: return true;
        case Layout::contiguous: break;
    }
    for (int axis = view.rank - 1; axis >= 0; step *= view.shape[axis--])
        if (view.shape[axis] > 1 && view.stride[axis] != step) return false;
    return true;
}

const char *text_of(Layout layout) {
    switch (layout) {
        case Layout::planes: return "contiguous rows and columns";
        case Layout::pixels: return "the channels of a pixel side by side (channels-last)";
        case Layout::dense_pixels: return "channels-last memory without gaps";
        default: return "contiguous memory";
    }
}

int64_t elements(const View &view) {
    int64_t count = 1;
    for (int axis = 0; axis < view.rank; ++axis) count = product({count, view.shape[axis]});
    return count;
}

}  // namespace

int64_t product(std::initializer_list<int64_t> factors) {
    int64_t result = 1;
    for (const int64_t factor : factors)
        if (__builtin_mul_overflow(result, factor, &result))
            refuse("these sizes are too large: their product has no int64");
    if (uint64_t(result) > SIZE_MAX) refuse("these sizes are too large for the memory of this machine");
    return result;
}

void require_between(const char *name, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return;
    const std::string wanted = most < most_of_any
                                   ? "in " + std::to_string(least) + " to " + std::to_string(most)
                                   : "at least " + std::to_string(least);
    refuse(std::string(name) + " must be " + wanted + "; got " + std::to_string(value));
}

void require_finite(const char *name, double value) {
    if (!std::isfinite(value)) refuse(std::string(name) + " must be finite; got " + std::to_string(value));
}

void Guard::check_kind(const Offered &tensor, const std::string &name) {
    if (kind_ == Kind::unknown) kind_ = tensor.kind;
    if (tensor.kind != Kind::unknown && tensor.kind == kind_) return;
    const std::string wanted = kind_ == Kind::unknown  ? "float32 or float64"
                               : kind_ == Kind::single ? "float32 like the others"
                                                       : "float64 like the others";
    refuse(name + " must be " + wanted + "; got " + tensor.dtype);
}

// Alignment, and no output that shares memory with anything else.
void Guard::check_place(const View &view, const std::string &name, bool written) {
    const int64_t item = kind_ == Kind::single ? 4 : 8;
    if (elements(view) == 0) return;
    const uint64_t start = reinterpret_cast<uintptr_t>(view.data);  // where pointers have 32 bits, too
    if (start % item)
        refuse(name + " must start at a multiple of " + std::to_string(item) + " bytes: copy it first");
    int64_t low = 0, high = 0;
    for (int axis = 0; axis < view.rank; ++axis) {
        int64_t reach;
        if (__builtin_mul_overflow(view.shape[axis] - 1, view.stride[axis], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            refuse(name + " has strides that reach too far: " + text_of(view.stride, view.rank));
    }
    const Part own{name, start + low * item, start + (high + 1) * item, written};
    for (const Part &other : parts_)
        if ((written || other.written) && own.first < other.last && other.first < own.last)
            refuse(name + " must not share memory with " + other.name + ": one of them is written to");
    parts_.push_back(own);
}

View Guard::check(const Offered &tensor, const std::string &name, Shape shape, Layout layout, bool written) {
    check_kind(tensor, name);
    View view;
    bool good = tensor.rank == shape.size() && tensor.rank <= size_t(most_axes);
    if (good) {
        view.rank = int(tensor.rank);
        for (int axis = 0; axis < view.rank; ++axis) {
            view.shape[axis] = tensor.shape[axis], view.stride[axis] = tensor.stride[axis];
            const Length &wanted = shape.begin()[axis];
            good &=
                wanted.common ? wanted.common->admits(view.shape[axis]) : wanted.fixed == view.shape[axis];
        }
    }
    const std::string wanted = good ? "" : text_of(shape);  // before this tensor decides a length
    for (int axis = 0; good && axis < view.rank; ++axis)
        if (Size *common = shape.begin()[axis].common) {
            good = common->admits(view.shape[axis]);  // also where one length is wanted twice
            common->length = view.shape[axis];
        }
    if (!good)
        refuse(name + " must have shape " + (wanted.empty() ? text_of(shape) : wanted) + "; got " +
               text_of(tensor.shape, tensor.rank));
    view.data = const_cast<void *>(tensor.data);
    if (elements(view) > 0 && !fits(view, layout))
        refuse(name + " must have " + text_of(layout) + "; got strides " + text_of(view.stride, view.rank));
    check_place(view, name, written);
    return view;
}

View Guard::check_values(const Offered &tensor, const std::string &name) {
    check_kind(tensor, name);
    int64_t count = 1, all = 1;
    for (size_t axis = 0; axis < tensor.rank; ++axis) all = product({all, tensor.shape[axis]});
    for (size_t axis = tensor.rank; axis-- > 0; count = product({count, tensor.shape[axis]}))
        if (tensor.shape[axis] > 1 && all > 0 && tensor.stride[axis] != count)
            refuse(name + " must have contiguous memory: call .contiguous() first");
    View view;
    view.data = const_cast<void *>(tensor.data);
    view.rank = 1, view.shape[0] = count, view.stride[0] = 1;
    check_place(view, name, false);
    return view;
}

}  // namespace gbpn

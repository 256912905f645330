// What every tensor must be before a kernel sees it: named, of the right dtype and shape, within bounds that
// no stride leaves, and sharing no memory with what is written. Serves Python (border.h) and C (gbpn.h)
// alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "array.h"

namespace gbpn {

// Something that cannot be used; gbpn.errors.InputError in Python, GBPN_REFUSED in C.
struct BorderError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

constexpr int64_t most_of_any = (int64_t(1) << 31) - 1;
// Longest side of an image: float32 still tells every pixel from the next.
constexpr int64_t longest_side = int64_t(1) << 24;

// A length that tensors have in common; the first one that is read decides.
struct Size {
    const char *name;
    int64_t least = 0, most = most_of_any;
    bool or_one = false;  // 1 is good as well: shared by all
    int64_t length = -1;  // not known yet

    bool admits(int64_t got) const;
    std::string text() const;
};

// One axis of a wanted shape: a number, or a common length.
struct Length {
    int64_t fixed = -1;
    Size *common = nullptr;

    Length(int64_t number) : fixed(number) {}
    Length(Size &size) : common(&size) {}
    std::string text() const;
};

using Shape = std::initializer_list<Length>;

enum class Layout {
    planes,        // rows and columns contiguous, any strides before them
    contiguous,    // all axes
    pixels,        // [B, C, H, W] with the channels of a pixel side by side
    dense_pixels,  // the same without gaps
    strided,       // anything
};

enum class Kind { unknown, single, twice };  // float32, float64

// A tensor as its owner describes it; nothing of it is believed yet.
struct Offered {
    const void *data;
    Kind kind;
    std::string dtype;  // in words
    size_t rank;
    const int64_t *shape, *stride;  // strides in elements
};

// Checks the tensors of one call, which must all be of one kind.
class Guard {
  public:
    View check(const Offered &tensor, const std::string &name, Shape shape, Layout layout, bool written);
    // All values of a contiguous tensor of any shape: data and their number.
    View check_values(const Offered &tensor, const std::string &name);
    void check_kind(const Offered &tensor, const std::string &name);
    Kind kind() const { return kind_; }

  private:
    struct Part {
        std::string name;
        uint64_t first, last;
        bool written;
    };
    void check_place(const View &view, const std::string &name, bool written);

    Kind kind_ = Kind::unknown;
    std::vector<Part> parts_;
};

// Tensors that a caller handed over by name. Those of constant elements are read, others written.
class Named {
  public:
    virtual ~Named() = default;
    virtual bool has(const char *name) const = 0;
    virtual View read(const std::string &name, Shape shape, Layout layout, bool written) = 0;
    // Refuses names that nobody asked for.
    virtual void end() const = 0;

    template <class T> void read(Array<T> &to, const std::string &name, Shape shape) {
        constexpr bool written = !std::is_const_v<T>;
        to = Array<T>(read(name, shape, written ? Layout::contiguous : Layout::planes, written));
    }
    // A Gaussian: NAME_information and NAME_precision, or just these words.
    template <class T> void read(Array<T> (&pair)[2], const std::string &name, Shape shape) {
        const std::string start = name.empty() ? name : name + "_";
        read(pair[0], start + "information", shape);
        read(pair[1], start + "precision", shape);
    }
};

[[noreturn]] void refuse(const std::string &message);
void require_between(const char *name, int64_t value, int64_t least, int64_t most);
void require_finite(const char *name, double value);
// The product of sizes that are not negative; refuses one that no machine can hold.
int64_t product(std::initializer_list<int64_t> factors);

// Reweighting as the kernels use it: finite and above 0 in their precision.
template <class T> T reweighting_of(double value) {
    const T used = static_cast<T>(value);
    if (!(used > 0) || !(used * 0 == 0) || !(1 / used * 0 == 0))
        refuse("reweighting must be finite and above 0, also in the precision of the tensors; got " +
               std::to_string(value));
    return used;
}

}  // namespace gbpn

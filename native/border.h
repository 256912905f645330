// The border to Python. Every tensor is read by its name and checked here before a kernel sees it: a wrong
// call is an error that names the tensor, never an access outside of it. No caller can leave the checks out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <vector>

#include "guard.h"

namespace gbpn {

namespace nb = nanobind;

// The tensors of one call. Holds them until the call ends.
class Border {
  public:
    using Kind = gbpn::Kind;

    View read(const nb::handle &tensor, const std::string &name, Shape shape, Layout layout, bool written);
    // All values of a contiguous tensor of any shape: data and their number.
    View read_values(const nb::handle &tensor, const std::string &name);
    Kind kind() const { return guard_.kind(); }
    void decide_kind(const nb::handle &tensor, const std::string &name);

  private:
    Guard guard_;
    std::vector<nb::ndarray<nb::ro, nb::device::cpu>> held_;
};

// Tensors that Python handed over as a dictionary of names.
class Group : public Named {
  public:
    Group(Border &border, const nb::dict &tensors, const char *label)
        : border_(border), tensors_(tensors), label_(label) {}

    using Named::read;
    bool has(const char *name) const override;
    nb::object get(const std::string &name);
    std::string named(const std::string &name) const { return label_ + name; }
    View read(const std::string &name, Shape shape, Layout layout, bool written) override {
        return border_.read(get(name), named(name), shape, layout, written);
    }
    void end() const override;

  private:
    Border &border_;
    const nb::dict &tensors_;
    std::string label_;
    std::vector<std::string> asked_;
};

// Calls work(float{}) or work(double{}), as the tensor `name` has it.
template <class Work>
void by_kind(Border &border, const nb::dict &tensors, const char *name, const Work &work) {
    Group group(border, tensors, "");
    border.decide_kind(group.get(name), name);
    if (border.kind() == Kind::single)
        work(float{});
    else
        work(double{});
}

}  // namespace gbpn

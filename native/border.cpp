#include "border.h"

#include <algorithm>

namespace gbpn {
namespace {

using Tensor = nb::ndarray<nb::ro, nb::device::cpu>;

std::string written_out(const nb::handle &object) {
    const nb::object text = nb::steal(PyObject_Str(object.ptr()));
    const char *letters = text.is_valid() ? PyUnicode_AsUTF8(text.ptr()) : nullptr;
    PyErr_Clear();
    return letters ? letters : "?";
}

Tensor open_tensor(const nb::handle &tensor, const std::string &name, bool written) {
    Tensor array;
    bool good;
    if (written) {
        nb::ndarray<nb::device::cpu> writable;
        good = nb::try_cast(tensor, writable, false);
        if (good) array = Tensor(writable);
    } else {
        good = nb::try_cast(tensor, array, false);
    }
    if (!good) {
        std::string got = Py_TYPE(tensor.ptr())->tp_name;
        if (nb::object device = nb::steal(PyObject_GetAttrString(tensor.ptr(), "device")); device.is_valid())
            got += " on " + written_out(device);
        PyErr_Clear();
        refuse(name + " must be a dense CPU tensor" + (written ? " that can be written to" : "") + "; got " +
               got);
    }
    return array;
}

Offered offered(const Tensor &array) {
    static const char *const kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
    const auto dtype = array.dtype();
    const Kind kind = dtype == nb::dtype<float>()    ? Kind::single
                      : dtype == nb::dtype<double>() ? Kind::twice
                                                     : Kind::unknown;
    const std::string word = dtype.code < 7 ? kinds[dtype.code] : "dtype";
    return {array.data(),      kind, word + std::to_string(int(dtype.bits)), array.ndim(), array.shape_ptr(),
            array.stride_ptr()};
}

}  // namespace

void Border::decide_kind(const nb::handle &tensor, const std::string &name) {
    guard_.check_kind(offered(open_tensor(tensor, name, false)), name);
}

View Border::read(const nb::handle &tensor, const std::string &name, Shape shape, Layout layout,
                  bool written) {
    held_.push_back(open_tensor(tensor, name, written));
    return guard_.check(offered(held_.back()), name, shape, layout, written);
}

View Border::read_values(const nb::handle &tensor, const std::string &name) {
    held_.push_back(open_tensor(tensor, name, false));
    return guard_.check_values(offered(held_.back()), name);
}

bool Group::has(const char *name) const {
    return tensors_.contains(name) && !nb::borrow<nb::object>(tensors_[name]).is_none();
}

nb::object Group::get(const std::string &name) {
    asked_.push_back(name);
    PyObject *found = PyDict_GetItemString(tensors_.ptr(), name.c_str());
    if (!found || found == Py_None) refuse(named(name) + " is missing");
    return nb::borrow<nb::object>(found);
}

void Group::end() const {
    for (const auto &[key, value] : tensors_) {
        const std::string name = written_out(key);
        if (!value.is_none() && std::find(asked_.begin(), asked_.end(), name) == asked_.end())
            refuse(named(name) + " is not a tensor of this operator");
    }
}

}  // namespace gbpn

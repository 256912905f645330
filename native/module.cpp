// The Python module gbpn._native. Tensors come in through DLPack, so it is not linked against torch.
#include <nanobind/nanobind.h>

#include "border.h"
#include "simd.h"

namespace nb = nanobind;

void bind_attention(nb::module_ &module);
void bind_doubling(nb::module_ &module);
void bind_field_maps(nb::module_ &module);
void bind_gbp(nb::module_ &module);
void bind_head_planes(nb::module_ &module);
void bind_kept_memory(nb::module_ &module);
void bind_stage_maps(nb::module_ &module);
void bind_upscale(nb::module_ &module);

namespace {

// What cannot be used is gbpn.errors.InputError, or a plain ValueError where the package around this module
// is missing.
void raise_in_python(const std::exception_ptr &error, void *) {
    try {
        std::rethrow_exception(error);
    } catch (const gbpn::BorderError &refused) {
        PyObject *errors = PyDict_GetItemString(PyImport_GetModuleDict(), "gbpn.errors");
        PyObject *type = errors ? PyObject_GetAttrString(errors, "InputError") : nullptr;
        PyErr_Clear();
        PyErr_SetString(type ? type : PyExc_ValueError, refused.what());
        Py_XDECREF(type);
    }
}

}  // namespace

NB_MODULE(_native, module) {
    nb::register_exception_translator(raise_in_python);
    module.doc() = "Kernels of gbpn for CPUs.";
    module.def(
        "simd_level", [] { return gbpn::level_name(gbpn::level()); },
        "Instruction set in use: baseline, avx2 or avx512.");
    module.def("force_simd_level", &gbpn::force_level, nb::arg("name"),
               "Use this instruction set from now on; 'auto' for the best that runs here.");
    bind_attention(module);
    bind_doubling(module);
    bind_field_maps(module);
    bind_gbp(module);
    bind_head_planes(module);
    bind_kept_memory(module);
    bind_stage_maps(module);
    bind_upscale(module);
}

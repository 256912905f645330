// The Python module gbpn._native. Tensors come in through DLPack, so it is not linked against torch.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "simd.h"

namespace nb = nanobind;

void bind_attention(nb::module_ &module);
void bind_gbp(nb::module_ &module);
void bind_upscale(nb::module_ &module);

NB_MODULE(_native, module) {
    module.doc() = "Kernels of gbpn for CPUs.";
    module.def("simd_level", [] { return gbpn::level_name(gbpn::level()); },
               "Instruction set in use: baseline, avx2 or avx512.");
    module.def("force_simd_level", &gbpn::force_level, nb::arg("name"),
               "Use this instruction set from now on; 'auto' for the best that runs here.");
    bind_attention(module);
    bind_gbp(module);
    bind_upscale(module);
}

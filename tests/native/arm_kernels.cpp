// Runs kernels on made-up numbers and writes what comes out; test_arm.py compares two processors' answers.
// usage: arm_kernels FILE
#include <cstdio>
#include <vector>

#include "doubling.h"
#include "field_maps.h"
#include "gbp_inference.h"
#include "head_planes.h"
#include "upscale.h"

using namespace gbpn;

namespace {

FILE *file;
uint64_t state = 1;

double drawn(double low, double high) {  // the same numbers everywhere
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * static_cast<double>(state >> 40) / double(1 << 24);
}

template <class T> struct Tensor {
    std::vector<T> values;
    std::vector<int64_t> shape;

    Tensor(std::vector<int64_t> shape, double low, double high) : shape(shape) {
        int64_t count = 1;
        for (int64_t length : shape) count *= length;
        for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(drawn(low, high)));
    }
    template <class U> operator Array<U>() {
        View view;
        view.data = values.data(), view.rank = static_cast<int>(shape.size());
        int64_t stride = 1;
        for (int axis = view.rank - 1; axis >= 0; stride *= shape[axis--])
            view.shape[axis] = shape[axis], view.stride[axis] = stride;
        return Array<U>(view);
    }
};

// Bytes of a number as it was computed, how many there are, and all of them; everything as a double.
template <class T> void write(const std::vector<T> &values) {
    const double head[2] = {double(sizeof(T)), double(values.size())};
    fwrite(head, sizeof(double), 2, file);
    for (T value : values) {
        const double number = value;
        fwrite(&number, sizeof(number), 1, file);
    }
}

template <class T> void inference(int64_t height, int64_t width, int edges, bool learned, bool checkpoints) {
    const int64_t times = 2, count = learned ? 2 : 0, steps = 2;
    const auto make = [&](std::vector<int64_t> front, double low, double high) {
        front.insert(front.begin(), 1), front.push_back(height), front.push_back(width);
        return Tensor<T>(front, low, high);
    };
    Tensor<T> precision = make({1}, -3, 3), information = precision;
    for (size_t i = 0; i < precision.values.size(); ++i) {
        precision.values[i] = precision.values[i] > 0 ? precision.values[i] : T(0);
        information.values[i] = precision.values[i] * T(drawn(1, 3));
    }
    Tensor<T> local[2] = {make({8}, 0, 1), make({8}, 0, 1)}, far[2] = {make({1}, 0, 1), make({1}, 0, 1)};
    Tensor<T> weight = make({times, 4, edges}, 0.5, 8), difference = make({times, 4, edges}, -0.1, 0.1);
    Tensor<T> damping = make({times}, 0.1, 0.5), far_damping = make({times}, 0.1, 0.5);
    Tensor<T> far_weight = make({times, count}, 0.5, 2), far_difference = make({times, count}, -0.1, 0.1);
    Tensor<T> far_offset = make({times, count, 2}, -4, 4);
    Field<T> field{{information, precision}, {local[0], local[1]}, {far[0], far[1]}, weight, difference, damping,
                   {}, {}, {}, {}};
    if (learned)
        field.far_weight = far_weight, field.far_difference = far_difference, field.far_offset = far_offset,
        field.far_damping = far_damping;
    const Plan plan{1, height, width, edges, static_cast<int>(count), learned, int(times), int(steps), 0.7,
                    checkpoints, 2};
    Tensor<T> belief[2] = {make({1}, 0, 0), make({1}, 0, 0)}, to[2] = {make({8}, 0, 0), make({8}, 0, 0)};
    Tensor<T> to_far[2] = {make({1}, 0, 0), make({1}, 0, 0)};
    Tensor<T> tape = make({times, tape_planes(edges, learned, steps, checkpoints)}, 0, 0);
    infer(field, plan, Outcome<T>{{belief[0], belief[1]}, {to[0], to[1]}, {to_far[0], to_far[1]}, tape});
    Tensor<T> c[2] = {make({1}, -1, 1), make({1}, -1, 1)}, cl[2] = {make({8}, -1, 1), make({8}, -1, 1)};
    Tensor<T> cf[2] = {make({1}, -1, 1), make({1}, -1, 1)};
    Cotangents<T> given{{c[0], c[1]}, {cl[0], cl[1]}, {cf[0], cf[1]}, {to[0], to[1]}, {to_far[0], to_far[1]}, tape};
    Tensor<T> g[6] = {make({1}, 0, 0), make({1}, 0, 0), make({8}, 0, 0), make({8}, 0, 0), make({1}, 0, 0),
                      make({1}, 0, 0)};
    Tensor<T> gw = weight, gd = difference, gb = damping, fw = far_weight, fd = far_difference, fo = far_offset,
              fb = far_damping;
    for (auto *t : {&gw, &gd, &gb, &fw, &fd, &fo, &fb}) t->values.assign(t->values.size(), T(0));
    infer_adjoint(field, plan, given,
                  Gradients<T>{{g[0], g[1]}, {g[2], g[3]}, {g[4], g[5]}, gw, gd, gb, fw, fd, fo, fb});
    for (auto &pair : {&belief, &to, &to_far}) write((*pair)[0].values), write((*pair)[1].values);
    infer(field, plan, Outcome<T>{{belief[0], belief[1]}, {to[0], to[1]}, {to_far[0], to_far[1]}, {}});  // bands
    for (auto &pair : {&belief, &to, &to_far}) write((*pair)[0].values), write((*pair)[1].values);
    for (auto &part : g) write(part.values);
    for (auto *t : {&gw, &gd, &gb, &fw, &fd, &fo, &fb}) write(t->values);
}

std::vector<float> row(int64_t count, double low, double high) { return Tensor<float>({count}, low, high).values; }

void rows_of_maps(int64_t n) {
    const auto a = row(n, 0.1, 3), b = row(n, -2, 2), c = row(n, 0.1, 0.9), d = row(n, 0.1, 0.9);
    const float *const colours[2][3] = {{a.data(), b.data(), c.data()}, {c.data(), d.data(), a.data()}};
    std::vector<float> to(n), also(n);
    const auto done = [&] { write(to), write(also); };
    namespace level = baseline;
    level::times_row(a.data(), b.data(), to.data(), n), done();
    level::add_times_row(a.data(), b.data(), c.data(), to.data(), n), done();
    level::times_exp_row(a.data(), b.data(), to.data(), n), done();
    level::redamp_row(c.data(), b.data(), to.data(), n), done();
    level::squeeze_row(a.data(), b.data(), 0.15f, to.data(), n), done();
    level::precision_row(b.data(), 1e-10f, 8, to.data(), n), done();
    level::sigmoid_row(b.data(), to.data(), n), done();
    level::lost_row(colours[0], colours[1], 0.01f, 0.13f, to.data(), n), done();
    level::keep_row(a.data(), b.data(), c.data(), 1.4f, to.data(), n), done();
    level::belief_out_row(b.data(), a.data(), c.data(), 2, to.data(), also.data(), n), done();
    level::belief_seen_row(b.data(), a.data(), c.data(), 0.5f, to.data(), also.data(), n), done();
    level::measured_row(b.data(), a.data(), 0.5f, to.data(), n), done();
    level::off_row(a.data(), c.data(), 0.05f, also.data(), to.data(), n), done();
    level::steep_row(a.data(), c.data(), 0.05f, to.data(), n), done();
    std::vector<float> scratch(n), large(8 * n);
    for (int factor : {2, 4, 8}) {
        baseline::enlarge_row({a.data(), b.data(), 1, 0.3f, int(n), factor, scratch.data(), large.data()});
        write(large);
    }
}

void rows_of_heads(int64_t width) {
    const int terms = 5, fine_terms = 3, out = 7;
    const auto weight = row(out * terms * 4, -1, 1), bias = row(out, -1, 1), x = row(width * terms, -1, 1);
    const auto fine = row(4 * 2 * width * fine_terms, -1, 1), fine_weight = row(out * fine_terms * 9, -1, 1);
    std::vector<float> planes(out * 4 * width), scratch(head_scratch(width, terms, fine_terms));
    HeadPlanes heads{int(width), out, terms, fine_terms, weight.data(), fine_weight.data(), bias.data(), x.data(), terms,
                     {}, fine_terms, nullptr, planes.data(), 4 * width, scratch.data()};
    for (int n = 0; n < 4; ++n) heads.fine[n] = n ? fine.data() + n * 2 * width * fine_terms : nullptr;
    baseline::head_planes_row(heads);
    write(planes);
    const int64_t padded = (width + upscale_columns - 1) / upscale_columns * upscale_columns;
    std::vector<float> more(terms * padded + 4 * upscale_columns);
    baseline::upscale_row<float>({terms, out, int(width), padded, weight.data(), bias.data(), x.data(), terms, 1,
                                  planes.data(), 4 * width, more.data()});
    write(planes);
    std::vector<float> result(width), line(2 * width + 2);
    const float *lines = fine.data();
    baseline::doubled_adjoint_row<float>(
        {width, {lines, lines, lines + 2 * width, lines + 4 * width}, result.data(), line.data()});
    write(result);
}

}  // namespace

int main(int count, char **names) {
    if (count != 2 || !(file = fopen(names[1], "wb"))) return 1;
    const int64_t sizes[][2] = {{1, 1}, {1, 7}, {33, 65}};
    for (const auto &size : sizes)
        for (int kind = 0; kind < 4; ++kind) {
            inference<double>(size[0], size[1], kind % 2 ? 3 : 1, kind > 1, kind == 3);
            inference<float>(size[0], size[1], kind % 2 ? 3 : 1, kind > 1, kind == 2);
        }
    for (int64_t width : {1, 7, 65}) rows_of_maps(width), rows_of_heads(width);
    return fclose(file) != 0;
}

// The C interface: handles, and C's door to the guard. No exception leaves this file.
#include "gbpn.h"

#include <cstddef>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "gbp_tensors.h"
#include "simd.h"

struct gbpn_inference {
    std::map<std::string, gbpn_array> read, written;
};

namespace gbpn {
namespace {

static_assert(GBPN_MOST_AXES == most_axes, "both headers speak of the same tensors");

thread_local std::string last_error;

Offered offered(const gbpn_array &array) {
    const Kind kind = array.type == GBPN_FLOAT32   ? Kind::single
                      : array.type == GBPN_FLOAT64 ? Kind::twice
                                                   : Kind::unknown;
    const char *const word = kind == Kind::single ? "float32" : "float64";
    return {
        array.data,         kind,        kind == Kind::unknown ? "type " + std::to_string(array.type) : word,
        size_t(array.rank), array.shape, array.stride};
}

// The tensors of one side of a handle, as the readers of gbp_tensors.h take them.
class Given : public Named {
  public:
    Given(Guard &guard, const std::map<std::string, gbpn_array> &arrays, const char *label)
        : guard_(guard), arrays_(arrays), label_(label) {}

    using Named::read;
    bool has(const char *name) const override { return arrays_.count(name) > 0; }
    const gbpn_array &get(const std::string &name) const {
        const auto found = arrays_.find(name);
        if (found == arrays_.end()) refuse(label_ + name + " is missing");
        return found->second;
    }
    View read(const std::string &name, Shape shape, Layout layout, bool written) override {
        asked_.push_back(name);
        return guard_.check(offered(get(name)), label_ + name, shape, layout, written);
    }
    void end() const override {
        for (const auto &[name, array] : arrays_) {
            bool asked = false;
            for (const std::string &known : asked_) asked |= known == name;
            if (!asked) refuse(label_ + name + " is not a tensor of this operator");
        }
    }

  private:
    Guard &guard_;
    const std::map<std::string, gbpn_array> &arrays_;
    std::string label_;
    std::vector<std::string> asked_;
};

template <class T> void run(Guard &guard, const gbpn_inference &handle, const Order &order) {
    Sizes s;
    Times time(order.iterations);
    Given given(guard, handle.read, ""), wanted(guard, handle.written, "outcome.");
    const bool learned = has_learned(given);
    Field<T> field;
    read_field(field, given, s, time, learned);
    const Plan plan = order.plan<T>(s, learned);
    Outcome<T> out;
    wanted.read(out.belief, "belief", {s.batch, 1, s.height, s.width});
    read_messages(out.local, out.far, wanted, s);
    wanted.end();
    if (!s.nothing()) infer(field, plan, out);
}

template <class Work> gbpn_status guarded(const Work &work) {
    try {
        try {
            work();
            return GBPN_OK;
        } catch (const BorderError &refused) {
            last_error = refused.what();
            return GBPN_REFUSED;
        } catch (const std::bad_alloc &) {
            last_error = "there is not enough memory: take a smaller image, or fewer at a time";
            return GBPN_NO_MEMORY;
        } catch (const std::invalid_argument &wrong) {  // such as GBPN_SIMD in the environment
            last_error = wrong.what();
            return GBPN_REFUSED;
        } catch (const std::exception &error) {
            last_error = error.what();
            return GBPN_FAILED;
        }
    } catch (...) {  // not even the words fit into memory
        return GBPN_NO_MEMORY;
    }
}

template <class T> void require(const T *pointer, const char *name) {
    if (!pointer) refuse(std::string(name) + " must not be NULL");
}

gbpn_status set(std::map<std::string, gbpn_array> *arrays, const char *name, const gbpn_array *array) {
    return guarded([&] {
        require(arrays, "inference");
        require(name, "name");
        if (!array) {
            arrays->erase(name);
            return;
        }
        if (array->rank < 0 || array->rank > GBPN_MOST_AXES)
            refuse(std::string(name) + " must have 0 to 6 axes; got rank " + std::to_string(array->rank));
        if (!array->data) refuse(std::string(name) + " must have data; got NULL");
        (*arrays)[name] = *array;
    });
}

}  // namespace
}  // namespace gbpn

extern "C" {

int32_t gbpn_interface(void) { return GBPN_INTERFACE; }

const char *gbpn_error(void) { return gbpn::last_error.c_str(); }

const char *gbpn_simd_level(void) {
    const char *name = "baseline";
    gbpn::guarded([&] { name = gbpn::level_name(gbpn::level()); });
    return name;
}

gbpn_status gbpn_dense(gbpn_array *made, void *data, int32_t type, int32_t rank, const int64_t *shape) {
    return gbpn::guarded([&] {
        gbpn::require(made, "made");
        gbpn::require(shape, "shape");
        gbpn::require_between("rank", rank, 0, GBPN_MOST_AXES);
        gbpn_array array{};
        array.data = data, array.type = type, array.rank = rank;
        for (int64_t axis = rank - 1, step = 1; axis >= 0; --axis) {
            if (shape[axis] < 0)
                gbpn::refuse("lengths must be at least 0; got " + std::to_string(shape[axis]));
            array.shape[axis] = shape[axis], array.stride[axis] = step;
            step = gbpn::product({step, shape[axis]});
        }
        *made = array;
    });
}

gbpn_status gbpn_inference_new(gbpn_inference **made) {
    return gbpn::guarded([&] {
        gbpn::require(made, "made");
        *made = new gbpn_inference;
    });
}

void gbpn_inference_free(gbpn_inference *inference) { delete inference; }

gbpn_status gbpn_inference_read(gbpn_inference *inference, const char *name, const gbpn_array *array) {
    return gbpn::set(inference ? &inference->read : nullptr, name, array);
}

gbpn_status gbpn_inference_write(gbpn_inference *inference, const char *name, const gbpn_array *array) {
    return gbpn::set(inference ? &inference->written : nullptr, name, array);
}

gbpn_status gbpn_inference_run(gbpn_inference *inference, const gbpn_schedule *schedule) {
    return gbpn::guarded([&] {
        using namespace gbpn;
        require(inference, "inference");
        require(schedule, "schedule");
        const Order order{schedule->iterations, schedule->steps, schedule->reweighting, false,
                          schedule->threads};
        order.check();
        Guard guard;
        const Given given(guard, inference->read, "");
        guard.check_kind(offered(given.get("unary_information")), "unary_information");
        if (guard.kind() == Kind::single)
            run<float>(guard, *inference, order);
        else
            run<double>(guard, *inference, order);
    });
}

}  // extern "C"

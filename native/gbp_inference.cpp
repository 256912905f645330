#include "gbp_inference.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "threads.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#endif

namespace gbpn {
namespace {

// Planes are walked across rows by the horizontal sweeps, a page per row: large pages spare the address
// look-ups.
void prefer_large_pages(void *start, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const uintptr_t page = 4096, first = (reinterpret_cast<uintptr_t>(start) + page - 1) & ~(page - 1);
    const uintptr_t last = (reinterpret_cast<uintptr_t>(start) + bytes) & ~(page - 1);
    if (last > first + (size_t(4) << 20))
        madvise(reinterpret_cast<void *>(first), last - first, MADV_HUGEPAGE);
#else
    (void)start, (void)bytes;
#endif
}

template <class T> void prefer_large_pages(const Array<T> &array) {
    int64_t count = 1;
    for (int axis = 0; axis < array.rank; ++axis) count *= array.shape[axis];
    if (array) prefer_large_pages(array.data, count * sizeof(T));
}

// Memory that a thread keeps for its next call, up to a limit: fresh pages cost as much as an iteration.
class Kept {
  public:
    ~Kept() { std::free(memory_); }
    void *take(size_t bytes) {
        if (bytes > size_) {
            std::free(memory_);
            size_ = 0;
            memory_ = fresh(bytes);
            size_ = bytes;
        }
        return memory_;
    }
    static void *fresh(size_t bytes) {
        void *memory = std::aligned_alloc(huge, bytes);
        if (!memory) throw std::bad_alloc();
        prefer_large_pages(memory, bytes);
        return memory;
    }
    static constexpr size_t huge = size_t(2) << 20, limit = size_t(64) << 20;

  private:
    void *memory_ = nullptr;
    size_t size_ = 0;
};

// Working memory of one image, cut into pieces. One at a time in each thread.
template <class T> class Workspace {
  public:
    explicit Workspace(int64_t elements) {
        static thread_local Kept kept;
        const size_t bytes = (elements * sizeof(T) + Kept::huge - 1) / Kept::huge * Kept::huge;
        own_ = bytes > Kept::limit ? Kept::fresh(bytes) : nullptr;
        next_ = static_cast<T *>(own_ ? own_ : kept.take(bytes));
        all_ = next_, bytes_ = bytes;
        ASAN_POISON_MEMORY_REGION(all_, bytes_);  // a sanitizer then sees who leaves a piece
    }
    ~Workspace() {
        ASAN_UNPOISON_MEMORY_REGION(all_, bytes_);
        std::free(own_);
    }
    Workspace(const Workspace &) = delete;
    Workspace &operator=(const Workspace &) = delete;

    T *take(int64_t elements) {
        T *piece = next_;
        next_ += rounded(elements);
        ASAN_UNPOISON_MEMORY_REGION(piece, elements * sizeof(T));
        return piece;
    }
    static int64_t rounded(int64_t elements) { return (elements + 31) / 16 * 16; }

  private:
    void *own_, *all_;
    size_t bytes_;
    T *next_;
};

// Calls work(first row, row after the last) for pieces of an image.
template <class Work> void over_rows(int64_t height, int threads, const Work &work) {
    constexpr int64_t at_once = 16;
    if (threads == 1) return work(0, height);
    parallel((height + at_once - 1) / at_once, threads,
             [&](int64_t piece) { work(piece * at_once, std::min((piece + 1) * at_once, height)); });
}

int64_t field_size(const Plan &plan) { return 2 * (plan.height + 2) * (plan.width + 2); }

// One image of a batch on its way through the iterations.
template <class T> struct Image {
    const Field<T> &field;
    const Plan &plan;
    int64_t b;
    T rho;
    T *slot[8][2], *far[2];  // messages, changed in place
    T *base[2], *fields[2], *scratch;

    Image(const Field<T> &field, const Plan &plan, int64_t b, Workspace<T> &space)
        : field(field), plan(plan), b(b), rho(static_cast<T>(plan.reweighting)) {
        for (int part = 0; part < 2; ++part) base[part] = space.take(plan.pixels());
        for (T *&f : fields) f = plan.learned ? space.take(field_size(plan)) : nullptr;
        scratch = space.take(sweep_scratch(plan.height, plan.width));
    }

    static int64_t size(const Plan &plan) {
        const auto r = &Workspace<T>::rounded;
        return 2 * r(plan.pixels()) + (plan.learned ? 2 * r(field_size(plan)) : 0) +
               r(sweep_scratch(plan.height, plan.width));
    }

    size_t bytes() const { return plan.pixels() * sizeof(T); }

    Edges<T> edges(int t, int direction) const {
        Edges<T> e{};
        for (int i = 0; i < plan.edges; ++i) {
            e.weight[i] = field.weight.at(b, t, direction, i);
            e.difference[i] = field.difference.at(b, t, direction, i);
        }
        e.damping = field.damping.at(b, t);
        return e;
    }

    LearnedEdges<T> learned(int t) const {
        LearnedEdges<T> e{};
        for (int k = 0; k < plan.count; ++k) {
            e.weight[k] = field.far_weight.at(b, t, k);
            e.difference[k] = field.far_difference.at(b, t, k);
            for (int axis = 0; axis < 2; ++axis) e.offset[k][axis] = field.far_offset.at(b, t, k, axis);
        }
        e.damping = field.far_damping.at(b, t);
        return e;
    }

    // unary × non-local part, fixed during the four sweeps.
    void sweep_base(const T *const total[2]) {
        for (int part = 0; part < 2; ++part) {
            const T *unary = field.unary[part].at(b), *other = total[part];
            for (int64_t i = 0; i < plan.pixels(); ++i) base[part][i] = unary[i] + rho * other[i];
        }
    }

    void sum(T *const result[2], bool with_far, const T *const *heard = nullptr) const {
        by_rows([&](int64_t first, int64_t last) { sum(result, with_far, heard, first, last); });
    }

    void sum(T *const result[2], bool with_far, const T *const *heard, int64_t first, int64_t last) const {
        const int64_t from = first * plan.width;
        Slots<T> s{};
        s.pixels = last * plan.width - from;
        s.reweighting = rho;
        for (int part = 0; part < 2; ++part) {
            s.unary[part] = field.unary[part].at(b) + from;
            s.far[part] = with_far ? far[part] + from : nullptr;
            s.result[part] = result[part] + from;
            if (heard)
                s.heard[part] = heard[part] + from;
            else
                for (int m = 0; m < 8; ++m) s.slot[m][part] = slot[m][part] + from;
        }
        GBPN_PICK(sum_slots<T>)(s);
    }

    Sweep<T> sweep_of(int t, int direction) const {
        Sweep<T> s{};
        s.height = plan.height, s.width = plan.width;
        s.direction = direction, s.edges = plan.edges, s.reweighting = rho;
        for (int part = 0; part < 2; ++part) {
            s.base[part] = base[part];
            for (int m = 0; m < 8; ++m) s.slot[m][part] = slot[m][part];
        }
        s.edge = edges(t, direction);
        s.scratch = scratch;
        return s;
    }

    // One iteration; `tape` receives what it overwrites, plane after plane, unless it is null.
    void iterate(int t, T *tape) {
        sweep_base(far);
        for (int direction = 0; direction < 4; ++direction) {
            Sweep<T> s = sweep_of(t, direction);
            if (tape)
                for (int p = 0; p < 2 * plan.edges; ++p, tape += plan.pixels()) s.saved[p / 2][p % 2] = tape;
            GBPN_PICK(sweep<T>)(s);
        }
        if (plan.learned && plan.steps) learn(t, nullptr, tape);
    }

    // The steps along learned edges; `heard` is the sum of the local messages, null: it is made here.
    void learn(int t, const T *const *heard, T *tape) {
        for (T *f : fields) GBPN_PICK(clear_border<T>)(plan.height, plan.width, f);
        by_rows([&](int64_t first, int64_t last) {
            sum(base, false, heard, first, last);
            GBPN_PICK(make_field<T>)(base, far, rho, first, last, plan.width, fields[0]);
        });
        NonLocal<T> n{};
        n.height = plan.height, n.width = plan.width, n.count = plan.count, n.reweighting = rho;
        for (int part = 0; part < 2; ++part)
            n.base[part] = base[part], n.total[part] = n.result[part] = far[part];
        n.edge = learned(t);
        for (int step = 0; step < plan.steps; ++step) {
            if (tape)
                for (int part = 0; part < 2; ++part, tape += plan.pixels())
                    std::memcpy(tape, far[part], bytes());
            n.field = fields[step % 2];
            n.next_field = step + 1 < plan.steps ? fields[(step + 1) % 2] : nullptr;
            by_rows([&](int64_t first, int64_t last) {
                NonLocal<T> rows = n;
                rows.first = first, rows.last = last;
                GBPN_PICK(nonlocal_step<T>)(rows);
            });
        }
    }

    // Calls work(first row, row after the last) for all rows, on the threads that images leave over.
    template <class Work> void by_rows(const Work &work) const {
        over_rows(plan.height, plan.batch > 1 ? 1 : plan.threads, work);
    }

    void store_messages(T *tape) const {
        for (int part = 0; part < 2; ++part) {
            for (int m = 0; m < 8; ++m)
                std::memcpy(tape + (2 * m + part) * plan.pixels(), slot[m][part], bytes());
            std::memcpy(tape + (16 + part) * plan.pixels(), far[part], bytes());
        }
    }

    void load_messages(const T *tape) {
        for (int part = 0; part < 2; ++part) {
            for (int m = 0; m < 8; ++m)
                std::memcpy(slot[m][part], tape + (2 * m + part) * plan.pixels(), bytes());
            std::memcpy(far[part], tape + (16 + part) * plan.pixels(), bytes());
        }
    }
};

// The sweeps of one image in diagonal bands (gbp.h).
template <class T> struct Banded {
    // How many lines the bands have, and where.
    struct Layout {
        int64_t lanes, packs, count, longest, lines[2] = {0, 0}, length[2];
        std::vector<int64_t> line[2];

        explicit Layout(const Plan &plan) : lanes(GBPN_PICK(band_lanes<T>)()), packs(4 * lanes) {
            count = (plan.height + plan.width - 1 + lanes - 1) / lanes;
            length[0] = plan.width, length[1] = plan.height;
            longest = std::min(plan.height, plan.width) + lanes;
            for (int axis = 0; axis < 2; ++axis)
                for (int64_t n = 0; n < count; ++n) {
                    const int64_t first = std::max<int64_t>(0, n * lanes - length[1 - axis] + 1);
                    const int64_t last = std::min(length[axis], (n + 1) * lanes);
                    line[axis].push_back(lines[axis] - first);
                    lines[axis] += last - first;
                }
        }
        int64_t columns() const { return lines[0] * band_column_planes * lanes; }
        int64_t rows() const { return lines[1] * band_row_planes * lanes; }
        int64_t edges() const { return lines[0] * band_edge_planes * lanes; }
        int64_t damping() const { return lines[0] * lanes; }
        int64_t scratch() const { return band_pieces * longest * lanes; }
        int64_t carry(int axis) const { return (length[axis] + 2) * packs; }
    };

    Image<T> &image;
    const Layout layout;
    Bands<T> bands{};
    T *heard[2];

    Banded(Image<T> &image, Workspace<T> &space) : image(image), layout(image.plan) {
        const Plan &plan = image.plan;
        bands.height = plan.height, bands.width = plan.width, bands.reweighting = image.rho;
        bands.columns = space.take(layout.columns()), bands.rows = space.take(layout.rows());
        for (T *&edges : bands.edges) edges = space.take(layout.edges());
        bands.damping = space.take(layout.damping());
        bands.longest = layout.longest, bands.scratch = space.take(layout.scratch());
        for (int axis = 0; axis < 2; ++axis)
            bands.carry[axis] = space.take(layout.carry(axis)) + layout.packs;
        for (int part = 0; part < 2; ++part) {
            heard[part] = space.take(plan.pixels());
            bands.base[part] = image.base[part];
        }
        bands.column_line = layout.line[0].data(), bands.row_line = layout.line[1].data();
    }

    static int64_t size(const Plan &plan) {
        const auto r = &Workspace<T>::rounded;
        const Layout layout(plan);
        return r(layout.columns()) + r(layout.rows()) + 2 * r(layout.edges()) + r(layout.damping()) +
               r(layout.scratch()) + r(layout.carry(0)) +
               r(layout.carry(1)) + 2 * r(plan.pixels());
    }

    void begin(bool empty) {
        if (empty) {
            std::memset(bands.columns, 0, layout.columns() * sizeof(T));
            std::memset(bands.rows, 0, layout.rows() * sizeof(T));
            return;
        }
        const T *slot[message_slots][2];
        for (int m = 0; m < message_slots; ++m)
            for (int part = 0; part < 2; ++part) slot[m][part] = image.field.local[part].at(image.b, m);
        for (int64_t n = 0; n < layout.count; ++n) GBPN_PICK(messages_to_band<T>)(bands, n, slot);
    }

    void iterate(int t) {
        const Plan &plan = image.plan;
        const bool learn = plan.learned && plan.steps;
        image.sweep_base(image.far);
        for (int direction = 0; direction < 4; ++direction) bands.edge[direction] = image.edges(t, direction);
        const auto changes = [&](const auto &parameter) { return t == 0 || parameter.shape[1] > 1; };
        const Field<T> &field = image.field;
        const EdgesWanted wanted{changes(field.weight), changes(field.difference), changes(field.damping)};
        if (wanted.weight || wanted.difference || wanted.damping)
            for (int64_t n = 0; n < layout.count; ++n) GBPN_PICK(edges_to_band<T>)(bands, n, wanted);
        for (int part = 0; part < 2; ++part)
            bands.heard[part] = learn || t + 1 == plan.iterations ? heard[part] : nullptr;
        for (const bool forward : {true, false}) {
            clear_carry();
            for (int64_t n = 0; n < layout.count; ++n) {
                const int64_t number = forward ? n : layout.count - 1 - n;
                GBPN_PICK(band_along_rows<T>)(bands, number, forward);
                GBPN_PICK(band_along_columns<T>)(bands, number, forward);
            }
        }
        if (learn) image.learn(t, heard, nullptr);
    }

    void end() {
        for (int64_t n = 0; n < layout.count; ++n) GBPN_PICK(messages_from_band<T>)(bands, n, image.slot);
    }

  private:
    void clear_carry() {
        for (int axis = 0; axis < 2; ++axis)
            std::memset(bands.carry[axis] - layout.packs, 0, layout.carry(axis) * sizeof(T));
    }
};

// Whether every message is (0, 0), as at a cold start.
template <class T> bool all_zero(const T *values, int64_t count) {
    for (int64_t i = 0; i < count;) {
        T any{};
        for (const int64_t end = i + 4096 < count ? i + 4096 : count; i < end; ++i)
            any = values[i] != T{} ? T(1) : any;
        if (any != T{}) return false;
    }
    return true;
}

}  // namespace

template <class T> void infer(const Field<T> &field, const Plan &plan, const Outcome<T> &out) {
    for (int part = 0; part < 2; ++part) prefer_large_pages(out.local[part]);
    prefer_large_pages(out.tape);
    const bool in_bands = !out.tape && plan.edges == max_edges && plan.iterations > 0;
    parallel(plan.batch, plan.threads, [&](int64_t b) {
        Workspace<T> space(Image<T>::size(plan) + (in_bands ? Banded<T>::size(plan) : 0));
        Image<T> image(field, plan, b, space);
        bool empty = true;
        for (int part = 0; part < 2; ++part) {
            for (int m = 0; m < 8; ++m) {
                image.slot[m][part] = out.local[part].at(b, m);
                const T *given = field.local[part].at(b, m);
                if (in_bands)
                    empty = empty && all_zero(given, plan.pixels());
                else
                    std::memcpy(image.slot[m][part], given, image.bytes());
            }
            image.far[part] = out.far[part].at(b);
            std::memcpy(image.far[part], field.far[part].at(b), image.bytes());
        }
        T *const belief[2] = {out.belief[0].at(b), out.belief[1].at(b)};
        if (in_bands) {
            Banded<T> banded(image, space);
            banded.begin(empty);
            for (int t = 0; t < plan.iterations; ++t) banded.iterate(t);
            banded.end();
            image.sum(belief, true, banded.heard);
            return;
        }
        for (int t = 0; t < plan.iterations; ++t) {
            T *tape = out.tape ? out.tape.at(b, t) : nullptr;
            if (tape && plan.checkpoints) image.store_messages(tape);
            image.iterate(t, plan.checkpoints ? nullptr : tape);
        }
        image.sum(belief, true);
    });
}

namespace {

// The way back of one image.
template <class T> struct Return {
    Image<T> &image;
    const Gradients<T> &grads;
    const Plan &plan;
    T *grad_slot[8][2], *grad_far[2], *grad_unary[2], *grad_base[2], *grad_field, *overwritten;

    Return(Image<T> &image, const Gradients<T> &grads, Workspace<T> &space)
        : image(image), grads(grads), plan(image.plan) {
        const int64_t b = image.b;
        for (int part = 0; part < 2; ++part) {
            for (int m = 0; m < 8; ++m) {
                image.slot[m][part] = space.take(plan.pixels());
                grad_slot[m][part] = grads.local[part].at(b, m);
            }
            image.far[part] = space.take(plan.pixels());
            grad_base[part] = space.take(plan.pixels());
            grad_far[part] = grads.far[part].at(b);
            grad_unary[part] = grads.unary[part].at(b);
        }
        grad_field = plan.learned ? space.take(field_size(plan)) : nullptr;
        overwritten = plan.checkpoints ? space.take(plan.overwritten() * plan.pixels()) : nullptr;
    }

    static int64_t size(const Plan &plan) {
        const auto r = &Workspace<T>::rounded;
        return Image<T>::size(plan) + 20 * r(plan.pixels()) + (plan.learned ? r(field_size(plan)) : 0) +
               (plan.checkpoints ? r(plan.overwritten() * plan.pixels()) : 0);
    }

    void start(const Cotangents<T> &given) {
        const int64_t b = image.b, n = plan.pixels();
        for (int part = 0; part < 2; ++part) {
            const T *belief = given.belief[part].at(b);
            std::memcpy(grad_unary[part], belief, image.bytes());
            for (int m = 0; m < 8; ++m) {
                const T *local = given.local[part].at(b, m);
                for (int64_t i = 0; i < n; ++i) grad_slot[m][part][i] = local[i] + image.rho * belief[i];
                if (!plan.checkpoints)
                    std::memcpy(image.slot[m][part], given.final_local[part].at(b, m), image.bytes());
            }
            const T *far = given.far[part].at(b);
            for (int64_t i = 0; i < n; ++i) grad_far[part][i] = far[i] + image.rho * belief[i];
            if (!plan.checkpoints) std::memcpy(image.far[part], given.final_far[part].at(b), image.bytes());
        }
    }

    void clear_grad_base() {
        for (T *plane : grad_base) std::memset(plane, 0, image.bytes());
    }

    void nonlocal(int t, const T *totals) {
        const int64_t n = plan.pixels(), b = image.b;
        image.sum(image.base, false);
        clear_grad_base();
        NonLocalAdjoint<T> a{};
        a.height = plan.height, a.width = plan.width, a.count = plan.count, a.reweighting = image.rho;
        a.edge = image.learned(t);
        a.field = image.fields[0];
        a.grad_field = grad_field;
        for (int k = 0; k < plan.count; ++k) {
            a.grad_weight[k] = grads.far_weight.at(b, t, k);
            a.grad_difference[k] = grads.far_difference.at(b, t, k);
            for (int axis = 0; axis < 2; ++axis) a.grad_offset[k][axis] = grads.far_offset.at(b, t, k, axis);
        }
        a.grad_damping = grads.far_damping.at(b, t);
        a.add = true;
        for (int part = 0; part < 2; ++part)
            a.grad_total[part] = grad_far[part], a.grad_base[part] = grad_base[part];
        for (int step = plan.steps - 1; step >= 0; --step) {
            for (int part = 0; part < 2; ++part) a.total[part] = totals + (2 * step + part) * n;
            GBPN_PICK(clear_border<T>)(plan.height, plan.width, image.fields[0]);
            GBPN_PICK(make_field<T>)
            (image.base, a.total, image.rho, 0, plan.height, plan.width, image.fields[0]);
            GBPN_PICK(nonlocal_adjoint<T>)(a);
        }
        for (int part = 0; part < 2; ++part) {
            std::memcpy(image.far[part], totals + part * n, image.bytes());
            for (int64_t i = 0; i < n; ++i) grad_unary[part][i] += grad_base[part][i];
            for (int m = 0; m < 8; ++m)
                for (int64_t i = 0; i < n; ++i) grad_slot[m][part][i] += image.rho * grad_base[part][i];
        }
    }

    void sweeps(int t, const T *saved) {
        const int64_t n = plan.pixels(), b = image.b;
        image.sweep_base(image.far);
        clear_grad_base();
        for (int direction = 3; direction >= 0; --direction) {
            const Sweep<T> s = image.sweep_of(t, direction);
            SweepAdjoint<T> a{};
            a.height = s.height, a.width = s.width, a.direction = direction, a.edges = s.edges;
            a.reweighting = s.reweighting, a.edge = s.edge, a.scratch = s.scratch;
            std::memcpy(a.base, s.base, sizeof(a.base));
            std::memcpy(a.slot, s.slot, sizeof(a.slot));
            std::memcpy(a.grad_slot, grad_slot, sizeof(a.grad_slot));
            std::memcpy(a.grad_base, grad_base, sizeof(a.grad_base));
            for (int p = 0; p < 2 * plan.edges; ++p)
                a.saved[p / 2][p % 2] = saved + (2 * plan.edges * direction + p) * n;
            for (int e = 0; e < plan.edges; ++e) {
                a.grad_edge.weight[e] = grads.weight.at(b, t, direction, e);
                a.grad_edge.difference[e] = grads.difference.at(b, t, direction, e);
            }
            a.grad_edge.damping = grads.damping.at(b, t);
            a.grad_edge.add_edges = a.grad_edge.add_damping = true;
            GBPN_PICK(sweep_adjoint<T>)(a);
        }
        for (int part = 0; part < 2; ++part)
            for (int64_t i = 0; i < n; ++i) {
                grad_unary[part][i] += grad_base[part][i];
                grad_far[part][i] += image.rho * grad_base[part][i];
            }
    }

    void iteration(int t, const T *tape) {
        if (plan.checkpoints) {
            image.load_messages(tape);
            image.iterate(t, overwritten);
            tape = overwritten;
        }
        if (plan.learned && plan.steps) nonlocal(t, tape + 8 * plan.edges * plan.pixels());
        sweeps(t, tape);
    }
};

}  // namespace

template <class T>
void infer_adjoint(const Field<T> &field, const Plan &plan, const Cotangents<T> &given,
                   const Gradients<T> &grads) {
    for (int part = 0; part < 2; ++part) prefer_large_pages(grads.local[part]);
    parallel(plan.batch, plan.threads, [&](int64_t b) {
        Workspace<T> space(Return<T>::size(plan));
        Image<T> image(field, plan, b, space);
        Return<T> way(image, grads, space);
        way.start(given);
        for (int t = plan.iterations - 1; t >= 0; --t) way.iteration(t, given.tape.at(b, t));
    });
}

template <class T> void run_sweep(Sweep<T> s) {
    Workspace<T> space(Workspace<T>::rounded(sweep_scratch(s.height, s.width)));
    s.scratch = space.take(sweep_scratch(s.height, s.width));
    GBPN_PICK(sweep<T>)(s);
}

template <class T> void run_sweep_adjoint(SweepAdjoint<T> s) {
    Workspace<T> space(Workspace<T>::rounded(sweep_scratch(s.height, s.width)));
    s.scratch = space.take(sweep_scratch(s.height, s.width));
    GBPN_PICK(sweep_adjoint<T>)(s);
}

template <class T> void run_nonlocal(NonLocal<T> s, int threads) {
    const int64_t size = 2 * (s.height + 2) * (s.width + 2);
    Workspace<T> space(Workspace<T>::rounded(size));
    T *const field = space.take(size);
    s.field = field;
    GBPN_PICK(clear_border<T>)(s.height, s.width, field);
    over_rows(s.height, threads, [&](int64_t first, int64_t last) {
        GBPN_PICK(make_field<T>)(s.base, s.total, s.reweighting, first, last, s.width, field);
    });
    over_rows(s.height, threads, [&](int64_t first, int64_t last) {
        NonLocal<T> rows = s;
        rows.first = first, rows.last = last;
        GBPN_PICK(nonlocal_step<T>)(rows);
    });
}

template <class T> void run_nonlocal_adjoint(NonLocalAdjoint<T> s, const T *const base[2]) {
    const int64_t size = 2 * (s.height + 2) * (s.width + 2);
    Workspace<T> space(2 * Workspace<T>::rounded(size));
    T *field = space.take(size);
    s.grad_field = space.take(size);
    GBPN_PICK(clear_border<T>)(s.height, s.width, field);
    GBPN_PICK(make_field<T>)(base, s.total, s.reweighting, 0, s.height, s.width, field);
    s.field = field;
    GBPN_PICK(nonlocal_adjoint<T>)(s);
}

template <class T> Range scan_values(const T *values, int64_t count) {
    Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 0};
    GBPN_PICK(scan<T>)(values, count, range);
    return range;
}

#define GBPN_INSTANTIATE(T)                                                            \
    template void infer(const Field<T> &, const Plan &, const Outcome<T> &);           \
    template void infer_adjoint(const Field<T> &, const Plan &, const Cotangents<T> &, \
                                const Gradients<T> &);                                 \
    template void run_sweep(Sweep<T>);                                                 \
    template void run_sweep_adjoint(SweepAdjoint<T>);                                  \
    template void run_nonlocal(NonLocal<T>, int);                                      \
    template void run_nonlocal_adjoint(NonLocalAdjoint<T>, const T *const[2]);         \
    template Range scan_values(const T *, int64_t);
GBPN_INSTANTIATE(float)
GBPN_INSTANTIATE(double)

}  // namespace gbpn

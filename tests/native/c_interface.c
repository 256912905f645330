/* Wrong calls of the C interface, which must each be refused with the tensor's name; run by test_c_interface.py.
 * With two file names as arguments: reads a field, computes, and writes what comes out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gbpn.h"

static int failures = 0;

static void expect(const char *what, gbpn_status got, gbpn_status wanted, const char *words) {
    if (got == wanted && (wanted == GBPN_OK || strstr(gbpn_error(), words))) return;
    printf("%s: status %d, “%s”; wanted %d with “%s”\n", what, got, gbpn_error(), wanted, words);
    ++failures;
}

enum { H = 5, W = 7, T = 2, E = 3, K = 2, TENSORS = 13, WRITTEN = 6 };

static const struct {
    const char *name;
    int rank;
    int64_t shape[6];
} tensors[TENSORS] = {
    {"unary_information", 4, {1, 1, H, W}},
    {"unary_precision", 4, {1, 1, H, W}},
    {"messages_local_information", 4, {1, 8, H, W}},
    {"messages_local_precision", 4, {1, 8, H, W}},
    {"messages_nonlocal_information", 4, {1, 1, H, W}},
    {"messages_nonlocal_precision", 4, {1, 1, H, W}},
    {"local_weight", 6, {1, T, 4, E, H, W}},
    {"local_difference", 6, {1, T, 4, E, H, W}},
    {"local_damping", 4, {1, T, H, W}},
    {"nonlocal_weight", 5, {1, T, K, H, W}},
    {"nonlocal_difference", 5, {1, T, K, H, W}},
    {"nonlocal_offset", 6, {1, T, K, 2, H, W}},
    {"nonlocal_damping", 4, {1, T, H, W}},
}, results[WRITTEN] = {
    {"belief_information", 4, {1, 1, H, W}},
    {"belief_precision", 4, {1, 1, H, W}},
    {"messages_local_information", 4, {1, 8, H, W}},
    {"messages_local_precision", 4, {1, 8, H, W}},
    {"messages_nonlocal_information", 4, {1, 1, H, W}},
    {"messages_nonlocal_precision", 4, {1, 1, H, W}},
};

static size_t values(int rank, const int64_t *shape) {
    size_t count = 1;
    for (int axis = 0; axis < rank; ++axis) count *= (size_t)shape[axis];
    return count;
}

static void refused(gbpn_inference *inference, const gbpn_schedule *good, float *data[TENSORS],
                    gbpn_array read[TENSORS], gbpn_array written[WRITTEN]) {
    gbpn_array wrong;
    gbpn_schedule schedule = *good;
    char words[128];
    for (int n = 0; n < TENSORS; ++n) {
        const char *name = tensors[n].name;
        wrong = read[n], wrong.type = GBPN_FLOAT64;
        expect("another type", gbpn_inference_read(inference, name, &wrong), GBPN_OK, "");
        expect("another type", gbpn_inference_run(inference, good), GBPN_REFUSED, n ? name : "unary_precision");
        wrong = read[n], wrong.shape[wrong.rank - 1] += 1;
        expect("another width", gbpn_inference_read(inference, name, &wrong), GBPN_OK, "");
        expect("another width", gbpn_inference_run(inference, good), GBPN_REFUSED, "must have");
        wrong = read[n], wrong.rank -= 1;
        expect("an axis less", gbpn_inference_read(inference, name, &wrong), GBPN_OK, "");
        snprintf(words, sizeof(words), "%s must have shape", name);
        expect("an axis less", gbpn_inference_run(inference, good), GBPN_REFUSED, words);
        wrong = read[n], wrong.stride[wrong.rank - 1] = 2;
        expect("a stride", gbpn_inference_read(inference, name, &wrong), GBPN_OK, "");
        snprintf(words, sizeof(words), "%s must have contiguous rows", name);
        expect("a stride", gbpn_inference_run(inference, good), GBPN_REFUSED, words);
        wrong = read[n], wrong.data = (char *)wrong.data + 1;
        expect("a crooked start", gbpn_inference_read(inference, name, &wrong), GBPN_OK, "");
        snprintf(words, sizeof(words), "%s must start at a multiple of 4", name);
        expect("a crooked start", gbpn_inference_run(inference, good), GBPN_REFUSED, words);
        wrong = read[n], wrong.stride[0] = INT64_MAX / 2, wrong.shape[0] = 9;
        expect("far strides", gbpn_inference_read(inference, name, &wrong), GBPN_OK, "");
        expect("far strides", gbpn_inference_run(inference, good), GBPN_REFUSED, name);
        wrong = written[0], memcpy(wrong.shape, read[n].shape, sizeof(wrong.shape));
        memcpy(wrong.stride, read[n].stride, sizeof(wrong.stride)), wrong.rank = read[n].rank;
        expect("shared memory", gbpn_inference_read(inference, name, &wrong), GBPN_OK, "");
        expect("shared memory", gbpn_inference_run(inference, good), GBPN_REFUSED, "must not share memory");
        expect("nothing", gbpn_inference_read(inference, name, NULL), GBPN_OK, "");
        snprintf(words, sizeof(words), "%s is missing", name);
        expect("nothing", gbpn_inference_run(inference, good), GBPN_REFUSED, words);
        wrong = read[n], wrong.data = NULL;
        expect("null data", gbpn_inference_read(inference, name, &wrong), GBPN_REFUSED, "must have data");
        wrong = read[n], wrong.rank = 7;
        expect("seven axes", gbpn_inference_read(inference, name, &wrong), GBPN_REFUSED, "0 to 6 axes");
        expect("back", gbpn_inference_read(inference, name, &read[n]), GBPN_OK, "");
    }
    expect("a stranger", gbpn_inference_read(inference, "colour", &read[0]), GBPN_OK, "");
    expect("a stranger", gbpn_inference_run(inference, good), GBPN_REFUSED, "colour is not a tensor");
    expect("back", gbpn_inference_read(inference, "colour", NULL), GBPN_OK, "");
    schedule.reweighting = 0;
    expect("reweighting", gbpn_inference_run(inference, &schedule), GBPN_REFUSED, "reweighting");
    schedule = *good, schedule.iterations = 3;
    expect("iterations", gbpn_inference_run(inference, &schedule), GBPN_REFUSED, "local_weight");
    schedule = *good, schedule.threads = 0;
    expect("threads", gbpn_inference_run(inference, &schedule), GBPN_REFUSED, "threads");
    expect("no schedule", gbpn_inference_run(inference, NULL), GBPN_REFUSED, "schedule");
    expect("no handle", gbpn_inference_run(NULL, good), GBPN_REFUSED, "inference");
    expect("no handle", gbpn_inference_read(NULL, "unary_precision", &read[1]), GBPN_REFUSED, "inference");
    expect("no name", gbpn_inference_read(inference, NULL, &read[1]), GBPN_REFUSED, "name");
    expect("no place", gbpn_inference_new(NULL), GBPN_REFUSED, "made");
    expect("a length", gbpn_dense(&wrong, data[0], GBPN_FLOAT32, 1, (const int64_t[]){-1}), GBPN_REFUSED, "lengths");
    expect("too long", gbpn_dense(&wrong, data[0], GBPN_FLOAT32, 2, (const int64_t[]){INT64_MAX, 3}), GBPN_REFUSED,
           "too large");
    gbpn_inference_free(NULL);
}

int main(int count, char **names) {
    const gbpn_schedule schedule = {T, 2, 2, 0.8};
    float *data[TENSORS], *out[WRITTEN];
    gbpn_array read[TENSORS], written[WRITTEN];
    gbpn_inference *inference;
    FILE *file = count == 3 ? fopen(names[1], "rb") : NULL;
    if (gbpn_interface() != GBPN_INTERFACE) return 1;
    expect("new", gbpn_inference_new(&inference), GBPN_OK, "");
    for (int n = 0; n < TENSORS; ++n) { /* memory of exactly this size: a sanitizer watches what lies beyond */
        const size_t many = values(tensors[n].rank, tensors[n].shape);
        data[n] = calloc(many, sizeof(float));
        if (file && fread(data[n], sizeof(float), many, file) != many) return 1;
        expect("dense", gbpn_dense(&read[n], data[n], GBPN_FLOAT32, tensors[n].rank, tensors[n].shape), GBPN_OK, "");
        expect("read", gbpn_inference_read(inference, tensors[n].name, &read[n]), GBPN_OK, "");
    }
    for (int n = 0; n < WRITTEN; ++n) {
        out[n] = calloc(values(results[n].rank, results[n].shape), sizeof(float));
        expect("dense", gbpn_dense(&written[n], out[n], GBPN_FLOAT32, results[n].rank, results[n].shape), GBPN_OK, "");
        expect("write", gbpn_inference_write(inference, results[n].name, &written[n]), GBPN_OK, "");
    }
    if (!file) refused(inference, &schedule, data, read, written);
    expect("run", gbpn_inference_run(inference, &schedule), GBPN_OK, "");
    if (file) {
        fclose(file);
        if (!(file = fopen(names[2], "wb"))) return 1;
        for (int n = 0; n < WRITTEN; ++n) fwrite(out[n], sizeof(float), values(results[n].rank, results[n].shape), file);
        fclose(file);
    }
    gbpn_inference_free(inference);
    for (int n = 0; n < TENSORS; ++n) free(data[n]);
    for (int n = 0; n < WRITTEN; ++n) free(out[n]);
    printf("%s, %d failures\n", gbpn_simd_level(), failures);
    return failures != 0;
}

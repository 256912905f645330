/* Completes a small field with one measurement in each half, and prints a map of depth and doubt.
 *
 *   cmake -S . -B build/c -DGBPN_PYTHON=OFF && cmake --build build/c
 *   cc -std=c99 -Inative examples/c/complete_field.c build/c/libgbpn.a -lstdc++ -lpthread -ldl -lm
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gbpn.h"

enum { HEIGHT = 12, WIDTH = 32, PIXELS = HEIGHT * WIDTH, EDGE = WIDTH / 2 };

static void must(gbpn_status status) {
    if (status == GBPN_OK) return;
    fprintf(stderr, "gbpn: %s\n", gbpn_error());
    exit(1);
}

/* A tensor of zeros [1, …, H, W] with `planes` planes, under its name; `name` says what the axes are. */
static float *tensor(gbpn_inference *inference, int written, const char *name, int rank, const int64_t *shape) {
    int64_t count = 1;
    for (int axis = 0; axis < rank; ++axis) count *= shape[axis];
    float *data = calloc((size_t)count, sizeof(float));
    gbpn_array array;
    if (!data) exit(1);
    must(gbpn_dense(&array, data, GBPN_FLOAT32, rank, shape));
    must((written ? gbpn_inference_write : gbpn_inference_read)(inference, name, &array));
    return data;
}

/* Both numbers of a Gaussian. */
static void pair(gbpn_inference *inference, int written, const char *name, int64_t planes, float *made[2]) {
    static const char *const parts[2] = {"information", "precision"};
    const int64_t shape[4] = {1, planes, HEIGHT, WIDTH};
    char full[64];
    for (int part = 0; part < 2; ++part) {
        snprintf(full, sizeof(full), "%s_%s", name, parts[part]);
        made[part] = tensor(inference, written, full, 4, shape);
    }
}

static void measure(float *unary[2], int row, int column, float metres) {
    const float precision = 100; /* that is, σ = 0.1 m */
    unary[0][row * WIDTH + column] = precision * metres;
    unary[1][row * WIDTH + column] = precision;
}

int main(void) {
    const int64_t edges[6] = {1, 1, 4, 1, HEIGHT, WIDTH}, pixels[4] = {1, 1, HEIGHT, WIDTH};
    const gbpn_schedule schedule = {5, 0, 1, 1.0};
    gbpn_inference *inference;
    float *made[13], *unary[2], *belief[2], *weight;
    must(gbpn_inference_new(&inference));

    pair(inference, 0, "unary", 1, unary);
    pair(inference, 0, "messages_local", 8, made);
    pair(inference, 0, "messages_nonlocal", 1, made + 2);
    weight = tensor(inference, 0, "local_weight", 6, edges);
    made[4] = tensor(inference, 0, "local_difference", 6, edges); /* neighbours are of equal depth … */
    made[5] = tensor(inference, 0, "local_damping", 4, pixels);
    pair(inference, 1, "belief", 1, belief);
    pair(inference, 1, "messages_local", 8, made + 6);
    pair(inference, 1, "messages_nonlocal", 1, made + 8);

    measure(unary, 3, 4, 1.5f);
    measure(unary, 8, 27, 4.0f);
    for (int i = 0; i < 4 * PIXELS; ++i) weight[i] = 10;
    for (int row = 0; row < HEIGHT; ++row) { /* … but not across the edge in the middle */
        weight[0 * PIXELS + row * WIDTH + EDGE] = 1e-3f;
        weight[2 * PIXELS + row * WIDTH + EDGE - 1] = 1e-3f;
    }

    must(gbpn_inference_run(inference, &schedule));
    for (int row = 0; row < HEIGHT; ++row) {
        for (int column = 0; column < WIDTH; ++column) {
            const int i = row * WIDTH + column;
            printf(" %3.1f", belief[0][i] / belief[1][i]);
        }
        printf("\n");
    }

    gbpn_inference_free(inference);
    for (int n = 0; n < 10; ++n) free(made[n]);
    for (int part = 0; part < 2; ++part) free(unary[part]), free(belief[part]);
    free(weight);
    return 0;
}

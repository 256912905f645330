/* Gaussian belief propagation on an image grid, for C and all that calls C.
 *
 * A computation is an opaque handle that is told its tensors by name, with their lengths and strides, and
 * run. Every tensor is checked in every run, exactly as for Python: a wrong one is GBPN_REFUSED, and
 * gbpn_error() says which, what was wanted and what was got. Nothing outside of a described tensor is
 * touched.
 *
 * Tensors that are read; pairs are (information, precision), H×W the image, B images at a time:
 *
 *   unary_information, unary_precision                    [B, 1, H, W]  precision · metres, and precision: 0
 *                                                                       where nothing is measured
 *   messages_local_information, messages_local_precision  [B, 8, H, W]  zeros to start with
 *   messages_nonlocal_information, …_precision            [B, 1, H, W]  zeros to start with
 *   local_weight, local_difference                        [B, T, 4, E, H, W]  E = 1 or 3 senders of a sweep
 *   local_damping                                         [B, T, H, W]
 *   nonlocal_weight, nonlocal_difference                  [B, T, K, H, W]     all four or none
 *   nonlocal_offset                                       [B, T, K, 2, H, W]
 *   nonlocal_damping                                      [B, T, H, W]
 *
 * T is 1 or the number of iterations; rows and columns are contiguous. Tensors that are written, contiguous:
 *
 *   belief_information, belief_precision                  [B, 1, H, W]  depth = information / precision
 *   messages_local_…, messages_nonlocal_…                 as above: where to go on from
 *
 * No tensor that is written may share memory with another. Handles may be used from any thread, each by one
 * at a time. docs/native.md has an example.
 */
#ifndef GBPN_H
#define GBPN_H

#include <stdint.h>

#if defined(__GNUC__)
#define GBPN_API __attribute__((visibility("default")))
#else
#define GBPN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { GBPN_INTERFACE = 1, GBPN_MOST_AXES = 6 };

typedef enum gbpn_status {
    GBPN_OK = 0,
    GBPN_REFUSED = 1,   /* something that was given cannot be used */
    GBPN_NO_MEMORY = 2, /* there is not enough */
    GBPN_FAILED = 3     /* a fault of this library: please report what gbpn_error() says */
} gbpn_status;

typedef enum gbpn_type { GBPN_FLOAT32 = 0, GBPN_FLOAT64 = 1 } gbpn_type;

/* Memory of the caller's, which must stay until the run that uses it has ended. */
typedef struct gbpn_array {
    void *data;
    int32_t type; /* gbpn_type; one for all arrays of a run */
    int32_t rank;
    int64_t shape[GBPN_MOST_AXES];
    int64_t stride[GBPN_MOST_AXES]; /* in elements, not bytes */
} gbpn_array;

typedef struct gbpn_schedule {
    int32_t iterations;
    int32_t steps; /* along learned edges, in each iteration */
    int32_t threads;
    double reweighting; /* of messages that meet again around loops: 1 is plain belief propagation */
} gbpn_schedule;

typedef struct gbpn_inference gbpn_inference;

/* GBPN_INTERFACE of the library, which must be that of this header. */
GBPN_API int32_t gbpn_interface(void);

/* Instruction set in use: "baseline", "avx2" or "avx512". */
GBPN_API const char *gbpn_simd_level(void);

/* What went wrong in the last call of this thread that did not return GBPN_OK; "" before. */
GBPN_API const char *gbpn_error(void);

/* A tensor without gaps; lengths are given from the first axis to the last. */
GBPN_API gbpn_status gbpn_dense(gbpn_array *made, void *data, int32_t type, int32_t rank,
                                const int64_t *shape);

GBPN_API gbpn_status gbpn_inference_new(gbpn_inference **made);
GBPN_API void gbpn_inference_free(gbpn_inference *inference); /* NULL is fine */

/* Name a tensor that is read, or one that is written. A name that was given before is replaced; an array that
 * is NULL takes the name back. */
GBPN_API gbpn_status gbpn_inference_read(gbpn_inference *inference, const char *name,
                                         const gbpn_array *array);
GBPN_API gbpn_status gbpn_inference_write(gbpn_inference *inference, const char *name,
                                          const gbpn_array *array);

/* Check everything and compute. Nothing is written unless GBPN_OK is returned. */
GBPN_API gbpn_status gbpn_inference_run(gbpn_inference *inference, const gbpn_schedule *schedule);

#ifdef __cplusplus
}
#endif

#endif

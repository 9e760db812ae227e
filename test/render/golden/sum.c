#include <stdint.h>
#ifdef __GNUC__
#define VECTOR(name, T, n) typedef T name __attribute__((vector_size(n * sizeof(T))))
#define LANE(v, i) (v)[i]
#define MAKE(T, ...) ((T){__VA_ARGS__})
#define COPY(to, from, n) __builtin_memcpy(to, from, n)
#else
#define VECTOR(name, T, n) typedef struct { T lane[n]; } name
#define LANE(v, i) (v).lane[i]
#define MAKE(T, ...) ((T){{__VA_ARGS__}})
#define COPY(to, from, n) \
  for (unsigned at = 0; at < (unsigned)(n); ++at) ((unsigned char*)(to))[at] = ((const unsigned char*)(from))[at]
#define LIBRARY(name) float name##f(float); double name(double);
LIBRARY(fabs) LIBRARY(sqrt) LIBRARY(floor) LIBRARY(ceil) LIBRARY(trunc) LIBRARY(rint)
float fmaf(float, float, float);
double fma(double, double, double);
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_floorf floorf
#define __builtin_floor floor
#define __builtin_ceilf ceilf
#define __builtin_ceil ceil
#define __builtin_truncf truncf
#define __builtin_trunc trunc
#define __builtin_roundevenf rintf
#define __builtin_roundeven rint
#define __builtin_fmaf fmaf
#define __builtin_fma fma
#endif
struct tgrt_kernel_args {
  void* const* bufs;
  const int64_t* vars;
  void* scratch;
  uint32_t* status;
};
VECTOR(f32x8, float, 8);
static inline f32x8 f32x8_splat(float x) { return MAKE(f32x8, x, x, x, x, x, x, x, x); }
VECTOR(i64x8, int64_t, 8);
static inline i64x8 i64x8_splat(int64_t x) { return MAKE(i64x8, x, x, x, x, x, x, x, x); }
VECTOR(u64x8, uint64_t, 8);
static inline i64x8 i64x8_add(i64x8 a, i64x8 b) {
#ifdef __GNUC__
  return (i64x8)((u64x8)a + (u64x8)b);
#else
  int64_t x[8], y[8];
  int64_t r[8];
  COPY(x, &a, sizeof x);
  COPY(y, &b, sizeof x);
  for (int i = 0; i < 8; ++i) r[i] = (int64_t)((uint64_t)x[i] + (uint64_t)y[i]);
  i64x8 v = MAKE(i64x8, 0);
  COPY(&v, r, sizeof r);
  return v;
#endif
}
VECTOR(m64x8, int64_t, 8);
static inline m64x8 i64x8_lt(i64x8 a, i64x8 b) {
#ifdef __GNUC__
  return (m64x8)(a < b);
#else
  int64_t x[8], y[8];
  int64_t r[8];
  COPY(x, &a, sizeof x);
  COPY(y, &b, sizeof x);
  for (int i = 0; i < 8; ++i) r[i] = (int64_t)-(x[i] < y[i]);
  m64x8 v = MAKE(m64x8, 0);
  COPY(&v, r, sizeof r);
  return v;
#endif
}
VECTOR(m32x8, int32_t, 8);
static inline m32x8 m32x8_from_m64x8(m64x8 a) {
#ifdef __GNUC__
  return __builtin_convertvector(a, m32x8);
#else
  m32x8 v = MAKE(m32x8, 0);
  for (int i = 0; i < 8; ++i) LANE(v, i) = (int32_t)LANE(a, i);
  return v;
#endif
}
static inline f32x8 f32x8_load_masked(const float* p, int64_t at, m32x8 g, f32x8 v) {
  for (int i = 0; i < 8; ++i) if (LANE(g, i)) LANE(v, i) = (float)p[at + i];
  return v;
}
VECTOR(u32x8, uint32_t, 8);
static inline f32x8 f32x8_add(f32x8 a, f32x8 b) {
#ifdef __GNUC__
  return a + b;
#else
  float x[8], y[8];
  float r[8];
  COPY(x, &a, sizeof x);
  COPY(y, &b, sizeof x);
  for (int i = 0; i < 8; ++i) r[i] = x[i] + y[i];
  f32x8 v = MAKE(f32x8, 0);
  COPY(&v, r, sizeof r);
  return v;
#endif
}
VECTOR(f32x4, float, 4);
static inline f32x4 f32x4_of_f32x8_at_0(f32x8 v) { return MAKE(f32x4, LANE(v, 0), LANE(v, 1), LANE(v, 2), LANE(v, 3)); }
static inline f32x4 f32x4_of_f32x8_at_4(f32x8 v) { return MAKE(f32x4, LANE(v, 4), LANE(v, 5), LANE(v, 6), LANE(v, 7)); }
VECTOR(u32x4, uint32_t, 4);
static inline f32x4 f32x4_add(f32x4 a, f32x4 b) {
#ifdef __GNUC__
  return a + b;
#else
  float x[4], y[4];
  float r[4];
  COPY(x, &a, sizeof x);
  COPY(y, &b, sizeof x);
  for (int i = 0; i < 4; ++i) r[i] = x[i] + y[i];
  f32x4 v = MAKE(f32x4, 0);
  COPY(&v, r, sizeof r);
  return v;
#endif
}
VECTOR(f32x2, float, 2);
static inline f32x2 f32x2_of_f32x4_at_0(f32x4 v) { return MAKE(f32x2, LANE(v, 0), LANE(v, 1)); }
static inline f32x2 f32x2_of_f32x4_at_2(f32x4 v) { return MAKE(f32x2, LANE(v, 2), LANE(v, 3)); }
VECTOR(u32x2, uint32_t, 2);
static inline f32x2 f32x2_add(f32x2 a, f32x2 b) {
#ifdef __GNUC__
  return a + b;
#else
  float x[2], y[2];
  float r[2];
  COPY(x, &a, sizeof x);
  COPY(y, &b, sizeof x);
  for (int i = 0; i < 2; ++i) r[i] = x[i] + y[i];
  f32x2 v = MAKE(f32x2, 0);
  COPY(&v, r, sizeof r);
  return v;
#endif
}
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
void sum(const struct tgrt_kernel_args* args, int64_t chunk_begin, int64_t chunk_end) {
  const float* restrict const b0 = (const float*)args->bufs[0];
  float* restrict const b1 = (float*)args->bufs[1];
  const int64_t v5 = args->vars[1];
  f32x8 r0;
  (void)args, (void)chunk_begin, (void)chunk_end;
  r0 = f32x8_splat(0x0p+0f);
  const int64_t v6 = (int64_t)((uint64_t)v5 + (uint64_t)INT64_C(7));
  const int64_t v8 = (int64_t)(v6 / INT64_C(8));
  for (int64_t v9 = 0; v9 < v8; ++v9) {
    const int64_t v11 = (int64_t)((uint64_t)v9 * (uint64_t)INT64_C(8));
    const i64x8 v12 = i64x8_splat(v11);
    const i64x8 v13 = i64x8_add(v12, MAKE(i64x8, 0, 1, 2, 3, 4, 5, 6, 7));
    const i64x8 v14 = i64x8_splat(v5);
    const m64x8 v15 = i64x8_lt(v13, v14);
    const int64_t v16 = (int64_t)((uint64_t)v11 + (uint64_t)INT64_C(0));
    const f32x8 v17 = f32x8_load_masked(b0, v16, m32x8_from_m64x8(v15), f32x8_splat(0));
    const f32x8 v18 = r0;
    const f32x8 v19 = f32x8_add(v18, v17);
    r0 = v19;
  }
  const f32x8 v22 = r0;
  const f32x4 v23 = f32x4_of_f32x8_at_0(v22);
  const f32x4 v24 = f32x4_of_f32x8_at_4(v22);
  const f32x4 v25 = f32x4_add(v23, v24);
  const f32x2 v26 = f32x2_of_f32x4_at_0(v25);
  const f32x2 v27 = f32x2_of_f32x4_at_2(v25);
  const f32x2 v28 = f32x2_add(v26, v27);
  const float v29 = LANE(v28, 0);
  const float v30 = LANE(v28, 1);
  const float v31 = v29 + v30;
  b1[INT64_C(0)] = v31;
}

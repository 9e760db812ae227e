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
VECTOR(f32x16, float, 16);
static inline f32x16 f32x16_splat(float x) { return MAKE(f32x16, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x); }
static inline f32x16 f32x16_load(const float* p) {
  f32x16 v = MAKE(f32x16, 0);
  COPY(&v, p, 16 * sizeof *p);
  return v;
}
VECTOR(u32x16, uint32_t, 16);
static inline f32x16 f32x16_fma(f32x16 a, f32x16 b, f32x16 c) {
  float x[16], y[16], z[16];
  float r[16];
  COPY(x, &a, sizeof x);
  COPY(y, &b, sizeof x);
  COPY(z, &c, sizeof x);
  for (int i = 0; i < 16; ++i) r[i] = __builtin_fmaf(x[i], y[i], z[i]);
  f32x16 v = MAKE(f32x16, 0);
  COPY(&v, r, sizeof r);
  return v;
}
VECTOR(m32x16, int32_t, 16);
static inline m32x16 f32x16_lt(f32x16 a, f32x16 b) {
#ifdef __GNUC__
  return (m32x16)(a < b);
#else
  float x[16], y[16];
  int32_t r[16];
  COPY(x, &a, sizeof x);
  COPY(y, &b, sizeof x);
  for (int i = 0; i < 16; ++i) r[i] = (int32_t)-(x[i] < y[i]);
  m32x16 v = MAKE(m32x16, 0);
  COPY(&v, r, sizeof r);
  return v;
#endif
}
static inline f32x16 f32x16_select(m32x16 c, f32x16 a, f32x16 b) {
#ifdef __GNUC__
  return (f32x16)(((u32x16)a & (u32x16)c) | ((u32x16)b & ~(u32x16)c));
#else
  for (int i = 0; i < 16; ++i) if (!LANE(c, i)) LANE(a, i) = LANE(b, i);
  return a;
#endif
}
static inline void f32x16_store(float* p, f32x16 v) {
  COPY(p, &v, 16 * sizeof *p);
}
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
void relu(const struct tgrt_kernel_args* args, int64_t chunk_begin, int64_t chunk_end) {
  const float* restrict const b0 = (const float*)args->bufs[0];
  float* restrict const b1 = (float*)args->bufs[1];
  (void)args, (void)chunk_begin, (void)chunk_end;
  for (int64_t v0 = chunk_begin; v0 < chunk_end; ++v0) {
    const int64_t v3 = (int64_t)((uint64_t)v0 * (uint64_t)INT64_C(16));
    const int64_t v4 = (int64_t)((uint64_t)v3 + (uint64_t)INT64_C(0));
    const f32x16 v5 = f32x16_load(b0 + v4);
    const f32x16 v10 = f32x16_fma(v5, f32x16_splat(0x1p-1f), f32x16_splat(0x1.8p+1f));
    const m32x16 v13 = f32x16_lt(v10, f32x16_splat(0x0p+0f));
    const f32x16 v14 = f32x16_select(v13, f32x16_splat(0x0p+0f), v10);
    f32x16_store(b1 + v4, v14);
  }
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Classifies 28x28 PGM pictures of clothes with the bundle that tgc made of model.onnx: a whole program on libtgrt.
 *   cc -O2 -Ilib models/fashion_cnn/classify.c -Lbuild/release/lib -ltgrt -o classify
 *   ./classify fashion.bundle models/fashion_cnn/00_boot.pgm ...
 * A picture's true class is in its file name, so that the program can count. All pictures are one batch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tgrt.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10 };
static const char* const names[CLASSES] = {"tshirt", "trouser", "pullover", "dress", "coat",
                                           "sandal", "shirt",   "sneaker",  "bag",   "boot"};

static int fail(const char* what) {
  fprintf(stderr, "classify: %s\n", what);
  return 1;
}

/* Reads a binary PGM of SIDE x SIDE into 0..255 floats; 1 on success. */
static int read_picture(const char* path, float* pixels) {
  unsigned char bytes[PIXELS];
  int width = 0, height = 0, max = 0, ok = 0;
  FILE* file = fopen(path, "rb");
  if (!file) return 0;
  if (fscanf(file, "P5 %d %d %d", &width, &height, &max) == 3 && width == SIDE && height == SIDE && max == 255 &&
      fgetc(file) != EOF)
    ok = fread(bytes, 1, PIXELS, file) == PIXELS;
  fclose(file);
  for (int i = 0; ok && i < PIXELS; ++i) pixels[i] = (float)bytes[i];
  return ok;
}

static int best_class(const float* probabilities) {
  int best = 0;
  for (int i = 1; i < CLASSES; ++i)
    if (probabilities[i] > probabilities[best]) best = i;
  return best;
}

static int classify(tgrt_context* context, int count, char** paths) {
  tgrt_error error;
  if (tgrt_set_var(context, "batch", count, &error)) return fail(error.text);
  float* pictures = tgrt_data(context, TGRT_INPUT, 0, &error);
  if (!pictures) return fail(error.text);
  for (int i = 0; i < count; ++i) {
    if (!read_picture(paths[i], pictures + (size_t)i * PIXELS)) return fail(paths[i]);
  }
  if (tgrt_run(context, &error)) return fail(error.text);
  const float* probabilities = tgrt_data(context, TGRT_OUTPUT, 0, &error);
  if (!probabilities) return fail(error.text);
  int right = 0;
  for (int i = 0; i < count; ++i) {
    const float* row = probabilities + (size_t)i * CLASSES;
    const int best = best_class(row);
    const char* slash = strrchr(paths[i], '/');
    const char* file = slash ? slash + 1 : paths[i];
    const int hit = strstr(file, names[best]) != NULL;
    printf("%-18s %-9s %5.1f %%%s\n", file, names[best], 100.0 * (double)row[best], hit ? "" : "  (wrong)");
    right += hit;
  }
  printf("%d of %d right\n", right, count);
  return 0;
}

int main(int argc, char** argv) {
  tgrt_model* model;
  tgrt_context* context;
  tgrt_error error;
  if (argc < 3) return fail("usage: classify BUNDLE PICTURE.pgm ...");
  if (tgrt_load_file(argv[1], NULL, &model, &error)) return fail(error.text);
  if (tgrt_create_context(model, NULL, &context, &error)) return fail(error.text);
  const int code = classify(context, argc - 2, argv + 2);
  tgrt_free_context(context);
  tgrt_free_model(model);
  return code;
}

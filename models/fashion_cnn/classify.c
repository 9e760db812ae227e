/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Classifies pictures: classify fashion.bundle a.pgm b.pgm … A name like 04_shirt.pgm also says what is right. */
#include "tgrt.h"
#include <stdio.h>
#include <string.h>

enum { PIXELS = 28 * 28, CLASSES = 10, MOST = 256 };
static const char* const kClasses[CLASSES] = {"tshirt", "trouser", "pullover", "dress", "coat",
                                              "sandal", "shirt",   "sneaker",  "bag",   "boot"};
static float images[MOST][PIXELS], probabilities[MOST][CLASSES];

int main(int argc, char** argv) {
  const int count = argc - 2;
  const int64_t shape[] = {count, 1, 28, 28};
  tgrt_model* model;
  tgrt_context* context;
  tgrt_error error;
  if (count < 1 || count > MOST) return printf("usage: classify BUNDLE PICTURE.pgm ... (1 to %d)\n", MOST), 2;
  for (int i = 0, width, height; i < count; ++i) {
    FILE* file = fopen(argv[i + 2], "rb");
    if (!file || fscanf(file, "P5 %d %d 255", &width, &height) != 2 || width != 28 || height != 28)
      return printf("%s: not a 28x28 PGM picture\n", argv[i + 2]), 1;
    fgetc(file); /* the white space that ends the header */
    for (int p = 0; p < PIXELS; ++p) images[i][p] = (float)fgetc(file);
    fclose(file);
  }
  if (tgrt_load_file(argv[1], NULL, &model, &error) || tgrt_create_context(model, NULL, &context, &error) ||
      tgrt_set_shape(context, 0, shape, 4, &error) ||
      tgrt_bind_input(context, 0, images, sizeof images[0] * (size_t)count, &error) ||
      tgrt_bind_output(context, 0, probabilities, sizeof probabilities[0] * (size_t)count, &error) ||
      tgrt_run(context, &error))
    return printf("%s\n", error.text), 1;
  int right = 0;
  for (int i = 0, best = 0; i < count; ++i, best = 0) {
    for (int c = 1; c < CLASSES; ++c) best = probabilities[i][c] > probabilities[i][best] ? c : best;
    right += strstr(argv[i + 2], kClasses[best]) != NULL;
    printf("%s: %s %.1f %%\n", argv[i + 2], kClasses[best], (double)probabilities[i][best] * 100);
  }
  printf("%d of %d as named\n", right, count); /* the end of the process frees the model */
}

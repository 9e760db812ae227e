/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Errors: a number and a text in the caller's struct, with the remedy of the table tgrt_errors.def. Nothing is kept in
 * the library. A text longer than the struct is cut. */
#include <stdio.h>
#include <string.h>

#include "runtime/internal.h"

static const struct {
  int code;
  const char *title, *remedy;
} kErrors[] = {
#define TGRT_ERROR(Number, Name, Title, Remedy) {Number, Title, Remedy},
#include "runtime/tgrt_errors.def"
};

const char* tgrt_error_title(int code) {
  for (size_t i = 0; i < sizeof kErrors / sizeof kErrors[0]; ++i)
    if (kErrors[i].code == code) return kErrors[i].title;
  return "";
}

const char* tgrt_error_remedy(int code) {
  for (size_t i = 0; i < sizeof kErrors / sizeof kErrors[0]; ++i)
    if (kErrors[i].code == code) return kErrors[i].remedy;
  return "";
}

int tgrt_take_options(void* to, size_t known, size_t first, const void* options, tgrt_error* error) {
  if (!options) return 0;
  size_t given;
  memcpy(&given, options, sizeof given);
  if (given < first || given > 4096)
    return tgrt_fail(error, TGRT_E_ARGUMENT, "the options' struct_size is %zu, their size %zu", given, known);
  for (size_t i = known; i < given; ++i)
    if (((const unsigned char*)options)[i] != 0)
      return tgrt_fail(error, TGRT_E_ARGUMENT,
                       "the options are a newer libtgrt's: of their %zu bytes this one knows %zu", given, known);
  memcpy(to, options, given < known ? given : known);
  return 0;
}

int tgrt_fail(tgrt_error* error, int code, const char* format, ...) {
  if (!error) return code;
  char message[sizeof error->text - 256];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  error->code = code;
  snprintf(error->text, sizeof error->text, "TGR-E%d: %s. %s", code, message, tgrt_error_remedy(code));
  return code;
}

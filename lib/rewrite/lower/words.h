// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "uop/uop.h"

namespace tgc {

/// The range of `sum`, a sum of products of a u8 and an i8 made i32, along which its bytes can be taken four at a time:
/// those of the u8 follow each other, and there are a multiple of 4. Null if there is none.
Ref word_range(Ref sum);

/// Is it the range of the bytes of words?
bool is_word(Ref range);
/// Do the bytes of a word not follow each other in what `load` reads?
bool is_across_words(Ref load);

/// Ranges with axis=word, of 4: what is loaded along them becomes one i32 each, and the products the op dot4. Where the
/// bytes of both factors do not follow each other such a range is repeated in the code.
/// kernel → kernel without such ranges.
Ref form_words(Ref kernel);

} // namespace tgc

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "uop/uop.h"

namespace tgc {

/// What a sum of products (a Reduce) multiplies that is read from memory.
std::vector<Ref> product_loads(Ref product);

/// Elements that `rows` steps of `row` and all steps of `axis`, a loop of the sum, read together of the load that they
/// read most of, counting only loads of which they read something twice: neighbouring windows overlap. 0 if there is
/// none.
int64_t shared_reads(Ref product, Ref row, int64_t rows, Ref axis);

/// Do neighbouring rows read some of the same?
bool overlaps(Ref product, Ref row);

/// Is all that is multiplied another vector for each step of `lane`, while neighbouring rows read some of the same: a
/// depthwise convolution? Nothing is broadcast then, and what bounds the kernel is what it reads.
bool slides(Ref product, Ref lane, Ref row);

/// Up to `most` rows of a product that slides: their sums, and all that they read along the loop of the sum that they
/// share most of, have a register each.
int64_t sliding_rows(Ref product, Ref row, int64_t most, int64_t registers);

/// Rows of the tiles that `n` rows, 0 if that is open, are cut into: no more than `most`, and if possible all alike; of
/// many rows a few may be done twice.
int64_t row_count(int64_t n, int64_t most);

/// Vectors of `vector` lanes, 1, 2 or 4, that a kernel without products takes side by side along `lane`, an output
/// axis. A step of a reduction waits for the one before; several vectors are as many chains. They fill `lane` without a
/// rest, and enough pieces of the result are left for threads.
int64_t lane_chains(Ref func, Ref lane, int64_t vector);

/// Bytes of all that a kernel reads and writes, at most.
double touched_bytes(Ref func);

} // namespace tgc

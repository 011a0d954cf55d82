// Package sgemm multiplies float32 matrices with kernels for AVX2 and FMA, one goroutine to a call.
//
// Glossary. A *tile* is the piece of C whose sums one kernel call keeps in registers. A *panel* is 16 columns of
// B laid out [k][16], as the tile's kernel reads them; *packing* makes panels. A *block* is the run of k whose
// panels are packed at once.
//
// Two ways, after Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008):
//
//   - Many rows: B is packed block by block, and 6×16 tiles take A's elements from where they lie, unless A is
//     transposed, which is copied together first. Element sums run in the order of k within a block, and blocks
//     in order.
//   - Few rows against a transposed B, as in generation, where weights are read once for a handful of rows:
//     packing would cost as much as the product, so that 3×4 tiles go along the rows of both operands.
//     Every sum has eight lanes, which are added in one fixed order.
//
// So an element of C depends on its row of A, its column of B, k, and which of the two ways was taken, never on
// the rest of the matrices or on timing.
package sgemm

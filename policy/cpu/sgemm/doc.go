// Package sgemm multiplies float32 matrices with kernels for AVX2 and FMA, one goroutine to a call (the scheme is
// that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
//
// Glossary. A *tile* is the piece of C, at most 6×16, whose sums one kernel call keeps in registers. A *panel* is 16
// columns of B laid out [k][16], as the kernels read them; *packing* makes panels. A *block* is the run of k whose
// panels are packed at once. Elements of A are taken from where they lie, unless A is transposed, when blocks of
// it are copied together first. A matrix that serves many products, such as weights in generation, is packed once.
//
// An element of C is the sum over one block's k in their order, then over blocks in theirs: it depends on its row
// of A and its column of B and on nothing else, neither the sizes of the matrices nor which way they were packed.
package sgemm

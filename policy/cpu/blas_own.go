package cpu

import "github.com/ropewalk/ropewalk/policy/cpu/sgemm"

// ownMatmul hands products over to package sgemm; T is float32.
type ownMatmul[T float] struct{ sgemm.Matmul }

func (o *ownMatmul[T]) gemm(ta, tb bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	o.Gemm(
		ta, tb, m, n, k, float32(alpha), as[float32](a), lda, as[float32](b), ldb, float32(beta), as[float32](c), ldc,
	)
}

// panels is GemmPanels.
func (o *ownMatmul[T]) panels(m, n, k int, alpha T, a []T, lda int, b []T, step int, add bool, c []T, ldc int) {
	o.GemmPanels(m, n, k, float32(alpha), as[float32](a), lda, as[float32](b), step, add, as[float32](c), ldc)
}

package cpu

import (
	"runtime/debug"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gonumMatmul is the pure Go implementation, always there.
type gonumMatmul[T float] struct{}

func (gonumMatmul[T]) gemm(ta, tb bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	var impl gonum.Implementation
	if isFloat32[T]() {
		impl.Sgemm(
			transpose(ta), transpose(tb), m, n, k, float32(alpha), as[float32](a), lda, as[float32](b), ldb,
			float32(beta), as[float32](c), ldc,
		)
		return
	}
	impl.Dgemm(
		transpose(ta), transpose(tb), m, n, k, float64(alpha), as[float64](a), lda, as[float64](b), ldb, float64(beta),
		as[float64](c), ldc,
	)
}

func transpose(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

// gonumVersion reads the linked version from the binary's build information.
func gonumVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "gonum.org/v1/gonum" {
				return d.Version
			}
		}
	}
	return "of unknown version"
}

package cpu

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/ropewalk/ropewalk/policy/cpu/sgemm"
)

// float is the element type: float32 in the engine, float64 where gradients are checked.
type float interface{ float32 | float64 }

// matmul computes matrix products for one goroutine at a time.
type matmul[T float] interface {
	// gemm sets C = alpha·op(A)·op(B) + beta·C, all row-major: op(A) is m×k, op(B) is k×n, C is m×n;
	// op transposes where the flag is set; lda, ldb, ldc are the distances between rows as stored.
	// With beta 0, C need not hold numbers.
	gemm(ta, tb bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
}

// library is a BLAS implementation.
type library struct {
	name   string // e.g. "openblas 0.3.21 Zen"
	advice string
	own    bool      // package sgemm for float32
	open   *openblas // nil: gonum
}

// Names that select a library in Options.BLAS and in the environment variable ROPEWALK_BLAS.
const (
	blasOwn      = "own"
	blasOpenBLAS = "openblas"
	blasGonum    = "gonum"
)

const openblasAdvice = "matrix products run 5 to 10 times faster with OpenBLAS: apt-get install libopenblas0-pthread"

// chooseLibrary opens the library asked for, or the fastest there is.
func chooseLibrary(want string) (library, error) {
	if want == "" {
		want = os.Getenv("ROPEWALK_BLAS")
	}
	switch want {
	case blasGonum:
		return gonumLibrary(), nil
	case blasOwn:
		if !sgemm.Available() {
			return library{}, errors.New("choose BLAS library: own kernels need a processor with AVX2 and FMA")
		}
		return ownLibrary(), nil
	case blasOpenBLAS:
		o, err := loadOpenBLAS()
		if err != nil {
			return library{}, fmt.Errorf("%w (%s)", err, openblasAdvice)
		}
		return library{name: o.name, open: o}, nil
	case "":
		if sgemm.Available() {
			return ownLibrary(), nil
		}
		if o, err := loadOpenBLAS(); err == nil {
			return library{name: o.name, open: o}, nil
		}
		return gonumLibrary(), nil
	}
	return library{}, fmt.Errorf(
		"choose BLAS library: %q is none of %s, %s and %s", want, blasOwn, blasOpenBLAS, blasGonum,
	)
}

func gonumLibrary() library {
	return library{name: "gonum " + gonumVersion(), advice: openblasAdvice}
}

// ownLibrary multiplies float64, which only tests of gradients need, with gonum.
func ownLibrary() library { return library{name: "own kernels", own: true} }

// newMatmul returns a matmul for one goroutine.
func newMatmul[T float](l library) matmul[T] {
	if l.own && isFloat32[T]() {
		return &ownMatmul[T]{}
	}
	if l.open == nil {
		return gonumMatmul[T]{}
	}
	return &openMatmul[T]{lib: l.open, args: new(gemmArgs[T])}
}

// isFloat32 is a constant after instantiation, so that the compiler drops the other branch.
func isFloat32[T float]() bool {
	var x T
	return unsafe.Sizeof(x) == 4
}

// as reinterprets s, whose element type is known to be U.
func as[U, T float](s []T) []U {
	return unsafe.Slice((*U)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// span is the number of elements that rows×cols with the given row distance reaches over.
func span(rows, cols, ld int) int {
	if rows == 0 || cols == 0 {
		return 0
	}
	return (rows-1)*ld + cols
}

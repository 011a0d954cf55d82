package cpu

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// openblas is the shared library, loaded once per process. Its own threads stay off: the engine
// splits the rows itself, in a fixed way.
type openblas struct {
	name         string
	sgemm, dgemm uintptr
}

// openblasNames are tried in turn: the loader's search path first, then usual folders.
var openblasNames = []string{
	"libopenblas.so.0", "libopenblas.so",
	"/usr/lib/x86_64-linux-gnu/libopenblas.so.0", "/usr/lib/aarch64-linux-gnu/libopenblas.so.0",
	"/usr/lib64/libopenblas.so.0", "/usr/local/lib/libopenblas.so.0", "/opt/OpenBLAS/lib/libopenblas.so.0",
}

var loadOpenBLAS = sync.OnceValues(func() (*openblas, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("load OpenBLAS: not supported on %s", runtime.GOOS)
	}
	var first error
	for _, name := range openblasNames {
		h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		return bindOpenBLAS(h, name)
	}
	return nil, fmt.Errorf("load OpenBLAS: %w", first)
})

func bindOpenBLAS(h uintptr, name string) (*openblas, error) {
	symbol := map[string]uintptr{}
	for _, s := range []string{"sgemm_", "dgemm_", "openblas_set_num_threads", "openblas_get_config",
		"openblas_get_corename"} {
		p, err := purego.Dlsym(h, s)
		if err != nil {
			return nil, fmt.Errorf("load OpenBLAS from %s: %w", name, err)
		}
		symbol[s] = p
	}
	var setThreads func(int32)
	var config, core func() string
	purego.RegisterFunc(&setThreads, symbol["openblas_set_num_threads"])
	purego.RegisterFunc(&config, symbol["openblas_get_config"])
	purego.RegisterFunc(&core, symbol["openblas_get_corename"])
	// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH …": only the version matters, and the core its kernels are for.
	words := strings.Fields(config())
	if len(words) < 2 {
		return nil, errors.New("load OpenBLAS: the library gives no version")
	}
	if strings.Contains(config(), "USE64BITINT") {
		return nil, fmt.Errorf("load OpenBLAS from %s: it was built for 64-bit integers", name)
	}
	setThreads(1)
	return &openblas{name: "openblas " + words[1] + " " + core(), sgemm: symbol["sgemm_"], dgemm: symbol["dgemm_"]}, nil
}

// gemmArgs holds the scalars of one call: the Fortran interface takes everything by address, which
// spares the mix of integer and floating registers and so the reflection it would need. It lives on the
// heap because the C side reads it while a goroutine's stack might move.
type gemmArgs[T float] struct {
	ta, tb        [1]byte
	m, n, k       int32
	lda, ldb, ldc int32
	alpha, beta   T
}

// openMatmul calls OpenBLAS. A call costs about 0.25 µs more than its arithmetic.
type openMatmul[T float] struct {
	lib  *openblas
	args *gemmArgs[T]
}

// gemm hands the product over in column-major reading: a row-major matrix is its transpose there, and
// Cᵀ = op(B)ᵀ·op(A)ᵀ, so the operands swap and the flags stay.
func (o *openMatmul[T]) gemm(
	ta, tb bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int,
) {
	if m == 0 || n == 0 {
		return
	}
	checkSpan("A", ta, m, k, lda, len(a))
	checkSpan("B", tb, k, n, ldb, len(b))
	checkSpan("C", false, m, n, ldc, len(c))
	g := o.args
	g.ta[0], g.tb[0] = flag(tb), flag(ta)
	g.m, g.n, g.k = int32(n), int32(m), int32(k)
	g.lda, g.ldb, g.ldc = int32(ldb), int32(lda), int32(ldc)
	g.alpha, g.beta = alpha, beta
	fn := o.lib.dgemm
	if isFloat32[T]() {
		fn = o.lib.sgemm
	}
	purego.SyscallN(fn,
		uintptr(unsafe.Pointer(&g.ta)), uintptr(unsafe.Pointer(&g.tb)),
		uintptr(unsafe.Pointer(&g.m)), uintptr(unsafe.Pointer(&g.n)), uintptr(unsafe.Pointer(&g.k)),
		uintptr(unsafe.Pointer(&g.alpha)),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(&g.lda)),
		uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(&g.ldb)),
		uintptr(unsafe.Pointer(&g.beta)),
		uintptr(unsafe.Pointer(unsafe.SliceData(c))), uintptr(unsafe.Pointer(&g.ldc)),
		1, 1) // the lengths of the two flags, which Fortran passes at the end
}

func flag(t bool) byte {
	if t {
		return 'T'
	}
	return 'N'
}

// checkSpan panics where Go's own bounds checks would: C does not.
func checkSpan(name string, trans bool, rows, cols, ld, have int) {
	if trans {
		rows, cols = cols, rows
	}
	if ld < cols || ld < 1 || span(rows, cols, ld) > have {
		panic(
			fmt.Sprintf(
				"gemm: %s of %d×%d with row distance %d does not fit in %d elements", name, rows, cols, ld, have,
			),
		)
	}
}

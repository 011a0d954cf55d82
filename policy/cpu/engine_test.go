package cpu

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/policytest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu/sgemm"
)

// requireLibrary skips where a library is absent, or fails if the environment demands it.
func requireLibrary(t *testing.T, blas string) {
	if blas == blasOwn && !sgemm.Available() {
		t.Skip("the processor has no AVX2")
	}
	if blas != blasOpenBLAS {
		return
	}
	if _, err := loadOpenBLAS(); err != nil {
		if os.Getenv("ROPEWALK_REQUIRE_OPENBLAS") == "1" {
			t.Fatal(err)
		}
		t.Skipf("OpenBLAS is not there (%s): %v", openblasAdvice, err)
	}
}

// TestConformance runs the suite with every library, on heads that do and, with the own kernels, do not fit whole
// registers.
func TestConformance(t *testing.T) {
	for blas, headDims := range map[string][]int{blasOwn: {6, 40}, blasOpenBLAS: {40}, blasGonum: {40}} {
		for _, headDim := range headDims {
			t.Run(fmt.Sprintf("%s/%d", blas, headDim), func(t *testing.T) {
				requireLibrary(t, blas)
				s := tiny
				s.EOS, s.HeadDim = []int32{3}, headDim
				dir := t.TempDir()
				require.NoError(t, checkpoint.Init(dir, s, 11, map[string][]byte{"tokenizer.json": []byte("{}")}))
				policytest.Run(t, policytest.Fixture{
					Open: func(t testing.TB) policy.Engine {
						e, err := Open(Options{Threads: 2, BLAS: blas})
						require.NoError(t, err)
						return e
					},
					Dir: dir, Vocab: s.Vocab, Positions: s.Positions, Digest: checkpoint.Digest,
				})
			})
		}
	}
}

// TestThreadsAreProcessors: an engine has as many parts as there are processors, also where the Go runtime may run more
// goroutines than that.
func TestThreadsAreProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(processors + 3)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	e, err := Open(Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.Equal(t, processors, e.Describe().Threads)
}

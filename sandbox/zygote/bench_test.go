package zygote

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// BenchmarkCall measures calls of the smallest program of each package set, as many in flight as there are slots.
// Metrics: calls/s, and the CPU time of a call in zygote, child and this process together.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct{ set, code, want string }{
		{sandbox.PackagesBare, "print(1+2)", "3\n"},
		{sandbox.PackagesNumpy, "import numpy as np; print(int(np.arange(10).sum()))", "45\n"},
		{sandbox.PackagesSympy, "import numpy as np; print(int(np.arange(10).sum()))", "45\n"},
	} {
		b.Run(c.set, func(b *testing.B) {
			e, err := Open(Options{Python: os.Getenv("ROPEWALK_SANDBOX_PYTHON")})
			if err != nil {
				b.Skipf("sandbox cannot be opened: %v", err)
			}
			defer e.Close()
			call := sandbox.Call{Code: c.code, Packages: c.set}
			if _, err := e.accept(call); err != nil {
				b.Skip(err)
			}
			one := func() {
				got, err := e.Run(context.Background(), []sandbox.Call{call})
				if err != nil || got[0].Stdout != c.want {
					b.Errorf("got %+v, %v", got, err)
				}
			}
			var cpu, left atomic.Int64
			flight := func(n int, measured bool) {
				left.Store(int64(n))
				var hands sync.WaitGroup
				for range e.Workers() {
					hands.Go(func() {
						for left.Add(-1) >= 0 {
							got, err := e.Run(context.Background(), []sandbox.Call{call})
							if err != nil || got[0].Stdout != c.want {
								b.Errorf("got %+v, %v", got, err)
								return
							}
							cpu.Add(int64(got[0].Timing.CPU))
						}
					})
				}
				hands.Wait()
			}
			one()
			flight(20, false)
			cpu.Store(0)
			before, began := ownCPU(), time.Now()
			b.ResetTimer()
			flight(b.N, true)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "calls/s")
			b.ReportMetric(float64(cpu.Load())/float64(b.N)/1e3, "child-µs")
			b.ReportMetric(float64(ownCPU()-before)/float64(b.N)/1e3, "own-µs")
		})
	}
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

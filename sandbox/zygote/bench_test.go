package zygote

import (
	"context"
	"testing"

	"github.com/ropewalk/ropewalk/sandbox"
)

// BenchmarkPrint measures calls per second of the smallest useful program, in batches of 64.
func BenchmarkPrint(b *testing.B) {
	executor, err := Open(Options{})
	if err != nil {
		b.Skipf("sandbox cannot be opened: %v", err)
	}
	defer executor.Close()
	batch := make([]sandbox.Call, 64)
	for i := range batch {
		batch[i].Code = "print(1+2)"
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += len(batch) {
		results, err := executor.Run(context.Background(), batch[:min(len(batch), b.N-done)])
		if err != nil {
			b.Fatal(err)
		}
		if results[0].Stdout != "3\n" {
			b.Fatalf("got %+v", results[0])
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

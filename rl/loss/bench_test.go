package loss_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// The benchmarks evaluate one loss over 256 rows of 4,096 tokens, float32 in and out, statistics
// included. tokens/s counts the tokens under the mask.

func BenchmarkLosses(b *testing.B) {
	for _, c := range losstest.Cases() {
		b.Run(c.Name, func(b *testing.B) { benchmark(b, c.Name, 1) })
	}
	b.Run("ppo_clip on 2 cores", func(b *testing.B) { benchmark(b, "ppo_clip", 2) })
}

var workload losstest.Batch[float32]

func benchmark(b *testing.B, name string, workers int) {
	if workload.Rows == nil {
		workload = losstest.New[float32](rand.New(rand.NewPCG(1, 2)), 256, 4096, losstest.Spread{Drift: 0.1})
	}
	for _, c := range losstest.Cases() {
		if c.Name != name {
			continue
		}
		once, tokens, err := losstest.Once(c, workload, &loss.Evaluator[float32]{Workers: workers})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			if err := once(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(tokens)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		return
	}
	b.Fatalf("no loss %s", name)
}

package loss_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/loss/losstest"
)

// The benchmarks evaluate one loss over 256 rows of 4,096 tokens, float32 in and out, statistics
// included. tokens/s counts the tokens under the mask.

func BenchmarkPPOClip(b *testing.B)          { benchmark(b, "ppo_clip", 1) }
func BenchmarkPPOClip2Cores(b *testing.B)    { benchmark(b, "ppo_clip", 2) }
func BenchmarkCISPO(b *testing.B)            { benchmark(b, "cispo", 1) }
func BenchmarkSAPO(b *testing.B)             { benchmark(b, "sapo", 1) }
func BenchmarkGSPO(b *testing.B)             { benchmark(b, "gspo", 1) }
func BenchmarkGSPOToken(b *testing.B)        { benchmark(b, "gspo_token", 1) }
func BenchmarkGPG(b *testing.B)              { benchmark(b, "gpg", 1) }
func BenchmarkGPPO(b *testing.B)             { benchmark(b, "gppo", 1) }
func BenchmarkCEGPPO(b *testing.B)           { benchmark(b, "ce_gppo", 1) }
func BenchmarkAEPOClip(b *testing.B)         { benchmark(b, "aepo_clip", 1) }
func BenchmarkClipCov(b *testing.B)          { benchmark(b, "clip_cov", 1) }
func BenchmarkKLCov(b *testing.B)            { benchmark(b, "kl_cov", 1) }
func BenchmarkSelfImitation(b *testing.B)    { benchmark(b, "self_imitation", 1) }
func BenchmarkBehaviourCloning(b *testing.B) { benchmark(b, "behaviour_cloning", 1) }
func BenchmarkValueClip(b *testing.B)        { benchmark(b, "value_clip", 1) }
func BenchmarkKLK1(b *testing.B)             { benchmark(b, "kl_k1", 1) }
func BenchmarkKLAbs(b *testing.B)            { benchmark(b, "kl_abs", 1) }
func BenchmarkKLK2(b *testing.B)             { benchmark(b, "kl_k2", 1) }
func BenchmarkKLK3(b *testing.B)             { benchmark(b, "kl_k3", 1) }
func BenchmarkEntropy(b *testing.B)          { benchmark(b, "entropy", 1) }

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

package diagnose

import (
	"math/rand/v2"
	"testing"
)

// benchRows are 32 rows of 1,024 tokens, all of them under the mask.
func benchRows() ([]Row, float64) {
	rng := rand.New(rand.NewPCG(17, 18))
	rows := make([]Row, 32)
	for i := range rows {
		r := &rows[i]
		for range 1024 {
			logp := -rng.ExpFloat64()
			r.Mask = append(r.Mask, 1)
			r.LogProbs = append(r.LogProbs, logp)
			r.Old = append(r.Old, min(0, logp+0.1*rng.NormFloat64()))
			r.Reference = append(r.Reference, min(0, logp+0.1*rng.NormFloat64()))
			r.Advantages = append(r.Advantages, rng.NormFloat64())
			r.Entropy = append(r.Entropy, rng.ExpFloat64())
		}
	}
	return rows, 32 * 1024
}

func BenchmarkTokens(b *testing.B) {
	rows, tokens := benchRows()
	for name, add := range map[string]func(...Row) error{
		"entropy": new(Entropy).Add, "kl": new(KL).Add,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := add(rows...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(tokens*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

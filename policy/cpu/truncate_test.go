package cpu

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
)

// TestTruncate compares with a plain reading of policy.Truncation: everything is sorted, and nothing is left out early.
func TestTruncate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var scratch []int32
	for range 2000 {
		z := make([]float32, 1+rng.IntN(300))
		spread := rng.Float64() * 20
		for i := range z {
			z[i] = float32(math.Round(rng.NormFloat64()*spread*4) / 4) // with ties
		}
		top := slices.Max(z)
		e := make([]float32, len(z))
		for i := range z {
			z[i] -= top
			e[i] = float32(math.Exp(float64(z[i])))
		}
		var limit policy.Truncation
		if rng.IntN(2) == 0 {
			limit.TopK = 1 + rng.IntN(len(z)+2)
		}
		if rng.IntN(2) == 0 {
			limit.TopP = rng.Float64()
		}
		if rng.IntN(2) == 0 {
			limit.MinP = rng.Float64()
		}
		scratch = truncate(limit, z, e, scratch)
		require.Equal(t, plainly(limit, z, e), scratch, "%+v of %v", limit, z)
	}
	least := policy.Truncation{TopP: 1e-9}
	require.Equal(t, []int32{1}, truncate(least, []float32{-1, 0, 0}, []float32{0.4, 1, 1}, nil),
		"of equal logits the smaller id comes first, and the first token always remains")
}

func plainly(limit policy.Truncation, z, e []float32) []int32 {
	ids := make([]int32, len(z))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Or(cmp.Compare(z[b], z[a]), cmp.Compare(a, b)) })
	if limit.TopK > 0 {
		ids = ids[:min(limit.TopK, len(ids))]
	}
	var all, sum float64
	for _, id := range ids {
		all += float64(e[id])
	}
	if limit.TopP > 0 {
		for n, id := range ids {
			if sum += float64(e[id]); sum >= limit.TopP*all {
				ids = ids[:n+1]
				break
			}
		}
	}
	ids = slices.DeleteFunc(ids, func(id int32) bool { return e[id] == 0 || float64(e[id]) < limit.MinP })
	slices.Sort(ids)
	return ids
}

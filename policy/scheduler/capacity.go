package scheduler

import (
	"fmt"
	"math"
)

// DefaultSafety is the share of a cache that is given out.
const DefaultSafety = 0.9

// Capacity is how many tokens of a KV cache are given out: ⌊blocks · block size · safety⌋.
func Capacity(blocks, blockSize int, safety float64) (int, error) {
	switch {
	case blocks < 0 || blockSize < 0:
		return 0, fmt.Errorf("capacity: blocks and block size must be ≥ 0, got %d and %d", blocks, blockSize)
	case !(safety > 0 && safety <= 1):
		return 0, fmt.Errorf("capacity: safety must be in (0, 1], got %g", safety)
	}
	return int(math.Floor(float64(blocks) * float64(blockSize) * safety)), nil
}

// SafeRollouts returns K = ⌊capacity / length⌋, the number of rollouts of at most length tokens that an engine can
// hold without evicting any. 0 means that not even one is safe: refuse such an engine at start-up.
func SafeRollouts(capacity, length int) int {
	if capacity < 0 || length < 1 {
		return 0
	}
	return capacity / length
}

// apart orders rollouts so that a group has its rollouts far apart: first one of each group, in the order in which the
// groups come, then the second of each, and so on. It returns indexes into groups, which names the group of each
// rollout. Together they would wait for the same slow tools at once, and be long or short at once.
func apart[G comparable](groups []G) []int {
	turn := make([]int, len(groups)) // the rollout's number within its group
	count, most := map[G]int{}, 0
	for i, g := range groups {
		turn[i] = count[g]
		count[g]++
		most = max(most, count[g])
	}
	rounds := make([][]int, most)
	for i, n := range turn {
		rounds[n] = append(rounds[n], i)
	}
	out := make([]int, 0, len(groups))
	for _, round := range rounds {
		out = append(out, round...)
	}
	return out
}

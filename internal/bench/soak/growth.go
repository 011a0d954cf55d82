package soak

import (
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// quantity is a resource in use, and how much it may grow during the second half: by an absolute bound above the
// samples' noise, or by a share of its median.
type quantity struct {
	what  string
	of    func(bench.Usage) float64
	bound float64
	share float64
}

func quantities() []quantity {
	return []quantity{
		{"this process, MiB", func(u bench.Usage) float64 { return mebibytes(u.Root) }, 8, 0.05},
		{"interpreters, MiB", func(u bench.Usage) float64 { return mebibytes(u.Others) }, 16, 0.05},
		{"processes", func(u bench.Usage) float64 { return float64(u.Processes) }, 2, 0},
		{"zombies", func(u bench.Usage) float64 { return float64(u.Zombies) }, 1, 0},
		{"descriptors", func(u bench.Usage) float64 { return float64(u.Descriptors) }, 4, 0.05},
		{"mounts", func(u bench.Usage) float64 { return float64(u.Mounts) }, 0.5, 0},
		{"temporary file systems, MiB", func(u bench.Usage) float64 { return mebibytes(u.Tmpfs) }, 1, 0},
	}
}

// grown returns how much each quantity grew during the second half, which its bound limits.
func grown(samples []sample, length time.Duration) (all []bench.Row) {
	half := length / 2
	var x []float64
	var second []sample
	for _, s := range samples {
		if s.at >= half {
			x, second = append(x, s.at.Seconds()), append(second, s)
		}
	}
	if len(second) == 0 {
		return nil
	}
	for _, q := range quantities() {
		var y []float64
		for _, s := range second {
			y = append(y, q.of(s.Usage))
		}
		middle := bench.Median(y)
		growth := bench.Of("growth", bench.Slope(x, y)*half.Seconds()).AtMost(max(q.bound, q.share*middle))
		all = append(all, bench.Row{What: q.what, Figures: []bench.Figure{bench.Of("median", middle), growth}})
	}
	return all
}

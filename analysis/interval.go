package analysis

import (
	"cmp"
	"slices"
)

// interval is a span of time, in Unix microseconds, end exclusive.
type interval struct{ from, to int64 }

// union merges intervals into disjoint ones in order of time.
func union(all []interval) []interval {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var out []interval
	for _, x := range sorted {
		if x.to <= x.from {
			continue
		}
		if n := len(out); n > 0 && x.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, x.to)
			continue
		}
		out = append(out, x)
	}
	return out
}

// within cuts intervals to a window.
func within(all []interval, window interval) []interval {
	var out []interval
	for _, x := range all {
		x = interval{max(x.from, window.from), min(x.to, window.to)}
		if x.from < x.to {
			out = append(out, x)
		}
	}
	return out
}

// covered returns the time, in seconds, that at least one of the intervals covers.
func covered(all []interval) float64 {
	total := int64(0)
	for _, x := range union(all) {
		total += x.to - x.from
	}
	return float64(total) / 1e6
}

// gaps returns the times, in seconds, between the intervals inside a window.
func gaps(all []interval, window interval) []float64 {
	var out []float64
	end := window.from
	for _, x := range append(union(within(all, window)), interval{window.to, window.to}) {
		if x.from > end {
			out = append(out, covered([]interval{{end, x.from}}))
		}
		end = x.to
	}
	return out
}

package workflows

import (
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// timings collects the measured intervals of a step's activities.
type timings struct{ all []wire.Timing }

func (t *timings) add(more ...wire.Timing) { t.all = append(t.all, more...) }

// span is the time from the first start to the last end, in seconds.
func (t *timings) span() float64 {
	if len(t.all) == 0 {
		return 0
	}
	first, last := t.all[0].Start, t.all[0].End
	for _, x := range t.all {
		first, last = min(first, x.Start), max(last, x.End)
	}
	return float64(last-first) / 1e6
}

// byStage is the time in which at least one activity of each stage executed, in seconds.
func (t *timings) byStage() map[string]float64 {
	ordered := slices.Clone(t.all)
	slices.SortStableFunc(ordered, func(a, b wire.Timing) int { return int(a.Start - b.Start) })
	out := map[string]float64{}
	until := map[string]int64{}
	for _, x := range ordered {
		from := max(x.Start, until[x.Stage])
		if x.End > from {
			out[x.Stage] += float64(x.End-from) / 1e6
			until[x.Stage] = x.End
		}
	}
	return out
}

func seconds(t wire.Timing) float64 { return float64(t.End-t.Start) / 1e6 }

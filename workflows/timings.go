package workflows

import (
	"slices"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// timings collects the measured intervals of a step's activities.
type timings struct {
	all      []api.Timing // times that the step records
	recorded []api.Timing // stage, start and end of the times that its shards have recorded
	early    []api.Timing // times that the step records although they lie before it
}

func (t *timings) add(more ...api.Timing) { t.all = append(t.all, more...) }

// elsewhere adds the intervals that a shard has recorded itself.
func (t *timings) elsewhere(b api.Busy) {
	for _, s := range b {
		for _, x := range s.Times {
			t.recorded = append(t.recorded, api.Timing{Stage: s.Stage, Start: x[0], End: x[0] + x[1]})
		}
	}
}

// span is the time from the first start to the last end, in seconds.
func (t *timings) span() float64 {
	all := slices.Concat(t.all, t.recorded)
	if len(all) == 0 {
		return 0
	}
	first, last := all[0].Start, all[0].End
	for _, x := range all {
		first, last = min(first, x.Start), max(last, x.End)
	}
	return float64(last-first) / 1e6
}

// byStage is the time in which at least one activity of each stage ran, in seconds.
func (t *timings) byStage() map[string]float64 {
	ordered := slices.Concat(t.early, t.all, t.recorded)
	slices.SortStableFunc(ordered, func(a, b api.Timing) int { return int(a.Start - b.Start) })
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

func seconds(t api.Timing) float64 { return float64(t.End-t.Start) / 1e6 }

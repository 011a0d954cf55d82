package api

import "slices"

// Busy is when a shard's stages ran whose measured times the shard has recorded itself.
type Busy []BusyStage

// BusyStage lists the intervals of one stage.
type BusyStage struct {
	Stage string     `json:"stage"`
	Times [][2]int64 `json:"times"` // start and length of each interval, in microseconds
}

// BusyIn lists the intervals of measured times.
func BusyIn(all []Timing) Busy {
	var out Busy
	for _, x := range all {
		i := slices.IndexFunc(out, func(s BusyStage) bool { return s.Stage == x.Stage })
		if i < 0 {
			i, out = len(out), append(out, BusyStage{Stage: x.Stage})
		}
		out[i].Times = append(out[i].Times, [2]int64{x.Start, x.End - x.Start})
	}
	return out
}

package resample

import "fmt"

// Overlong masks responses that reached the length limit: mask ← 0 where tokens ≥ Limit.
//
// Source: SPEAR (Dr.BoT), after DAPO's overlong filtering. The reward still counts in the group.
// Departures: none. rStar2 leaves such rows in, with reward 0.
type Overlong struct {
	Limit int // response tokens
}

// Validate reports the first bad field.
func (o Overlong) Validate() error {
	if o.Limit < 1 {
		return fmt.Errorf("overlong.limit must be ≥ 1, got %d", o.Limit)
	}
	return nil
}

func (Overlong) name() string { return "overlong mask" }

func (Overlong) draws() bool { return false }

func (o Overlong) apply(s *step) {
	s.maskRows(OverlongResponse, func(r *Row) bool { return r.ResponseTokens >= o.Limit })
}

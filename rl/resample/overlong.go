package resample

import "github.com/ropewalk/ropewalk/rl/choice"

var overlong = Filter{
	Choice: choice.Choice{
		Name: "overlong", Doc: "rows at their limit of tokens are masked", Source: "DAPO; SPEAR §4.3",
		Settings: overlongMask{},
		Field:    "mask a row whose response reaches its limit of tokens",
	},
	Why: OverlongResponse,
}

// overlongMask masks responses that reached their limit: mask ← 0 where tokens ≥ limit.
//
// Source: SPEAR (Dr.BoT), after DAPO's overlong filtering. The reward still counts in the group.
// Departures: none. rStar2 leaves such rows in, with reward 0.
type overlongMask struct{}

// Mask reports that the response reached the limit.
func (overlongMask) Mask(r Response) bool { return r.Length >= r.Limit }

package method

import "cmp"

// Method names one choice for every slot. The paths of the slot table start at its fields.
type Method struct {
	Layout    string    `json:"layout"`
	Advantage Advantage `json:"advantage"`
	Loss      Loss      `json:"loss"`
	Resample  Resample  `json:"resample"`
	Filters   Filters   `json:"filters"`
	Reward    Reward    `json:"reward"`
	Replay    *Replay   `json:"replay"`
	Schedule  *Schedule `json:"schedule"`
}

// The layouts of the rows that a loss sees.
const (
	Trajectory = "trajectory"
	Turns      = "turns"
)

// layout is the method's, or the one that imported trajectories have.
func (m Method) layout() string { return cmp.Or(m.Layout, Trajectory) }

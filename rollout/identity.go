package rollout

import "github.com/ropewalk/ropewalk/internal/seed"

// The streams that episodes draw from.
const (
	LabelSample   = "sample"   // training rollouts
	LabelEvaluate = "evaluate" // held-out evaluation
)

// Identity places an episode in its run; schema's ids are made of it.
type Identity struct {
	Label               string
	Step, Group, Sample int
}

// stream is the seed of one turn's draws.
func (i Identity) stream(runSeed uint64, turn int) uint64 {
	return seed.Derive(i.Label, runSeed, uint64(i.Step), uint64(i.Group), uint64(i.Sample), uint64(turn))
}

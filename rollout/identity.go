package rollout

import "github.com/ropewalk/ropewalk/internal/seed"

// Labels of the random streams that episodes draw from.
const (
	LabelSample     = "sample"     // training rollouts
	LabelEvaluate   = "evaluate"   // held-out evaluation
	LabelDifficulty = "difficulty" // answers of a given model to training tasks
)

// Identity is the place of an episode in its run. The ids of package schema are derived from it.
type Identity struct {
	Label               string
	Step, Group, Sample int
}

// stream returns the seed of one turn's draws.
func (i Identity) stream(runSeed uint64, turn int) uint64 {
	return seed.Derive(i.Label, runSeed, uint64(i.Step), uint64(i.Group), uint64(i.Sample), uint64(turn))
}

package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/activities/wire"
)

// Register gives a worker every activity; the queue that it polls decides which it gets.
func (d *Deps) Register(w worker.ActivityRegistry) {
	for name, execute := range map[string]any{
		wire.PrepareRun:           PrepareRun{d}.Execute,
		wire.AmendRecipe:          AmendRecipe{d}.Execute,
		wire.WarmStart:            WarmStart{d}.Execute,
		wire.SelectPrompts:        SelectPrompts{d}.Execute,
		wire.GenerateRollouts:     GenerateRollouts{d}.Execute,
		wire.ExecuteToolCalls:     ExecuteToolCalls{d}.Execute,
		wire.AssembleTrajectories: AssembleTrajectories{d}.Execute,
		wire.GradeAnswers:         GradeAnswers{d}.Execute,
		wire.ScoreRewards:         ScoreRewards{d}.Execute,
		wire.CommitStages:         CommitStages{d}.Execute,
		wire.Resample:             Resample{d}.Execute,
		wire.ComputeTokenOutputs:  ComputeTokenOutputs{d}.Execute,
		wire.ComputeAdvantages:    ComputeAdvantages{d}.Execute,
		wire.UpdateReplayBuffer:   UpdateReplayBuffer{d}.Execute,
		wire.UpdatePolicy:         UpdatePolicy{d}.Execute,
		wire.PublishPolicy:        PublishPolicy{d}.Execute,
		wire.Evaluate:             Evaluate{d}.Execute,
		wire.RecordTimings:        RecordTimings{d}.Execute,
		wire.ImportTrajectories:   ImportTrajectories{d}.Execute,
		wire.CompareCalculator:    CompareCalculator{d}.Execute,
		wire.PrepareReplay:        PrepareReplay{d}.Execute,
		wire.CompareReplay:        CompareReplay{d}.Execute,
		wire.PrepareCheck:         PrepareCheck{d}.Execute,
		wire.CheckReplay:          CheckReplay{d}.Execute,
		wire.FindHome:             FindHome{d}.Execute,
		wire.ServeRanks:           ServeRanks{d}.Execute,
	} {
		w.RegisterActivityWithOptions(execute, activity.RegisterOptions{Name: name})
	}
}

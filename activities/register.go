package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Register registers every activity with a worker; the worker's queue decides which of them it runs.
func (d *Deps) Register(w worker.ActivityRegistry) {
	for name, stage := range d.registered() {
		w.RegisterActivityWithOptions(stage.activity, activity.RegisterOptions{Name: name})
	}
}

// registered lists the activities by name.
func (d *Deps) registered() map[string]stageActivity {
	return map[string]stageActivity{
		api.PrepareRun:           stageOf(PrepareRun{d}.Execute),
		api.AmendRecipe:          stageOf(AmendRecipe{d}.Execute),
		api.WarmStart:            stageOf(WarmStart{d}.Execute),
		api.PrepareData:          stageOf(PrepareData{d}.Execute),
		api.SelectCandidates:     stageOf(SelectCandidates{d}.Execute),
		api.AnswerTasks:          stageOf(AnswerTasks{d}.Execute),
		api.SelectPrompts:        stageOf(SelectPrompts{d}.Execute),
		api.GenerateRollouts:     stageOf(GenerateRollouts{d}.Execute),
		api.ExecuteToolCalls:     stageOf(ExecuteToolCalls{d}.Execute),
		api.RunEpisodes:          stageOf(RunEpisodes{d}.Execute),
		api.MakeBatch:            stageOf(MakeBatch{d}.Execute),
		api.AssembleTrajectories: stageOf(AssembleTrajectories{d}.Execute),
		api.GradeAnswers:         stageOf(GradeAnswers{d}.Execute),
		api.JudgeAnswers:         stageOf(JudgeAnswers{d}.Execute),
		api.CallFunction:         stageOf(CallFunction{d}.Execute),
		api.ScoreRewards:         stageOf(ScoreRewards{d}.Execute),
		api.CommitStages:         stageOf(CommitStages{d}.Execute),
		api.Resample:             stageOf(Resample{d}.Execute),
		api.ComputeTokenOutputs:  stageOf(ComputeTokenOutputs{d}.Execute),
		api.ComputeAdvantages:    stageOf(ComputeAdvantages{d}.Execute),
		api.UpdateReplayBuffer:   stageOf(UpdateReplayBuffer{d}.Execute),
		api.UpdatePolicy:         stageOf(UpdatePolicy{d}.Execute),
		api.PublishPolicy:        stageOf(PublishPolicy{d}.Execute),
		api.UpdateAndPublish:     stageOf(UpdateAndPublish{d}.Execute),
		api.PruneCheckpoints:     stageOf(PruneCheckpoints{d}.Execute),
		api.CompactStep:          stageOf(CompactStep{d}.Execute),
		api.Evaluate:             stageOf(Evaluate{d}.Execute),
		api.EvaluateUntaught:     stageOf(EvaluateUntaught{d}.Execute),
		api.EvaluateShard:        stageOf(EvaluateShard{d}.Execute),
		api.RecordTimings:        stageOf(RecordTimings{d}.Execute),
		api.ImportTrajectories:   stageOf(ImportTrajectories{d}.Execute),
		api.PrepareReplay:        stageOf(PrepareReplay{d}.Execute),
		api.CompareReplay:        stageOf(CompareReplay{d}.Execute),
		api.PrepareCheck:         stageOf(PrepareCheck{d}.Execute),
		api.CheckReplay:          stageOf(CheckReplay{d}.Execute),
		api.NoteState:            stageOf(NoteState{d}.Execute),
		api.NoteDeed:             stageOf(NoteDeed{d}.Execute),
		api.FindHome:             stageOf(FindHome{d}.Execute),
		api.ServeRanks:           stageOf(ServeRanks{d}.Execute),
	}
}

package activities

import (
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// Register registers every activity with a worker; the worker's queue decides which of them it runs.
func (d *Deps) Register(w worker.ActivityRegistry) {
	for name, execute := range map[string]any{
		api.PrepareRun:           PrepareRun{d}.Execute,
		api.AmendRecipe:          AmendRecipe{d}.Execute,
		api.WarmStart:            WarmStart{d}.Execute,
		api.PrepareData:          PrepareData{d}.Execute,
		api.SelectCandidates:     SelectCandidates{d}.Execute,
		api.AnswerTasks:          AnswerTasks{d}.Execute,
		api.SelectPrompts:        SelectPrompts{d}.Execute,
		api.GenerateRollouts:     GenerateRollouts{d}.Execute,
		api.ExecuteToolCalls:     ExecuteToolCalls{d}.Execute,
		api.RunEpisodes:          RunEpisodes{d}.Execute,
		api.MakeBatch:            MakeBatch{d}.Execute,
		api.AssembleTrajectories: AssembleTrajectories{d}.Execute,
		api.GradeAnswers:         GradeAnswers{d}.Execute,
		api.JudgeAnswers:         JudgeAnswers{d}.Execute,
		api.CallFunction:         CallFunction{d}.Execute,
		api.ScoreRewards:         ScoreRewards{d}.Execute,
		api.CommitStages:         CommitStages{d}.Execute,
		api.Resample:             Resample{d}.Execute,
		api.ComputeTokenOutputs:  ComputeTokenOutputs{d}.Execute,
		api.ComputeAdvantages:    ComputeAdvantages{d}.Execute,
		api.UpdateReplayBuffer:   UpdateReplayBuffer{d}.Execute,
		api.UpdatePolicy:         UpdatePolicy{d}.Execute,
		api.PublishPolicy:        PublishPolicy{d}.Execute,
		api.UpdateAndPublish:     UpdateAndPublish{d}.Execute,
		api.PruneCheckpoints:     PruneCheckpoints{d}.Execute,
		api.CompactStep:          CompactStep{d}.Execute,
		api.Evaluate:             Evaluate{d}.Execute,
		api.EvaluateUntaught:     EvaluateUntaught{d}.Execute,
		api.EvaluateShard:        EvaluateShard{d}.Execute,
		api.RecordTimings:        RecordTimings{d}.Execute,
		api.ImportTrajectories:   ImportTrajectories{d}.Execute,
		api.PrepareReplay:        PrepareReplay{d}.Execute,
		api.CompareReplay:        CompareReplay{d}.Execute,
		api.PrepareCheck:         PrepareCheck{d}.Execute,
		api.CheckReplay:          CheckReplay{d}.Execute,
		api.NoteState:            NoteState{d}.Execute,
		api.NoteDeed:             NoteDeed{d}.Execute,
		api.FindHome:             FindHome{d}.Execute,
		api.ServeRanks:           ServeRanks{d}.Execute,
	} {
		w.RegisterActivityWithOptions(contained(execute), activity.RegisterOptions{Name: name})
	}
}

// pureStages holds the activities of the stages that can be recomputed, by stage: one for each of api.Pure.
func (d *Deps) pureStages() map[string]pureStage {
	return map[string]pureStage{
		api.StageReward:    ScoreRewards{d},
		api.StageResample:  Resample{d},
		api.StageAdvantage: ComputeAdvantages{d},
		api.StageBuffer:    UpdateReplayBuffer{d},
	}
}

package experiments

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

const file = `name: x
recipe: quickstart
set: {steps: 2, evaluation.every: 1}
arms: {a: , b: {set: {optimizer.lr: 0.001}}, c: {set: {optimizer.lr: 0.002}}, d: {set: {optimizer.lr: 0.003}}}
seeds: 1
stop: {at: [1], collapse: {of: success, below: 0.1}}
`

// A trial is done if its last evaluation is in the record, or if its result is known from elsewhere.
func TestPlanExperiment(t *testing.T) {
	objects := mem.New()
	w := &stage.Worker{Records: record.Records{Store: objects, Record: commit.New(objects)}}
	plan := func(done ...string) api.PlannedExperiment {
		known := map[string]json.RawMessage{}
		for _, run := range done {
			known[run] = nil
		}
		out, err := PlanExperiment{w}.Execute(context.Background(), &stage.Env{}, api.PlanExperimentInput{
			ExperimentFile: api.ExperimentFile{YAML: file, File: "x.yaml", Known: known}})
		require.NoError(t, err)
		return out
	}
	first := plan()
	require.Equal(t, "x", first.Name)
	require.Equal(t, []int{1, 0}, first.Holds)
	require.Len(t, first.Trials, 4)
	require.Equal(t, []string{"steps=2", "evaluation.every=1", "optimizer.lr=0.001"}, first.Trials[1].Set)
	require.Equal(t, 2, first.Trials[1].Steps)
	recordtest.Train(t, objects, recordtest.Options{Run: first.Trials[0].Run, Steps: 2, Seed: 1,
		Created: "2026-01-02T03:04:05Z"})
	recordtest.Train(t, objects, recordtest.Options{Run: first.Trials[1].Run, Steps: 1, Planned: 2, Seed: 1, Open: true,
		Created: "2026-01-02T03:04:05Z"})
	var done []bool
	for _, trial := range plan(first.Trials[2].Run).Trials {
		done = append(done, trial.Done)
	}
	require.Equal(t, []bool{true, false, true, false}, done)
}

// What someone must correct fails at once, with its line.
func TestAFaultOfTheFileIsPermanent(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\nseedz: 1\nrecipe: quickstart": "x.yaml:2: seedz: is no field here",
		"name: x\nseeds: 1\nrecipe: own.yaml":   "recipe own.yaml: no such built-in recipe",
	} {
		_, err := PlanExperiment{&stage.Worker{}}.Execute(context.Background(), &stage.Env{}, api.PlanExperimentInput{
			ExperimentFile: api.ExperimentFile{YAML: text, File: "x.yaml"}})
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.True(t, app.NonRetryable())
		require.Equal(t, api.FailBadInput, app.Type())
		require.ErrorContains(t, err, want)
	}
}

func TestAWorkerThatJudgesNothingSaysSo(t *testing.T) {
	_, err := JudgeTrials{&stage.Worker{}}.Execute(context.Background(), &stage.Env{}, api.JudgeTrialsInput{})
	require.ErrorContains(t, err, "this worker judges no trials")
}

package workflows

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
)

// amending is AmendRecipe over an in-memory record, with attempts that fail before or after their commit.
type amending struct {
	made   map[int]api.AmendInput // by number; void ones have Settle set
	before int                    // number of attempts that fail before they commit
	after  int                    // number of attempts that fail after their commit
	asked  []api.AmendInput
}

// amendsBy lets a commit the run's amendments; a committed amendment sets the number of steps.
func (f *fakes) amendsBy(a *amending, steps map[string]int) {
	a.made = map[int]api.AmendInput{}
	handle(f, api.AmendRecipe, func(in api.AmendInput) (api.Amended, error) {
		a.asked = append(a.asked, in)
		if a.before--; a.before >= 0 {
			return api.Amended{}, errors.New("the store is away")
		}
		there, taken := a.made[in.Number]
		if !taken {
			there, a.made[in.Number] = in, in
		}
		if a.after--; a.after >= 0 {
			return api.Amended{}, errors.New("the store was away after the commit")
		}
		switch {
		case !there.Settle && there.Set[0] == in.Set[0] && there.Config == in.Config:
			plan := api.Plan{Recipe: "r", Steps: steps[there.Set[0]], Shards: 1, MaxTurns: 1}
			return api.Amended{Amendment: api.Amendment{Manifest: ref("amended", in.Number), Plan: plan,
				From: in.From}}, nil
		case there.Settle && in.Settle:
			return api.Amended{Void: true}, nil
		}
		return api.Amended{Taken: true}, nil
	})
}

// attempts is how often Temporal tries an activity before its failure is final.
var attempts = int(retryTransient.MaximumAttempts)

var stepsOf = map[string]int{"steps=2": 2, "steps=3": 3, "steps=4": 4}

func (f *fakes) trained(t *testing.T) int {
	t.Helper()
	require.NoError(t, f.env.GetWorkflowError())
	var out TrainRunResult
	require.NoError(t, f.env.GetWorkflowResult(&out))
	return out.Steps
}

// All attempts fail although the first one has committed: the run reports the change as made.
func TestAChangeThatLandedIsReportedAsMade(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1})
	a := &amending{after: attempts}
	f.amendsBy(a, stepsOf)
	f.slowly()
	three, four := 3, 4
	first := f.after(30*time.Second, UpdateSet, SetInput{Steps: &four})
	second := f.after(90*time.Second, UpdateSet, SetInput{Steps: &three})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Equal(t, 3, f.trained(t))
	require.NoError(t, first.failed)
	require.Equal(t, "from step 2 on: steps=4", first.value.(Steered).What)
	require.NoError(t, second.failed)
	require.Len(t, a.asked, attempts+2)
	require.True(t, a.asked[attempts].Settle)
	require.Equal(t, []any{1, ref("amended", 0)}, []any{a.asked[attempts+1].Number, a.asked[attempts+1].Config})
}

// All attempts fail before they commit. The run reports the change as failed, and the change can never land. A change
// with other values gets the next number.
func TestAFailedChangeLeavesItsNumberVoid(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1})
	a := &amending{before: attempts}
	f.amendsBy(a, stepsOf)
	f.slowly()
	four := 4
	failed := f.after(30*time.Second, UpdateSet, SetInput{Steps: &four})
	stop := f.after(90*time.Second, UpdateStop)
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Equal(t, 2, f.trained(t))
	require.ErrorContains(t, failed.failed, "the store is away; nothing is changed")
	require.NoError(t, stop.failed)
	require.True(t, a.made[0].Settle)
	require.Equal(t, []string{"steps=2"}, a.made[1].Set)
	require.Equal(t, ref("config"), a.made[1].Config)
}

// The store is unavailable while the run settles. The run settles before its next step and parks until it can. The
// change had landed, so it takes effect.
func TestAChangeInDoubtIsSettledBeforeTheNextStep(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1})
	a := &amending{after: 3 * attempts} // the change itself, the first settling, and the settling before the step
	f.amendsBy(a, stepsOf)
	f.slowly()
	four := 4
	doubtful := f.after(30*time.Second, UpdateSet, SetInput{Steps: &four})
	retry := f.after(time.Hour, UpdateRetry, RetryInput{})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Equal(t, 4, f.trained(t))
	require.ErrorContains(t, doubtful.failed, "it is in doubt whether the change holds")
	require.NotContains(t, doubtful.failed.Error(), "nothing is changed")
	require.NoError(t, retry.failed)
	require.Equal(t, "the failed stage runs again", retry.value.(Decided).What)
}

// The next change first settles the one in doubt.
func TestTheNextChangeSettlesTheOneInDoubt(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1})
	a := &amending{before: 2 * attempts}
	f.amendsBy(a, stepsOf)
	f.slowly()
	three, four := 3, 4
	doubtful := f.after(time.Second, UpdateSet, SetInput{Steps: &four})
	next := f.after(50*time.Second, UpdateSet, SetInput{Steps: &three})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Equal(t, 3, f.trained(t))
	require.ErrorContains(t, doubtful.failed, "in doubt")
	require.NoError(t, next.failed)
	require.True(t, a.made[0].Settle)
	require.Equal(t, []string{"steps=3"}, a.made[1].Set)
}

// A refused change has committed nothing, so there is nothing to settle.
func TestARefusedChangeUsesNoNumber(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 2, Shards: 1, MaxTurns: 1})
	asked := 0
	handle(f, api.AmendRecipe, func(api.AmendInput) (api.Amended, error) {
		asked++
		return api.Amended{}, temporal.NewNonRetryableApplicationError("rollout.temperature: must be > 0",
			api.FailBadInput, nil)
	})
	f.slowly()
	temperature := -1.0
	refused := f.after(30*time.Second, UpdateSet, SetInput{Temperature: &temperature})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Equal(t, 2, f.trained(t))
	require.ErrorContains(t, refused.failed, "rollout.temperature: must be > 0")
	require.Equal(t, 1, asked)
}

// The run skips a number that something else has taken; a resumed run starts with the first free number.
func TestATakenNumberIsPassedOver(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1})
	f.nextAmendment = 5
	a := &amending{}
	f.amendsBy(a, stepsOf)
	a.made[5] = api.AmendInput{Number: 5, Set: []string{"steps=4"}, Config: ref("elsewhere")}
	f.slowly()
	three := 3
	set := f.after(30*time.Second, UpdateSet, SetInput{Steps: &three})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Resume: true})
	require.Equal(t, 3, f.trained(t))
	require.NoError(t, set.failed)
	require.Equal(t, []string{"steps=3"}, a.made[6].Set)
}

// Continue-as-new carries a change in doubt.
func TestContinueAsNewCarriesAChangeInDoubt(t *testing.T) {
	in := &api.AmendInput{Run: "run-1", Config: ref("config"), Number: 2, From: 4, Set: []string{"steps=4"}}
	f := newFakes(t, api.Plan{})
	a := &amending{}
	f.amendsBy(a, stepsOf)
	a.made[2] = *in
	plan := api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1}
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart", Continued: &Continued{
		Prepared: api.Prepared{Done: api.Done{Manifest: ref("config")}, Plan: plan}, Next: 4, NextAmendment: 2,
		Unsettled: in,
	}})
	require.Equal(t, 4, f.trained(t))
	require.True(t, a.asked[0].Settle)

	long := newFakes(t, api.Plan{Recipe: "r", Steps: stepsPerHistory + 5, Shards: 1, MaxTurns: 1})
	long.nextAmendment = 3
	long.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, long.env.GetWorkflowError(), &again)
	var next TrainRunInput
	require.NoError(t, json.Unmarshal(again.Input.Payloads[0].Data, &next))
	require.Equal(t, 3, next.Continued.NextAmendment)
}

// Who asks for a change travels with it, from every update that can change the recipe. Updates without an Asker, of
// earlier commands and other programs, ask for the same as before.
func TestChangesCarryWhoAsks(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 9, Shards: 1, MaxTurns: 1})
	a := &amending{}
	f.amendsBy(a, map[string]int{"steps=4": 4, "steps=5": 5, "steps=3": 3})
	f.slowly()
	four, five := 4, 5
	f.after(30*time.Second, UpdateSet, SetInput{Steps: &five})
	f.after(31*time.Second, UpdateSet, SetInput{Steps: &four}, Asker{Actor: "ada"})
	stop := f.after(150*time.Second, UpdateStop, Asker{Actor: "grace"})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.Equal(t, 3, f.trained(t))
	require.NoError(t, stop.failed)
	require.Len(t, a.asked, 3)
	require.Equal(t, []string{"", "ada", "grace"}, []string{a.asked[0].Actor, a.asked[1].Actor, a.asked[2].Actor})
	require.Zero(t, a.asked[0].At)
	require.Positive(t, a.asked[1].At)
	require.Greater(t, a.asked[2].At, a.asked[1].At)
	text, err := json.Marshal(a.asked[0])
	require.NoError(t, err)
	require.NotContains(t, string(text), "actor")
}

// A parked step's retry with other settings carries who asks, too.
func TestARetryCarriesWhoAsks(t *testing.T) {
	f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1})
	amended := f.amends(func(api.AmendInput) api.Plan {
		return api.Plan{Recipe: "r", Steps: 1, Shards: 1, MaxTurns: 1}
	})
	broken(f, api.GenerateRollouts, 1, func(api.GenerateInput) bool { return true }, f.generate)
	groups := 1
	retry := f.after(time.Hour, UpdateRetry, RetryInput{ShardGroups: &groups}, Asker{Actor: "ada"})
	f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
	require.NoError(t, f.env.GetWorkflowError())
	require.NoError(t, retry.failed)
	require.Len(t, *amended, 1)
	require.Equal(t, "ada", (*amended)[0].Actor)
}

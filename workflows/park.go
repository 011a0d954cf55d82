package workflows

import (
	"fmt"
	"maps"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/schema"
)

// What a person can do with a parked run. Each is an update of the open workflow.
const (
	UpdateRetry = "retry"
	UpdateSkip  = "skip"
	UpdateAbort = "abort"
)

// Parked describes a run that waits for a person because a stage has failed after all its retries. Committed work is
// not lost, and the workflow stays open.
type Parked struct {
	Step     int            `json:"step"` // 0 before the first step
	Kind     string         `json:"kind"` // kind of the first failure, also the search attribute FailureKind
	Failures []StageFailure `json:"failures"`
	// Skip says what a skip means here; NoSkip says why the failure cannot be skipped.
	Skip   string `json:"skip,omitempty"`
	NoSkip string `json:"no_skip,omitempty"`
}

// StageFailure is a stage of one shard that failed after all its retries.
type StageFailure struct {
	Stage    string `json:"stage"`
	Shard    int    `json:"shard"` // −1 where the stage has no shards
	Turn     int    `json:"turn"`  // −1 where the stage has no turns
	Activity string `json:"activity,omitempty"`
	Kind     string `json:"kind"`
	Text     string `json:"text"`
}

// String returns where the stage failed and why, as one line.
func (f StageFailure) String() string { return f.where() + ": " + f.Text }

func (f StageFailure) where() string {
	where := f.Stage
	if f.Shard >= 0 {
		where += fmt.Sprintf(", shard %d", f.Shard)
	}
	if f.Turn >= 0 {
		where += fmt.Sprintf(", turn %d", f.Turn)
	}
	return where
}

// RetryInput is the argument of the update retry: the stage runs again with these changes.
type RetryInput struct {
	// TimeoutSeconds is the time limit of one attempt of the failed stage.
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty"`
	// The other fields change the recipe: of a step from this step on, whose rollout starts again.
	ShardGroups   *int     `json:"shard_groups,omitempty"`
	Temperature   *float64 `json:"temperature,omitempty"`
	MaxTurnTokens *int     `json:"max_turn_tokens,omitempty"`
	// Set changes any other fields of the recipe, path=value each.
	Set []string `json:"set,omitempty"`

	invalid string
}

// UnmarshalJSON refuses unknown fields; see TrainRunInput.
func (in *RetryInput) UnmarshalJSON(data []byte) error {
	type plain RetryInput
	return strictJSON(data, (*plain)(in), &in.invalid)
}

func (in RetryInput) validate() error {
	switch {
	case in.invalid != "":
		return badInput("%s", in.invalid)
	case in.TimeoutSeconds < 0 || in.TimeoutSeconds > maxTimeout.Seconds():
		return badInput("timeout_seconds: must be between 0 (as before) and %g, got %g", maxTimeout.Seconds(),
			in.TimeoutSeconds)
	}
	return nil
}

// set returns the recipe overrides of the retry.
func (in RetryInput) set() []string {
	var set []string
	if in.ShardGroups != nil {
		set = append(set, fmt.Sprintf("rollout.shard_groups=%d", *in.ShardGroups))
	}
	if in.Temperature != nil {
		set = append(set, fmt.Sprintf("rollout.temperature=%v", *in.Temperature))
	}
	if in.MaxTurnTokens != nil {
		set = append(set, fmt.Sprintf("rollout.max_turn_tokens=%d", *in.MaxTurnTokens))
	}
	return append(set, in.Set...)
}

// Decided answers an update of a parked run.
type Decided struct {
	Action string `json:"action"`
	What   string `json:"what"` // what happens next
}

// decision is a person's choice.
type decision struct {
	action string
	retry  RetryInput
}

// limits returns the time limits of the next attempt: the limits of the last one, with the person's limit for the
// activities that failed.
func (d decision) limits(last limits, failed []StageFailure) limits {
	if d.retry.TimeoutSeconds <= 0 {
		return last
	}
	next := maps.Clone(last)
	for _, f := range failed {
		next[f.Activity] = d.retry.TimeoutSeconds
	}
	return next
}

// parking lets a workflow wait for a person's decision.
type parking struct {
	parked   *Parked
	decision *decision
	// amend changes the recipe for a retry and says what runs again; nil where nothing can be changed.
	amend func(ctx workflow.Context, set []string, by Asker) (what string, err error)
}

// register adds the updates retry, skip and abort. The workflow refuses them unless the run is parked.
func (p *parking) register(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateRetry, p.retry, workflow.UpdateHandlerOptions{
		Description: `Run the failed stage again. Optional: {"timeout_seconds": 600, "shard_groups": 16, ` +
			`"temperature": 0.8, "max_turn_tokens": 64, "set": ["evaluation.problems=60"]}; {} changes nothing.`,
		Validator: func(_ workflow.Context, in RetryInput, _ Asker) error {
			if err := in.validate(); err != nil {
				return err
			}
			if err := p.waiting(); err != nil {
				return err
			}
			if p.amend == nil && (len(in.set()) > 0) {
				return badInput("shard_groups, temperature, max_turn_tokens, set: the recipe can be changed only " +
					"while a run trains; retry with {} or timeout_seconds")
			}
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("register update %s: %w", UpdateRetry, err)
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateSkip, func(workflow.Context) (Decided, error) {
		what := p.parked.Skip
		p.decision = &decision{action: UpdateSkip}
		return Decided{Action: UpdateSkip, What: what}, nil
	}, workflow.UpdateHandlerOptions{
		Description: "Go on without what failed, where meaning is kept: a shard's rows are recorded as excluded, " +
			"an evaluation is left out. No argument.",
		Validator: func(workflow.Context) error {
			if err := p.waiting(); err != nil {
				return err
			}
			if p.parked.NoSkip != "" {
				return badInput("skip: %s; retry or abort", p.parked.NoSkip)
			}
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("register update %s: %w", UpdateSkip, err)
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateAbort, func(workflow.Context) (Decided, error) {
		p.decision = &decision{action: UpdateAbort}
		return Decided{Action: UpdateAbort, What: "the workflow fails; what was committed is kept"}, nil
	}, workflow.UpdateHandlerOptions{
		Description: "Give the run up: the workflow fails with what failed. What was committed is kept. No argument.",
		Validator:   func(workflow.Context) error { return p.waiting() },
	})
	if err != nil {
		return fmt.Errorf("register update %s: %w", UpdateAbort, err)
	}
	return nil
}

func (p *parking) retry(ctx workflow.Context, in RetryInput, by Asker) (Decided, error) {
	what := "the failed stage runs again"
	if set := in.set(); len(set) > 0 {
		again, err := p.amend(ctx, set, by)
		if err != nil {
			return Decided{}, err
		}
		what = again + " with " + strings.Join(set, ", ")
	}
	if in.TimeoutSeconds > 0 {
		what += fmt.Sprintf(", %g s an attempt", in.TimeoutSeconds)
	}
	p.decision = &decision{action: UpdateRetry, retry: in}
	return Decided{Action: UpdateRetry, What: what}, nil
}

// waiting refuses an update unless the run is parked and no one has decided yet.
func (p *parking) waiting() error {
	if p.parked == nil || p.decision != nil {
		return badInput("the run is not parked: nothing waits for a decision")
	}
	return nil
}

// hold parks the run until a person decides or the workflow is cancelled. It calls show once the run has parked. A run
// that is aborted then notes that it has failed.
func (p *parking) hold(ctx workflow.Context, s *states, what Parked, show func()) (decision, error) {
	setFailureKind(ctx, what.Kind)
	s.enter(ctx, schema.StateParked, what.Kind, reasonOf(what.Failures))
	p.parked, p.decision = &what, nil
	show()
	err := workflow.Await(ctx, func() bool { return p.decision != nil })
	p.parked = nil
	if err != nil {
		return decision{}, err
	}
	if p.decision.action != UpdateAbort {
		unsetFailureKind(ctx)
		s.enter(ctx, schema.StateRunning, "", "")
	}
	return *p.decision, nil
}

// aborted is the failure of a run that a person aborted.
func aborted(all []StageFailure) error {
	var texts []string
	for _, f := range all {
		texts = append(texts, f.String())
	}
	return temporal.NewNonRetryableApplicationError("aborted: "+strings.Join(texts, "; "), all[0].Kind, nil)
}

// markdown tells the reader of Temporal's UI what is parked and what to do about it.
func (p Parked) markdown(run string) string {
	var b strings.Builder
	where := "before the first step"
	if p.Step > 0 {
		where = fmt.Sprintf("at step %d", p.Step)
	}
	fmt.Fprintf(&b, "### Parked %s: %s\n\n%s", where, p.Kind, p.list())
	b.WriteString("\nMend the cause, then send an update:\n\n")
	fmt.Fprintf(&b,
		"- `retry`: run it again, `{}` or e.g. `{\"set\": [\"FIELD=VALUE\"]}` (`ropewalk unpark %s --retry --set "+
			"FIELD=VALUE`)\n", run)
	if p.NoSkip == "" {
		fmt.Fprintf(&b, "- `skip`: %s (`ropewalk unpark %s --skip`)\n", p.Skip, run)
	} else {
		fmt.Fprintf(&b, "- `skip` cannot be done: %s\n", p.NoSkip)
	}
	fmt.Fprintf(&b, "- `abort`: give the run up; what was committed is kept (`ropewalk unpark %s --abort`)\n", run)
	return b.String()
}

// list names the failures, as markdown.
func (p Parked) list() string {
	const most = 8
	var b strings.Builder
	for _, f := range p.Failures[:min(len(p.Failures), most)] {
		fmt.Fprintf(&b, "- **%s**: %s\n", f.where(), cell(f.Text))
	}
	if n := len(p.Failures) - most; n > 0 {
		fmt.Fprintf(&b, "- … and %d more\n", n)
	}
	return b.String()
}

// cell makes text fit one line of markdown.
func cell(text string) string {
	const most = 600
	text = strings.ReplaceAll(text, "\n", " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// linesKept bounds the lines that the query returns and that continue-as-new carries.
const linesKept = 12

// StepLine holds the figures of one finished step.
type StepLine struct {
	Step              int      `json:"step"`
	Reward            float64  `json:"reward"`
	Success           float64  `json:"success"`
	ToolErrorPositive float64  `json:"tool_error_positive"`
	PositiveCalls     int      `json:"positive_calls,omitempty"` // tool calls that ToolErrorPositive is a share of
	KeptGroups        int      `json:"kept_groups"`
	DroppedGroups     int      `json:"dropped_groups"`
	Entropy           *float64 `json:"entropy"`
	KL                float64  `json:"kl"`
	ClipFraction      float64  `json:"clip_fraction"`
	GradNorm          *float64 `json:"grad_norm"`
	Trajectories      int      `json:"trajectories"` // with a reward; the means are over these trajectories
	// Lag is the number of updates between the policy that sampled the step and the one that learnt from it.
	Lag int `json:"lag,omitempty"`
	// Rounds counts the rounds of dynamic sampling; 0 where the recipe has none.
	Rounds int `json:"rounds,omitempty"`
	// ReferenceKL is the estimated divergence from the reference policy, where the loss includes one.
	ReferenceKL *float64 `json:"reference_kl,omitempty"`
	// Advantages describes the advantages that the update trained on; nil where it had nothing to train on.
	Advantages *schema.Advantages `json:"advantages,omitempty"`
	// Critic is the critic's part of the update, where the recipe has one.
	Critic *schema.CriticFigures `json:"critic,omitempty"`
	// Device is how the update used its engine's devices; nil where the engine measures nothing.
	Device *api.DeviceUse `json:"device,omitempty"`
	// Buffer is the state of the replay buffer after the step, where the recipe has one.
	Buffer *BufferLine `json:"replay,omitempty"`
	// Excluded counts the step's trajectories that were excluded because something broke, including those of skipped
	// shards.
	Excluded int `json:"excluded,omitempty"`
	// Edited names files of the user's reward function or environment that were edited since the run began.
	Edited       string             `json:"edited,omitempty"`
	ToolCalls    int                `json:"tool_calls"`
	Tokens       int64              `json:"tokens"`
	Seconds      float64            `json:"seconds"`
	StageSeconds map[string]float64 `json:"stage_seconds"`
}

// EditedWords says that code was edited; "" if none was.
func (l StepLine) EditedWords() string {
	if l.Edited == "" {
		return ""
	}
	return fmt.Sprintf("step %d ran Python that was edited since the run began: %s", l.Step, l.Edited)
}

// MeasuredLine is the result of an evaluation after a step.
type MeasuredLine struct {
	Step int `json:"step"`
	api.Rate
	Greedy string `json:"greedy"` // the share of greedy successes, in words
}

// String says what the evaluation has found.
func (l MeasuredLine) String() string {
	return fmt.Sprintf("after step %d: success %s of %d problems, greedy %s", l.Step, l.Rate, l.N, l.Greedy)
}

// BufferLine holds the figures of the replay buffer for one step.
type BufferLine struct {
	Size         int     `json:"size"`   // rows in the buffer
	Stored       int     `json:"stored"` // rows added in this step
	Consumed     bool    `json:"consumed,omitempty"`
	Imitated     int     `json:"imitated,omitempty"` // rows in the replay batch
	P50          float64 `json:"p50"`
	Recalibrated float64 `json:"recalibrated,omitempty"` // mean Ã of the imitated rows
	Gamma        float64 `json:"gamma"`
}

// bufferLine returns nil where the recipe has no buffer.
func bufferLine(b api.Buffered, u api.Updated) *BufferLine {
	if u.Gamma == nil {
		return nil
	}
	return &BufferLine{Size: b.Size, Stored: b.Stored, Consumed: b.Consumed, Imitated: b.Imitated, P50: b.P50,
		Recalibrated: b.Recalibrated, Gamma: *u.Gamma}
}

// Progress is a run's state, as the query returns it and the UI's details show it.
type Progress struct {
	Run              string                 `json:"run_id"`
	Recipe           string                 `json:"recipe"`
	Seed             uint64                 `json:"seed"`
	Stage            string                 `json:"stage"`
	Step             int                    `json:"step"`
	Steps            int                    `json:"steps"`
	Sampling         int                    `json:"sampling,omitempty"` // the step that a pipelined run samples ahead
	WarmStartSeconds float64                `json:"warm_start_seconds"`
	Warm             *api.EvaluationSummary `json:"warm_start,omitempty"`
	Final            *api.EvaluationSummary `json:"final,omitempty"`
	Measured         []MeasuredLine         `json:"measured,omitempty"`   // the latest evaluations between steps
	Evaluating       *EvaluatingLine        `json:"evaluating,omitempty"` // of an evaluation that has shards
	Lines            []StepLine             `json:"lines,omitempty"`      // the latest steps, oldest first
	Failure          string                 `json:"failure,omitempty"`
	Paused           bool                   `json:"paused,omitempty"`
	Parked           *Parked                `json:"parked,omitempty"`
	Changes          []string               `json:"changes,omitempty"` // changes of settings, the latest last
	Notes            []string               `json:"notes,omitempty"`   // what a user may not expect of the run
	Started          time.Time              `json:"started,omitzero"`  // of the run's first execution, since it was last resumed
	// Elapsed are the seconds from Started to the latest change of stage, pauses and parking included. The server's own
	// duration of a run that has continued as new counts the last execution alone.
	Elapsed float64 `json:"elapsed_seconds,omitempty"`
	Totals  Totals  `json:"totals,omitzero"`
	// Unpruned says why checkpoints that the recipe does not keep still exist; "" if the latest pruning succeeded.
	Unpruned string `json:"unpruned,omitempty"`
}

// EvaluatingLine says how far the shards of an evaluation are.
type EvaluatingLine struct {
	Done     int `json:"done"` // committed shards
	Shards   int `json:"shards"`
	Measured int `json:"measured"` // problems of these shards
	Problems int `json:"problems"`
	Solved   int `json:"solved"` // sampled episodes that solved their problem
	Sampled  int `json:"sampled"`
}

func (e *EvaluatingLine) add(problems int, s api.EvaluatedShard) {
	e.Done, e.Measured = e.Done+1, e.Measured+problems
	e.Solved, e.Sampled = e.Solved+s.Solved, e.Sampled+s.Sampled
}

// String says how far the evaluation is and what it has found so far.
func (e *EvaluatingLine) String() string {
	text := fmt.Sprintf("%d of %d problems, %d of %d shards", e.Measured, e.Problems, e.Done, e.Shards)
	if e.Sampled > 0 {
		text += fmt.Sprintf(", success so far %.1f%%", 100*float64(e.Solved)/float64(e.Sampled))
	}
	return text
}

// changesKept bounds the changes that the details show.
const changesKept = 8

func (p *Progress) changed(text string) {
	p.Changes = append(p.Changes, text)
	if n := len(p.Changes); n > changesKept {
		p.Changes = append([]string(nil), p.Changes[n-changesKept:]...)
	}
}

func (p *Progress) plan(run string, plan api.Plan) {
	p.Run, p.Recipe, p.Seed, p.Steps = run, plan.Recipe, plan.Seed, plan.Steps
}

func (p *Progress) add(line StepLine) {
	p.Totals.add(line)
	p.Lines = append(p.Lines, line)
	if n := len(p.Lines); n > linesKept {
		p.Lines = append([]StepLine(nil), p.Lines[n-linesKept:]...)
	}
}

// measured adds the result of an evaluation between two steps.
func (p *Progress) measured(step int, e api.EvaluationSummary) {
	p.Measured = append(p.Measured, MeasuredLine{Step: step, Rate: e.Rate, Greedy: e.GreedyWords()})
	if n := len(p.Measured); n > linesKept {
		p.Measured = append([]MeasuredLine(nil), p.Measured[n-linesKept:]...)
	}
}

// ViewAddress is where `ropewalk view` serves its pages unless a flag says otherwise: always the same, so that links to
// them last.
const ViewAddress = "127.0.0.1:8377"

// Markdown renders the state for Temporal's UI, within its limit of 20,000 bytes.
func (p *Progress) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · recipe %s · seed %d · step %d of %d · %s\n\n", p.Run, p.Recipe, p.Seed, p.Step, p.Steps,
		p.Stage)
	fmt.Fprintf(&b, "[Trajectories and figures](http://%s/%s/), on a machine where `ropewalk view` runs.\n\n",
		ViewAddress, p.Run)
	if !p.Started.IsZero() {
		fmt.Fprintf(&b, "Started %s; elapsed %s.", p.Started.Format("2006-01-02 15:04 UTC"), wholeSeconds(p.Elapsed))
		if p.Totals.Steps > 0 {
			fmt.Fprintf(&b, " %s.", p.Totals)
		}
		b.WriteString("\n\n")
	}
	if p.Sampling > p.Step {
		fmt.Fprintf(&b, "Step %d is being sampled ahead.\n\n", p.Sampling)
	}
	if p.Failure != "" {
		fmt.Fprintf(&b, "**Failed**: %s\n\nWhat was committed is kept. Go on with `ropewalk resume %s`.\n\n", p.Failure,
			p.Run)
	}
	if p.Parked != nil {
		b.WriteString(p.Parked.markdown(p.Run) + "\n")
	} else if p.Paused {
		fmt.Fprintf(&b, "**Paused** before the next step. Send the update `unpause`, or `ropewalk unpause %s`.\n\n",
			p.Run)
	}
	if p.Unpruned != "" {
		fmt.Fprintf(&b, "**Warning**: old checkpoints could not be deleted and still take up space: %s\n\n", p.Unpruned)
	}
	if n := len(p.Lines); n > 0 && p.Lines[n-1].Edited != "" {
		fmt.Fprintf(&b, "**Warning**: %s\n\n", p.Lines[n-1].EditedWords())
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "- note: %s\n", note)
	}
	for _, change := range p.Changes {
		fmt.Fprintf(&b, "- changed %s\n", change)
	}
	if p.Warm != nil {
		fmt.Fprintf(&b, "\nWarm start: success %s, greedy %s\n\n", p.Warm.Rate, p.Warm.GreedyWords())
	}
	for _, m := range p.Measured {
		fmt.Fprintf(&b, "- %s\n", m)
	}
	if e := p.Evaluating; e != nil && p.Final == nil {
		fmt.Fprintf(&b, "Evaluating: %s\n\n", e)
	}
	if p.Final != nil {
		fmt.Fprintf(&b, "Final: success %s, greedy %s\n\n", p.Final.Rate, p.Final.GreedyWords())
	}
	if len(p.Lines) == 0 {
		return b.String()
	}
	p.stepTables(&b)
	p.stageTimes(&b)
	if d := p.Lines[len(p.Lines)-1].Device; d != nil {
		fmt.Fprintf(&b, "\nThe last update's devices: %s\n", d)
	}
	return b.String()
}

// stageTimes adds a table of seconds by stage for the latest steps. It includes each stage that ran in one of them.
func (p *Progress) stageTimes(b *strings.Builder) {
	shown := stages.Named(func(s stages.Stage) bool {
		ran := func(l StepLine) bool { return l.StageSeconds[s.Name] > 0 }
		return s.Phase == stages.Step && (!s.Optional() || slices.ContainsFunc(p.Lines, ran))
	})
	lines := p.Lines[max(0, len(p.Lines)-timedLines):]
	b.WriteString("\nSeconds by stage:\n\n| stage |")
	for _, l := range slices.Backward(lines) {
		fmt.Fprintf(b, " step %d |", l.Step)
	}
	b.WriteString("\n|:--|" + strings.Repeat("--:|", len(lines)) + "\n")
	for _, stage := range shown {
		fmt.Fprintf(b, "| %s |", stage)
		for _, l := range slices.Backward(lines) {
			fmt.Fprintf(b, " %.2f |", l.StageSeconds[stage])
		}
		b.WriteString("\n")
	}
}

// timedLines is how many steps the table of stage times shows.
const timedLines = 5

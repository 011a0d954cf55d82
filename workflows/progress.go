package workflows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// linesKept bounds what the query returns and what a continue-as-new carries.
const linesKept = 12

// StepLine is one finished step in figures.
type StepLine struct {
	Step              int     `json:"step"`
	Reward            float64 `json:"reward"`
	Success           float64 `json:"success"`
	ToolErrorPositive float64 `json:"tool_error_positive"`
	KeptGroups        int     `json:"kept_groups"`
	DroppedGroups     int     `json:"dropped_groups"`
	Entropy           float64 `json:"entropy"`
	KL                float64 `json:"kl"`
	ClipFraction      float64 `json:"clip_fraction"`
	GradNorm          float64 `json:"grad_norm"`
	Trajectories      int     `json:"trajectories"` // with a reward: the means are over these
	// Rounds counts the rounds of dynamic sampling; 0 where the recipe has none.
	Rounds int `json:"rounds,omitempty"`
	// ReferenceKL is the estimated divergence from the reference policy, where the loss takes one.
	ReferenceKL *float64 `json:"reference_kl,omitempty"`
	// Advantages are those that the update learnt from; nil where it had nothing to learn from.
	Advantages *schema.Advantages `json:"advantages,omitempty"`
	// Critic is the critic's part of the update, where there is one.
	Critic *schema.CriticFigures `json:"critic,omitempty"`
	// Device is what the update used of its engine's devices; nil where the engine measures nothing.
	Device *wire.DeviceUse `json:"device,omitempty"`
	// Replay is how the replay buffer stands after the step, where the recipe has one.
	Replay *ReplayLine `json:"replay,omitempty"`
	// Excluded counts the step's trajectories that something broke, those of skipped shards too.
	Excluded     int                `json:"excluded,omitempty"`
	ToolCalls    int                `json:"tool_calls"`
	Tokens       int64              `json:"tokens"`
	Seconds      float64            `json:"seconds"`
	StageSeconds map[string]float64 `json:"stage_seconds"`
}

// ReplayLine is one step of the replay buffer in figures.
type ReplayLine struct {
	Size         int     `json:"size"`   // trajectories that it holds
	Stored       int     `json:"stored"` // that entered
	Consumed     bool    `json:"consumed,omitempty"`
	Imitated     int     `json:"imitated,omitempty"` // trajectories of the replay batch
	P50          float64 `json:"p50"`
	Recalibrated float64 `json:"recalibrated,omitempty"` // mean Ã of those
	Gamma        float64 `json:"gamma"`
}

// replayLine is nil where the recipe has no buffer.
func replayLine(b wire.Buffered, u wire.Updated) *ReplayLine {
	if u.Gamma == nil {
		return nil
	}
	return &ReplayLine{Size: b.Size, Stored: b.Stored, Consumed: b.Consumed, Imitated: b.Imitated, P50: b.P50, Recalibrated: b.Recalibrated, Gamma: *u.Gamma}
}

// Progress is a run's state, as the query returns it and the UI's details show it.
type Progress struct {
	Run              string                  `json:"run_id"`
	Recipe           string                  `json:"recipe"`
	Seed             uint64                  `json:"seed"`
	Stage            string                  `json:"stage"`
	Step             int                     `json:"step"`
	Steps            int                     `json:"steps"`
	WarmStartSeconds float64                 `json:"warm_start_seconds"`
	Warm             *wire.EvaluationSummary `json:"warm_start,omitempty"`
	Final            *wire.EvaluationSummary `json:"final,omitempty"`
	Lines            []StepLine              `json:"lines,omitempty"` // the latest steps, oldest first
	Failure          string                  `json:"failure,omitempty"`
	Paused           bool                    `json:"paused,omitempty"`
	Parked           *Parked                 `json:"parked,omitempty"`
	Changes          []string                `json:"changes,omitempty"` // of settings, the latest last
}

// changesKept bounds the changes that the details show.
const changesKept = 8

func (p *Progress) changed(text string) {
	p.Changes = append(p.Changes, text)
	if n := len(p.Changes); n > changesKept {
		p.Changes = append([]string(nil), p.Changes[n-changesKept:]...)
	}
}

func (p *Progress) plan(run string, plan wire.Plan) {
	p.Run, p.Recipe, p.Seed, p.Steps = run, plan.Recipe, plan.Seed, plan.Steps
}

func (p *Progress) add(line StepLine) {
	p.Lines = append(p.Lines, line)
	if n := len(p.Lines); n > linesKept {
		p.Lines = append([]StepLine(nil), p.Lines[n-linesKept:]...)
	}
}

// Markdown draws the state for Temporal's UI, within its 20,000 bytes.
func (p *Progress) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · recipe %s · seed %d · step %d of %d · %s\n\n", p.Run, p.Recipe, p.Seed, p.Step, p.Steps, p.Stage)
	if p.Failure != "" {
		fmt.Fprintf(&b, "**Failed**: %s\n\nWhat was committed is kept. Go on with `ropewalk resume %s`.\n\n", p.Failure, p.Run)
	}
	if p.Parked != nil {
		b.WriteString(p.Parked.markdown(p.Run) + "\n")
	} else if p.Paused {
		fmt.Fprintf(&b, "**Paused** before the next step. Send the update `unpause`, or `ropewalk unpause %s`.\n\n", p.Run)
	}
	for _, change := range p.Changes {
		fmt.Fprintf(&b, "- changed %s\n", change)
	}
	if p.Warm != nil {
		fmt.Fprintf(&b, "\nWarm start: success %.1f%% (95%%: %.1f–%.1f), greedy %.1f%%\n\n",
			100*p.Warm.Success, 100*p.Warm.CILow, 100*p.Warm.CIHigh, 100*p.Warm.Greedy)
	}
	if p.Final != nil {
		fmt.Fprintf(&b, "Final: success %.1f%% (95%%: %.1f–%.1f), greedy %.1f%%\n\n",
			100*p.Final.Success, 100*p.Final.CILow, 100*p.Final.CIHigh, 100*p.Final.Greedy)
	}
	if len(p.Lines) == 0 {
		return b.String()
	}
	p.stepTable(&b)
	p.stageTimes(&b)
	if d := p.Lines[len(p.Lines)-1].Device; d != nil {
		fmt.Fprintf(&b, "\nThe last update's devices: %s\n", d)
	}
	return b.String()
}

// stageTimes adds where the time of the latest steps went.
func (p *Progress) stageTimes(b *strings.Builder) {
	stages := slices.DeleteFunc(slices.Clone(timedStages), func(stage string) bool {
		return (stage == wire.StageGrade || stage == wire.StageForward || stage == wire.StageBuffer) && !slices.ContainsFunc(p.Lines, func(l StepLine) bool { return l.StageSeconds[stage] > 0 })
	})
	b.WriteString("\nSeconds by stage:\n\n| step |")
	for _, stage := range stages {
		fmt.Fprintf(b, " %s |", stage)
	}
	b.WriteString("\n|--:|" + strings.Repeat("--:|", len(stages)) + "\n")
	for i := len(p.Lines) - 1; i >= max(0, len(p.Lines)-timedLines); i-- {
		fmt.Fprintf(b, "| %d |", p.Lines[i].Step)
		for _, stage := range stages {
			fmt.Fprintf(b, " %.2f |", p.Lines[i].StageSeconds[stage])
		}
		b.WriteString("\n")
	}
}

// timedLines is how many steps the table of stage times shows.
const timedLines = 5

// timedStages are the stages of a step, in their order; grade, forward and buffer are shown where they run.
var timedStages = []string{
	wire.StagePrompts, wire.StageRollout, wire.StageSandbox, wire.StageAssemble, wire.StageGrade, wire.StageReward, wire.StageCommit,
	wire.StageResample, wire.StageForward, wire.StageAdvantage, wire.StageBuffer, wire.StageUpdate, wire.StagePublish,
}

package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// errNoTrajectory means that the index has no trajectory or group of that name.
var errNoTrajectory = errors.New("is not among the finished steps")

// Closeup is one trajectory as its page shows it.
type Closeup struct {
	ID    string         `json:"id"`
	Row   map[string]any `json:"row"`   // of the index, without its text
	Asked string         `json:"asked"` // what the policy was asked, laid out
	Group []string       `json:"group"`
	Turns []Turn         `json:"turns"`
	// Notes are what the record says besides.
	Notes []analysis.Part `json:"notes"`
	// Advantage is the mean over its tokens, before the weight; null for a trajectory that is not in the batch.
	Advantage *float64 `json:"advantage"`
	// Messages are those of an imported conversation, unchanged.
	Messages string `json:"messages,omitempty"`
}

// Turn is one turn: its tokens and what they led to.
type Turn struct {
	Number int    `json:"number"`
	Finish string `json:"finish"`
	// Summary is true where the policy wrote a summary of its episode instead of acting.
	Summary bool            `json:"summary,omitempty"`
	Broken  string          `json:"broken,omitempty"` // why there is no response
	Pieces  Pieces          `json:"pieces"`
	Calls   []analysis.Call `json:"calls"`
	// Environment tells what an action led to in an interactive environment.
	Environment []analysis.Part `json:"environment,omitempty"`
}

// Closeup reads one trajectory.
func (v *Viewer) Closeup(ctx context.Context, id string) (Closeup, error) {
	row, err := v.one(ctx, id)
	if err != nil {
		return Closeup{}, err
	}
	if row == nil {
		return Closeup{}, fmt.Errorf("trajectory %q %w", id, errNoTrajectory)
	}
	out := Closeup{ID: id, Row: row, Turns: []Turn{}}
	if out.Group, err = v.members(ctx, fmt.Sprint(row["group_id"])); err != nil {
		return out, err
	}
	step, ok := row["step"].(int32)
	if !ok {
		return out, fmt.Errorf("trajectory %q: its step is %v", id, row["step"])
	}
	recorded, held := strings.CutPrefix(id, heldPrefix)
	read, err := v.stepOf(ctx, int(step), held)
	if err != nil {
		return out, err
	}
	if c, ok := read.trajectories[recorded]; ok { // the step's shards hold nothing of a skipped one
		out.show(c, read)
	}
	return out, nil
}

// Group reads all trajectories of a group.
func (v *Viewer) Group(ctx context.Context, group string) ([]Closeup, error) {
	members, err := v.members(ctx, group)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("group %q %w", group, errNoTrajectory)
	}
	out := make([]Closeup, len(members))
	for i, id := range members {
		if out[i], err = v.Closeup(ctx, id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// show fills in what the step's shards hold.
func (c *Closeup) show(from analysis.Closeup, s readStep) {
	c.Advantage, s.layout = from.Advantage, s.layout.Of(from.Prompt)
	c.Asked = s.layout.Task(from.Prompt)
	if m := from.Trajectory.Messages; m != nil {
		c.Messages = *m
	}
	if r := from.Reward; r != nil && (r.ErrorPenalty != 0 || r.FormatPenalty != 0) {
		c.Notes = append(c.Notes, analysis.Part{Name: "penalties",
			Text: fmt.Sprintf("errors %.3g, format %.3g", r.ErrorPenalty, r.FormatPenalty)})
	}
	if e := from.Prompt.Expression; e != "" && !s.layout.Interactive() {
		c.Notes = append(c.Notes, analysis.Part{Name: "expression", Text: e})
	}
	pieces := piecesOf(from, s.tokens)
	for i, t := range from.Turns {
		turn := Turn{Number: int(t.Turn), Finish: t.Finish, Summary: t.IsSummary(), Pieces: pieces[i],
			Calls: []analysis.Call{}}
		if t.Excluded != nil {
			turn.Broken = *t.Excluded
		}
		for _, call := range from.CallsOf(t.Turn) {
			turn.Calls = append(turn.Calls, s.layout.Call(call))
		}
		for _, x := range from.MovesOf(t.Turn) {
			turn.Environment = append(turn.Environment, s.layout.Move(x)...)
		}
		c.Turns = append(c.Turns, turn)
	}
}

// readStep is a step's shards, decoded.
type readStep struct {
	trajectories map[string]analysis.Closeup
	tokens       tokenizer.Codec // nil where the record has none
	layout       analysis.Layout
}

// closeups keeps the decoded shards of the steps that were looked at last.
type closeups struct {
	mu    sync.Mutex
	steps []*keptStep // the latest last
}

type keptStep struct {
	step int
	held bool // the step's evaluation
	read func() (readStep, error)
}

// stepsKept is how many steps are kept in memory, decoded.
const stepsKept = 3

// stepOf reads the shards of a step, or of its evaluation, once for readers at the same time. A failure is not kept.
func (v *Viewer) stepOf(ctx context.Context, step int, held bool) (readStep, error) {
	c := &v.closeups
	c.mu.Lock()
	i := slices.IndexFunc(c.steps, func(k *keptStep) bool { return k.step == step && k.held == held })
	var kept *keptStep
	if i >= 0 {
		kept = c.steps[i]
		c.steps = append(slices.Delete(c.steps, i, i+1), kept)
	} else {
		ctx := context.WithoutCancel(ctx) // others may wait for the same step
		kept = &keptStep{step: step, held: held,
			read: sync.OnceValues(func() (readStep, error) { return v.readStep(ctx, step, held) })}
		c.steps = append(c.steps, kept)
		c.steps = c.steps[max(0, len(c.steps)-stepsKept):]
	}
	c.mu.Unlock()
	out, err := kept.read()
	if err != nil {
		c.mu.Lock()
		c.steps = slices.DeleteFunc(c.steps, func(k *keptStep) bool { return k == kept })
		c.mu.Unlock()
	}
	return out, err
}

func (v *Viewer) readStep(ctx context.Context, step int, held bool) (readStep, error) {
	v.mu.Lock()
	visible := v.visible
	v.mu.Unlock()
	if visible == nil {
		return readStep{}, fmt.Errorf("step %d: %w", step, analysis.ErrNoStep)
	}
	all, err := visible.Closeups(ctx, step, held)
	if err != nil {
		return readStep{}, err
	}
	tokens, err := visible.Tokenizer(ctx)
	if err != nil {
		return readStep{}, err
	}
	layout, err := visible.Layout(ctx)
	if err != nil {
		return readStep{}, err
	}
	out := readStep{trajectories: make(map[string]analysis.Closeup, len(all)), tokens: tokens,
		layout: layout}
	for _, c := range all {
		out.trajectories[c.Trajectory.TrajectoryID] = c
	}
	return out, nil
}

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Interactive episodes. A response is an action. Step applies the actions of episodes to their environment. The result
// of each action is a Transition, which the record keeps. So an episode can be rebuilt from rows without its
// environment.

// Transition is one action and its result.
type Transition struct {
	Situation string // identifies the state before the action (see digest16)
	SeenHash  string // identifies what the environment showed before the action
	Action    string // the text that the environment received
	Formed    bool   // the response is well formed
	Valid     bool   // the response is well formed and the environment knows the action
	Reward    float64
	Done      bool
	Success   bool
	State     env.State       // after the action
	Seen      env.Observation // what the environment showed after the action
	Excluded  string          // why the transition holds nothing except the action
}

func (t *Transition) size() int {
	n := len(t.Action) + len(t.State)
	for _, p := range t.Seen.Parts {
		n += len(p.Text)
	}
	for _, a := range t.Seen.Admissible {
		n += len(a)
	}
	return n
}

// Begin returns a new episode of a task that awaits its first response. The environment may be interactive or not.
func (l *Loop) Begin(ctx context.Context, id Identity, task env.Task) (*Episode, error) {
	task, state, seen, prompt, err := l.open(ctx, task)
	if err != nil {
		return nil, err
	}
	e := l.start(id, task, prompt)
	e.State, e.Seen = state, seen
	return e, nil
}

// open begins an episode of a task in the loop's environment and renders its prompt. The task's text becomes the text
// of the first observation.
func (l *Loop) open(ctx context.Context, task env.Task) (env.Task, env.State, env.Observation, []int32, error) {
	if l.settings.Environment == nil {
		prompt, err := l.encodePrompt(task)
		return task, nil, env.Observation{}, prompt, err
	}
	state, seen, err := l.reset(ctx, task)
	if err != nil {
		return task, nil, seen, nil, fmt.Errorf("begin an episode of task %s: %w", task.ID, err)
	}
	if c, ok := l.settings.Environment.(env.Classifier); ok {
		if task, err = c.Classify(task, state); err != nil {
			return task, nil, seen, nil, fmt.Errorf("classify task %s: %w", task.ID, err)
		}
	}
	task.Text, _ = seen.Text()
	e := &Episode{Task: task, Seen: seen}
	context, err := l.render(ctx, e)
	return task, state, seen, l.tok.Encode(context), err
}

// reset begins an episode of a task within the limits of one call.
func (l *Loop) reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	type begun struct {
		state env.State
		seen  env.Observation
	}
	b, err := bounded(ctx, l.guard, func(ctx context.Context) (begun, error) {
		state, seen, err := l.settings.Environment.Reset(ctx, task)
		if err == nil {
			err = checkText("state", len(state))
		}
		if err == nil {
			err = checkSeen(seen)
		}
		return begun{state, seen}, err
	})
	return b.state, b.seen, err
}

// readable returns an observation as text. A sampler can read only text.
func readable(o env.Observation) (string, error) {
	text, ok := o.Text()
	if ok {
		return text, nil
	}
	for _, p := range o.Parts {
		if p.Kind != env.PartText {
			return "", fmt.Errorf("the observation has a part of kind %q, and the engine reads text alone", p.Kind)
		}
	}
	return "", errors.New("the observation has no text")
}

// render renders the whole prompt of the episode's next turn.
func (l *Loop) render(ctx context.Context, e *Episode) (string, error) {
	return l.renderWith(ctx, e, "")
}

// renderWith is render with a text after what the environment shows; "" adds nothing.
func (l *Loop) renderWith(ctx context.Context, e *Episode, more string) (string, error) {
	words, err := l.instruct(ctx, e.Task)
	if err != nil {
		return "", fmt.Errorf("instruct on task %s: %w", e.Task.ID, err)
	}
	turn := len(e.Turns)
	v := protocol.View{Instruction: words, Turn: e.History.Ordinary(turn), Summary: e.summary(),
		Admissible: e.Seen.Admissible}
	v.Observation, _ = e.Seen.Text()
	if more != "" {
		v.Observation += "\n\n" + more
	}
	for k := l.described(e); k < turn; k++ {
		v.Past = append(v.Past, protocol.Exchange{Observation: e.seenAt(k), Action: e.Turns[k].Transition.Action})
	}
	if e.IsSummary(turn) {
		return protocol.AskSummary(l.protocol, v), nil
	}
	return l.protocol.Context(v), nil
}

// described returns the first turn that the next prompt describes. Without summaries, these are the latest PastTurns.
// With summaries, they are those after the latest one, at most PastTurns of them if that is not 0. What asks for a
// summary describes all that the summary will replace.
func (l *Loop) described(e *Episode) int {
	turn, since := len(e.Turns), e.firstTurnSinceSummary()
	if e.History.Summary > 0 && (l.settings.PastTurns == 0 || e.IsSummary(turn)) {
		return since
	}
	return max(since, turn-l.settings.PastTurns)
}

// instruct asks for the instruction within the limits of one call.
func (l *Loop) instruct(ctx context.Context, task env.Task) (string, error) {
	return bounded(ctx, l.guard, func(context.Context) (string, error) {
		words, err := l.settings.Environment.Instruction(task)
		if err == nil {
			err = checkText("instruction", len(words))
		}
		if err == nil && !utf8.ValidString(words) {
			err = fmt.Errorf("%w: the instruction is not UTF-8", ErrEnvironment)
		}
		return words, err
	})
}

// seenAt returns what the environment showed before the action of a turn.
func (e *Episode) seenAt(turn int) string {
	for k := turn - 1; k >= 0; k-- {
		if t := e.Turns[k].Transition; t != nil { // a summary has none
			text, _ := t.Seen.Text()
			return text
		}
	}
	return e.Task.Text
}

// Step applies the actions of the episodes that await it. If the environment fails on an episode, that episode is
// excluded. If the environment fails on every one of several episodes, Step returns an error. Step also returns an
// error when ctx ends.
func (l *Loop) Step(ctx context.Context, episodes []*Episode) error {
	return l.StepLeft(ctx, episodes, false)
}

// StepLeft is Step for the episodes that a flow has left without their transition. works says that the environment did
// not fail on others.
func (l *Loop) StepLeft(ctx context.Context, episodes []*Episode, works bool) error {
	var first error
	stepped, broken := 0, 0
	for _, e := range episodes {
		if !e.AwaitsResults() {
			continue
		}
		stepped++
		var t Transition
		err := rescue.Do(func() (err error) {
			t, err = l.transition(ctx, e)
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			slog.WarnContext(ctx, "exclude a trajectory: its environment broke on it", "trajectory", e.TrajectoryID,
				"error", err, "stack", rescue.Stack(err))
			last := &e.Turns[len(e.Turns)-1]
			t = Transition{Action: last.Parsed.Action, Formed: last.Parsed.WellFormed,
				Excluded: Reason("environment", err.Error())}
			if broken++; first == nil {
				first = err
			}
		}
		if err := l.absorbTransition(ctx, e, t); err != nil {
			return err
		}
	}
	if broken > 1 && broken == stepped && !works {
		return fmt.Errorf("step %d episodes: each of them fails: %w", broken, first)
	}
	return nil
}

// transition asks the environment for the result of the last response's action.
func (l *Loop) transition(ctx context.Context, e *Episode) (t Transition, err error) {
	state := e.State
	if state == nil { // the episode was rebuilt from a record without actions
		if state, _, err = l.reset(ctx, e.Task); err != nil {
			return t, err
		}
	}
	turn := len(e.Turns) - 1
	parsed := e.Turns[turn].Parsed
	where, next, got, err := l.apply(ctx, state, parsed.Action)
	if err != nil {
		return t, fmt.Errorf("turn %d: %w", turn, err)
	}
	return Transition{
		Situation: digest16(where), SeenHash: digest16(e.seenAt(turn)), Action: parsed.Action,
		Formed: parsed.WellFormed,
		Valid:  parsed.WellFormed && got.Valid, Reward: got.Reward, Done: got.Done, Success: got.Success, State: next,
		Seen: got.Observation,
	}, nil
}

// apply applies an action to a state within the limits of one call. where is the situation of the state.
func (l *Loop) apply(
	ctx context.Context, state env.State, action string,
) (where string, next env.State, got env.Transition, err error) {
	type acted struct {
		where string
		next  env.State
		got   env.Transition
	}
	a, err := bounded(ctx, l.guard, func(ctx context.Context) (acted, error) {
		where, err := l.settings.Environment.Situation(state)
		if err == nil {
			err = checkText("situation", len(where))
		}
		if err != nil {
			return acted{}, err
		}
		next, got, err := l.settings.Environment.Step(ctx, state, action)
		if err == nil {
			err = checkTransition(next, got)
		}
		return acted{where, next, got}, err
	})
	return a.where, a.next, a.got, err
}

// digest16 identifies a text by 16 hexadecimal digits.
func digest16(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// absorbTransition sets the last turn's transition. It sets the next context or ends the episode. An error leaves the
// episode as it was.
func (l *Loop) absorbTransition(ctx context.Context, e *Episode, t Transition) error {
	state, seen := e.State, e.Seen
	e.Turns[len(e.Turns)-1].Transition = &t
	if t.Excluded != "" {
		e.exclude(t.Excluded)
		return nil
	}
	e.State, e.Seen = t.State, t.Seen
	switch {
	case t.Done:
		e.Finish = FinishDone
		return nil
	case l.settings.hasAllTurns(e):
		e.Finish = FinishMaxTurns
		return nil
	}
	text, err := l.render(ctx, e)
	if err != nil {
		e.Turns[len(e.Turns)-1].Transition, e.State, e.Seen = nil, state, seen
		return err
	}
	l.setContext(e, text)
	return nil
}

// Success reports whether an interactive episode ended at its goal.
func (e *Episode) Success() bool {
	if len(e.Turns) == 0 {
		return false
	}
	t := e.Turns[len(e.Turns)-1].Transition
	return t != nil && t.Success
}

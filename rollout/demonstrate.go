package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/tool"
)

// NewTokenizer makes the tokenizer of calc's policies. Imported texts use the same tokenizer.
func NewTokenizer() (*tokenizer.Tokenizer, error) {
	return TokenizerOf(protocol.RStar2{}, calc.Declaration)
}

// TokenizerOf makes the tokenizer of the policies of an environment. Its added tokens are the protocol's fixed strings,
// then the fixed strings of the environment's tasks and actions. If tools other than python alone are given, the next
// one is what a prompt of these tools begins with.
func TokenizerOf(p protocol.Protocol, of env.Declaration, tools ...tool.Spec) (*tokenizer.Tokenizer, error) {
	added := p.Added()
	if of.Strings != nil {
		added = append(added, of.Strings()...)
	}
	if len(tools) > 1 || len(tools) == 1 && tools[0].Name != protocol.Python.Name {
		added = append(added, opening(p, tools))
		added = distinct(added)
	}
	t, err := tokenizer.New(added)
	if err != nil {
		return nil, fmt.Errorf("make the tokenizer of %s: %w", of.Name, err)
	}
	return t, nil
}

// opening returns what a prompt of a question begins with: everything before the question's text.
func opening(p protocol.Protocol, tools []tool.Spec) string {
	const text = "QUESTION OF NO TASK"
	prompt := p.Context(protocol.View{Task: text, Tools: Settings{Tools: tools}.Prompted()})
	return prompt[:strings.LastIndex(prompt, text)]
}

// distinct removes repeated strings. Fixed strings of an environment may be among the protocol's.
func distinct(all []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// Demonstration is one episode that the scripted teacher wrote.
type Demonstration struct {
	Tokens []int32
	Mask   []int32 // 1 where the policy is trained to write
	Right  bool    // its last answer is the gold answer, or it ends at the goal
	// Episode holds the turns; responses have no log-probabilities.
	Episode *Episode
}

// demonstrationWorkers is the number of demonstrations written at once. Each demonstration has its own random stream,
// so the number of workers does not change the result.
const demonstrationWorkers = 8

// samplesPerGroup maps the index of a demonstration to a group and a sample, because their ids are bounded.
const samplesPerGroup = 1000

// Sequences returns the demonstration's rows for cloning: the whole episode, or one row per turn if each context is a
// whole prompt or the episode has summaries.
func (d Demonstration) Sequences() (tokens, masks [][]int32) {
	e := d.Episode
	if !e.spec().Whole && e.History.Summary == 0 {
		return [][]int32{d.Tokens}, [][]int32{d.Mask}
	}
	for k, t := range e.Turns {
		row := slices.Concat(e.seen(k, t.Context), t.Response)
		tokens, masks = append(tokens, row), append(masks, maskOf(len(row), len(t.Response)))
	}
	return tokens, masks
}

// Script writes demonstrations: a teacher of questions, or the expert of the loop's environment.
type Script struct {
	Teacher env.Teacher // nil = the environment's expert
	Lesson  env.Lesson
	// Noise is the probability that another admissible action, or one of an env.Misleader, replaces an action of the
	// expert.
	Noise float64
}

// Demonstrator writes demonstrations through a loop, as a policy would write them.
type Demonstrator struct {
	Loop   *Loop
	Box    tool.Toolbox // runs the teacher's calls: their responses are real
	Script Script
}

// Write writes the demonstrations from…from+n−1 of the run's warm start. Their tasks are not held out. If progress is
// not nil, it is called with the number of finished demonstrations.
func (w Demonstrator) Write(ctx context.Context, from, n int, progress func(done, total int)) ([]Demonstration, error) {
	s := w.Script
	out := make([]Demonstration, n)
	report := progressCounter(n, progress)
	err := rescue.Each(ctx, demonstrationWorkers, n, func(ctx context.Context, i int) error {
		return broken(rescue.Do(func() (err error) {
			rng := seed.Rand("demonstration", w.Loop.runSeed, uint64(from+i))
			if s.Teacher == nil {
				out[i], err = w.playExpert(ctx, rng, from+i)
			} else if task, drawn := s.Teacher.Draw(rng, s.Lesson); drawn != nil {
				err = drawn
			} else {
				out[i], err = w.teach(ctx, rng, task, from+i)
			}
			if err == nil {
				report(1)
			}
			return err
		}))
	})
	return out, err
}

func demonstrationIdentity(index int) Identity {
	return Identity{Label: "demonstration", Group: index / samplesPerGroup, Sample: index % samplesPerGroup}
}

// teach lets the teacher act through the same loop as policies.
func (w Demonstrator) teach(ctx context.Context, rng *rand.Rand, task env.Task, index int) (Demonstration, error) {
	s := w.Script
	e := w.Loop.Start(demonstrationIdentity(index), task)
	e.History = History{Summary: e.History.Summary} // without summaries, the episode is cloned as a whole
	err := s.Teacher.Demonstrate(ctx, rng, task, s.Lesson,
		func(m env.Move) (env.Shown, error) { return w.act(ctx, e, m) })
	if err != nil {
		return Demonstration{}, err
	}
	d := Demonstration{Episode: e}
	d.Tokens, d.Mask = e.Sequence()
	answer, _ := e.Answer()
	d.Right = answer == task.Answer
	if m, ok := s.Teacher.(env.Marker); ok {
		d.Right = m.Right(task, answer)
	}
	return d, nil
}

// playExpert lets the environment's expert play a training task and replaces some of its actions. The episode stops at
// a state from which the expert finds no solution.
func (w Demonstrator) playExpert(ctx context.Context, rng *rand.Rand, index int) (Demonstration, error) {
	l := w.Loop
	world := l.settings.Environment
	expert, ok := world.(env.Expert)
	if !ok {
		return Demonstration{}, fmt.Errorf("demonstrate: environment %s has no expert", world.Name())
	}
	task, err := bounded(ctx, l.guard, func(ctx context.Context) (env.Task, error) {
		return world.Task(ctx, env.Draw{Split: env.Train, Seed: seed.Derive("demonstrated tasks", l.runSeed),
			Index: index})
	})
	if err != nil {
		return Demonstration{}, err
	}
	e, err := l.Begin(ctx, demonstrationIdentity(index), task)
	if err != nil {
		return Demonstration{}, err
	}
	var plan []string
	for e.AwaitsResponse() {
		if e.IsSummary(len(e.Turns)) {
			l.absorb(ctx, e, l.scriptedSummary(e))
			continue
		}
		action := ""
		noisy := rng.Float64() < w.Script.Noise
		if misleader, ok := world.(env.Misleader); noisy && ok && e.Seen.Admissible == nil {
			if action, err = misleader.Mislead(ctx, e.State, rng.Uint64()); err != nil {
				return Demonstration{}, fmt.Errorf("demonstrate task %s: %w", task.ID, err)
			}
		} else if noisy && len(e.Seen.Admissible) > 0 {
			action, plan = e.Seen.Admissible[rng.IntN(len(e.Seen.Admissible))], nil
		} else {
			if len(plan) == 0 {
				plan, err = bounded(ctx, l.guard, func(ctx context.Context) ([]string, error) {
					return expert.Solve(ctx, e.State)
				})
			}
			if errors.Is(err, env.ErrUnsolved) || err == nil && len(plan) == 0 {
				break
			}
			if err != nil {
				return Demonstration{}, fmt.Errorf("demonstrate task %s: %w", task.ID, err)
			}
			action, plan = plan[0], plan[1:]
		}
		response, ok := l.protocol.Write(env.Move{Action: action})
		if !ok {
			return Demonstration{}, fmt.Errorf("demonstrate: protocol %s cannot write an action",
				l.protocol.Spec().Name)
		}
		l.absorb(ctx, e, l.scripted(response))
		if err := l.Step(ctx, []*Episode{e}); err != nil {
			return Demonstration{}, err
		}
		if e.Excluded != "" {
			return Demonstration{}, fmt.Errorf("demonstrate task %s: %s", task.ID, e.Excluded)
		}
	}
	d := Demonstration{Episode: e, Right: e.Success()}
	d.Tokens, d.Mask = e.Sequence()
	return d, nil
}

// scripted returns a turn whose response is the given text.
func (l *Loop) scripted(text string) Turn {
	return Turn{Response: l.tok.Encode(text), Finish: policy.FinishStop}
}

// act appends one move of the teacher, runs its call and returns what the tool showed.
func (w Demonstrator) act(ctx context.Context, e *Episode, m env.Move) (env.Shown, error) {
	l := w.Loop
	if !e.AwaitsResponse() {
		return env.Shown{}, nil // the episode's budget was used up before the teacher finished
	}
	if m.IsCall() && !l.protocol.Spec().Tools {
		return env.Shown{}, nil // there is nothing to call, so the teacher only answers
	}
	response, ok := l.protocol.Write(m)
	if !ok {
		return env.Shown{}, fmt.Errorf("demonstrate: protocol %s cannot write what the teacher does",
			l.protocol.Spec().Name)
	}
	if e.IsSummary(len(e.Turns)) {
		if l.absorb(ctx, e, l.scriptedSummary(e)); !e.AwaitsResponse() {
			return env.Shown{}, nil
		}
	}
	l.absorb(ctx, e, l.scripted(response))
	one := []*Episode{e}
	if err := NewTools(w.Box, tool.Scope{}).answer(ctx, l, one); err != nil {
		return env.Shown{}, fmt.Errorf("run the teacher's call: %w", err)
	}
	return shown(e.Turns[len(e.Turns)-1]), nil
}

// shown reads the verdict on the only call of a turn.
func shown(t Turn) env.Shown {
	if len(t.Results) == 0 {
		return env.Shown{}
	}
	r := t.Results[0]
	return env.Shown{OK: !r.Failed(), Text: cmp.Or(strings.TrimSpace(r.Stdout), r.Value)}
}

package evaluate

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/summary"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// measurement runs the episodes of some of the held-out problems of an evaluation.
type measurement struct {
	w        *stage.Draft
	in       api.EvaluateInput
	recipe   *recipes.Recipe
	world    env.Environment
	tokens   tokenizer.Codec
	problems []env.Task
	from     int // number of the first problem in the held-out set, which is its group
	pool     *session.Pool
	box      tool.Toolbox
	pages    *summary.Summaries // sums up what browse shows; nil if the recipe does not ask for it
	found    *heldOut
	total    int // episodes that are run
}

// pass is one way in which the episodes are sampled.
type pass struct {
	resolver.Sampling
	samples int // of each problem
	first   int // number of the problem's first sample in the pass
}

func newMeasurement(ctx context.Context, w *stage.Draft, in api.EvaluateInput, from,
	n int) (m *measurement, err error) {
	m = &measurement{w: w, in: in, recipe: w.Recipe, from: from, found: &heldOut{}}
	if m.world, err = w.Worker.Recipes.World(w.Recipe); err != nil {
		return nil, err
	}
	if m.tokens, err = w.Worker.Recipes.PolicyTokenizer(ctx, in.Policy, w.Recipe); err != nil {
		return nil, err
	}
	first := *w.Recipe
	first.Evaluation.Problems = from + n
	drawn, err := prompts.HeldOut(ctx, m.world, &first)
	if err != nil {
		return nil, err
	}
	m.problems = drawn[min(from, len(drawn)):]
	most := 0
	for _, p := range m.passes() {
		m.total, most = m.total+len(m.problems)*p.samples, p.first+p.samples
	}
	m.found.whole = fits(w.Recipe.Evaluation.Problems, most)
	if err := m.found.judgeable(w.Recipe); err != nil {
		return nil, err
	}
	if w.Recipe.Sandbox.Session {
		if m.pool, err = w.Worker.Execution.EvaluationNotebooks(w.Recipe); err != nil {
			return nil, err
		}
	}
	if m.pages, err = summary.For(ctx, w, in.Policy, in.Positions); err == nil {
		m.box, err = w.Worker.Execution.ToolboxFor(w.Recipe, m.pool, m.tokens, m.pages.Summariser())
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *measurement) close() {
	if m.pool != nil {
		m.pool.Close()
	}
}

// passes are the sampled episodes, and then the greedy ones.
func (m *measurement) passes() []pass {
	e := m.recipe.Evaluation
	out := []pass{{Sampling: resolver.Sampling{Temperature: e.Temperature, Truncation: e.Truncation(),
		Evaluation: true}, samples: e.Samples}}
	if e.Greedy {
		out = append(out, pass{Sampling: resolver.Sampling{Evaluation: true}, samples: 1, first: e.Samples})
	}
	return out
}

func (m *measurement) run(ctx context.Context, sampler policy.Sampler) error {
	if m.recipe.Evaluation.Debate != nil {
		return m.debate(ctx, sampler)
	}
	done := 0
	for i, p := range m.passes() {
		episodes, err := m.play(ctx, sampler, p, i, done)
		if err != nil {
			return err
		}
		done += len(episodes)
		if err := m.found.add(episodes, p.first); err != nil {
			return err
		}
		correct, err := verdict.Correct(ctx, m.w, m.in, episodes)
		if err != nil {
			return err
		}
		for j, e := range episodes {
			if e.Excluded != "" { // what broke has no verdict, and counts neither as solved nor as failed
				m.found.excluded++
				continue
			}
			row := m.found.row(m.in, e, j%p.samples, p.Temperature == 0, correct[j])
			if err := m.complete(&row, e); err != nil {
				return err
			}
			m.found.rows = append(m.found.rows, row)
		}
	}
	if len(m.found.rows) == 0 {
		return fmt.Errorf("evaluate: every one of %d episodes is excluded", done)
	}
	return nil
}

// play runs the episodes of one pass to their ends, in the order of problems and samples. done episodes were run
// before.
func (m *measurement) play(ctx context.Context, sampler policy.Sampler, p pass, number, done int) ([]*rollout.Episode,
	error) {
	loop, err := m.w.Worker.Recipes.LoopWith(m.recipe, p.Sampling, m.tokens)
	if err != nil {
		return nil, err
	}
	var episodes []*rollout.Episode
	for g, task := range m.problems {
		for k := range p.samples {
			e, err := loop.Begin(ctx, m.identity(rollout.LabelEvaluate, g, k), task)
			if err != nil {
				return nil, err
			}
			episodes = append(episodes, e)
		}
	}
	return episodes, loop.RunEpisodes(ctx, sampler, m.tools(number), m.in.Policy.Digest, episodes,
		func(n, _ int) { m.w.Progress.Set(done+n, m.total) })
}

// identity is the place of an episode of the measurement's problem g.
func (m *measurement) identity(label string, g, sample int) rollout.Identity {
	return rollout.Identity{Label: label, Step: max(m.in.Scope.Step, 0), Group: m.from + g, Sample: sample}
}

// tools are the tools of one pass, whose calls have keys of their own.
func (m *measurement) tools(pass int) rollout.Tools {
	scope := resource.CallScope(m.in.Scope)
	scope.Pass = fmt.Sprintf("%s-%d-%d", m.in.Tag, m.in.Step, pass)
	if m.w.Place.Stage == schema.StageFactual { // the generation has another evaluation of the same step
		scope.Pass = schema.StageFactual + "-" + scope.Pass
	}
	return rollout.NewTools(m.box, scope)
}

// complete adds to a row what its environment says about the task and the episode.
func (m *measurement) complete(row *schema.EvaluationRow, e *rollout.Episode) error {
	if e.Task.Type != "" {
		row.TaskType = &e.Task.Type
	}
	if m.recipe.Environment.Declaration().Golds {
		exact, f1 := evaluation.Match(*row)
		row.ExactMatch, row.F1 = &exact, &f1
	}
	scorer, ok := m.world.(env.Scorer)
	if !ok {
		return nil
	}
	err := rescue.Do(func() (err error) {
		row.Score, err = scorer.Score(e.State)
		return err
	})
	if err == nil && row.Score != nil && !(*row.Score >= 0 && *row.Score <= 1) {
		err = fmt.Errorf("%w: the score is %g", rollout.ErrEnvironment, *row.Score)
	}
	if err != nil {
		return fmt.Errorf("grade %s: %w", e.TrajectoryID, err)
	}
	return nil
}

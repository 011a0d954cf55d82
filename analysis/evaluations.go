package analysis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// Evaluation is one committed evaluation.
type Evaluation struct {
	Step    int    `json:"step"` // NoStep for the warm start's
	Tag     string `json:"tag"`  // warm_start | step | final | evaluate
	Summary api.EvaluationSummary
	// Passes are pass@k and pass^k for the numbers of samples that the evaluation has.
	Passes evaluation.Passes `json:"passes"`
	// Score is the mean score of the sampled episodes; nil in an environment that grades no episodes.
	Score *api.Rate `json:"score,omitempty"`
	// ExactMatch and F1 compare answers by their words; nil in an environment without several right answers.
	ExactMatch *api.Rate `json:"exact_match,omitempty"`
	F1         *api.Rate `json:"f1,omitempty"`
	// Judged is the share of answers that a judge found right; nil if the recipe asks none.
	Judged *api.Rate `json:"judged,omitempty"`
	// Debates says how agents agreed; nil if they did not debate.
	Debates *Debates `json:"debates,omitempty"`
	// model says that the policy is no run's after a step: a model, or a run's first one.
	model bool
}

// Evaluates returns the policy that a run measures, which is an evaluation of its own; the zero value of other runs.
func (r *Record) Evaluates(ctx context.Context, run string) (policy api.PolicyRef, err error) {
	m, err := r.Prepared(ctx, run)
	if err != nil {
		return policy, err
	}
	return policyOf(m)
}

func policyOf(prepare schema.Manifest) (policy api.PolicyRef, err error) {
	text, ok := prepare.Note[schema.NoteEvaluates]
	if !ok {
		return policy, nil
	}
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return policy, fmt.Errorf("%w: %s: note %s: %w", commit.ErrDamaged, prepare.ManifestKey(), schema.NoteEvaluates,
			err)
	}
	return policy, nil
}

// evaluations reads the run's evaluations, in the order of their steps. Their figures are computed from their rows,
// except the number of sampled tokens, which only the manifests state.
func (v *Visible) evaluations(ctx context.Context, planned int) ([]Evaluation, error) {
	manifests, err := v.withoutHead(ctx, schema.Evaluations)
	if err != nil || len(manifests) == 0 {
		return nil, err
	}
	seed, err := v.Seed(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Evaluation, len(manifests))
	err = rescue.Each(ctx, fetches, len(manifests), func(ctx context.Context, i int) error {
		m := manifests[i]
		var stated api.Evaluated
		if err := json.Unmarshal([]byte(m.Note[schema.NoteResult]), &stated); err != nil {
			return fmt.Errorf("read the result in %s: %w", m.ManifestKey(), err)
		}
		rows, err := rowsIn[schema.EvaluationRow](ctx, v.record, m)
		if err != nil {
			return err
		}
		out[i] = Evaluation{Step: placed(m), Tag: "step", Summary: evaluation.Summarise(evaluation.Sampled(rows), seed)}
		out[i].Summary.Tokens = stated.Summary.Tokens
		if err := out[i].figure(m, rows, seed); err != nil {
			return fmt.Errorf("compute the figures of %s: %w", m.ManifestKey(), err)
		}
		if out[i].Debates, err = v.debates(ctx, m); err != nil {
			return err
		}
		switch out[i].Step {
		case NoStep:
			out[i].Tag = "warm_start"
		case planned:
			out[i].Tag = "final"
		}
		policy, err := policyOf(v.prepare)
		if v.prepare.Note[schema.NoteEvaluates] != "" {
			out[i].Tag, out[i].model = "evaluate", !strings.HasPrefix(policy.Manifest.Key, "runs/")
		}
		return err
	})
	return out, err
}

// figure adds the figures that the manifest's statistics state, or that follow from the rows.
func (e *Evaluation) figure(m schema.Manifest, rows []schema.EvaluationRow, seed uint64) (err error) {
	if e.Passes, err = evaluation.PassesOf(rows, seed); err != nil {
		return err
	}
	if score, known := evaluation.ScoreRate(rows, seed); known {
		e.Score = &score
	}
	if _, ok := m.Stats[schema.StatExactMatch]; ok {
		exact, f1 := evaluation.WordRates(rows, seed)
		e.ExactMatch, e.F1 = &exact, &f1
	}
	if rate, ok := evaluation.JudgedRate(rows, seed); ok {
		e.Judged = &rate
	}
	return nil
}

// Seed returns the seed of the run's recipe, which the bootstrap intervals of evaluations are drawn with.
func (v *Visible) Seed(ctx context.Context) (uint64, error) {
	var id identity
	err := v.Recipe(ctx, &id)
	return id.Seed, err
}

// Protocol returns the name of the prompt format of the run's recipe, or "" if its environment names none.
func (v *Visible) Protocol(ctx context.Context) (string, error) {
	var r struct {
		Environment struct {
			Name string `json:"name"`
		} `json:"environment"`
		Rollout struct {
			Protocol string `json:"protocol"`
		} `json:"rollout"`
	}
	if err := v.Recipe(ctx, &r); err != nil {
		return "", err
	}
	d, _ := environments.Named(r.Environment.Name) // a record of another version may name an unknown one
	return cmp.Or(r.Rollout.Protocol, d.Protocol), nil
}

// Recipe decodes fields of the recipe that the run began with.
func (v *Visible) Recipe(ctx context.Context, fields any) error {
	return v.record.recipe(ctx, v.prepare, fields)
}

// identity is what the resolved recipe says about the run.
type identity struct {
	Name  string `json:"name"`
	Seed  uint64 `json:"seed"`
	Steps int    `json:"steps"`
}

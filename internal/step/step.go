package step

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// In asks for one step.
type In struct {
	api.Scope
	Plan   api.Plan
	Policy api.PolicyRef
	// Sampling is the policy that samples: Policy, or an earlier one.
	Sampling api.PolicyRef
	Buffer   schema.Ref // the replay buffer after the previous step; zero if it is empty
	Skip     []api.ExcludedShard
	Prompts  *schema.Ref        // the step's prompts, if they are selected
	Sampled  *Sampled           // the step's rollout, if it is made
	Record   bool               // whether shards record their own measured times
	Evaluate *api.EvaluateInput // an evaluation to make alongside
	Next     *api.PromptsInput  // the next step's prompts, if they are to be selected
}

// Sampled is a step from its prompts to its rewards.
type Sampled struct {
	// Prompts are the manifests of the step's prompts, one for each round of dynamic sampling.
	Prompts []schema.Ref   `json:"prompts"`
	Shards  []api.Episodes `json:"shards"`
}

// Out is a step that is done.
type Out struct {
	Sampled   Sampled
	Learnt    api.Batch
	Finished  api.Finished
	Evaluated *api.Evaluated
	Next      *api.Done // the next step's prompts; nil if they were not selected
}

// Take runs a step.
func Take(r Runner, in *In, out *Out) error {
	if in.Sampled == nil {
		if err := sample(r, in, &out.Sampled); err != nil {
			return err
		}
	} else {
		out.Sampled = *in.Sampled
		out.Sampled.Shards = slices.DeleteFunc(slices.Clone(in.Sampled.Shards),
			func(s api.Episodes) bool { return in.skips(s.Shard) })
	}
	// The sampler has nothing else to do now.
	evaluated, selected := evaluate(r, in, out), selectNext(r, in, out)
	err := learn(r, in, out)
	ending := in.ending(out.Learnt)
	switch {
	case err != nil:
	case in.Evaluate == nil:
		err = Finish.Do(r, Whole(schema.StageUpdate), ending.Note, ending, &out.Finished)
	default: // the publication names the evaluation, and waits for it
		err = update(r, ending, &out.Finished.Updated)
	}
	if err := errors.Join(err, evaluated()); err != nil {
		return err
	}
	if in.Evaluate != nil {
		if err := publish(r, ending, &out.Finished); err != nil {
			return err
		}
	}
	selected()
	return nil
}

// Sample runs a step from its prompts to its rewards, and selects the next step's prompts meanwhile.
func Sample(r Runner, in *In, out *Out) error {
	selected := selectNext(r, in, out)
	if err := sample(r, in, &out.Sampled); err != nil {
		return err
	}
	selected()
	return nil
}

// evaluate begins the evaluation alongside the step, if one is due.
func evaluate(r Runner, in *In, out *Out) (wait func() error) {
	if in.Evaluate == nil {
		return func() error { return nil }
	}
	out.Evaluated = &api.Evaluated{}
	return r.Aside(func(r Runner) error {
		return run(r, Whole(schema.StageEvaluate), "held-out problems, "+in.Evaluate.Tag, *in.Evaluate, out.Evaluated)
	})
}

// Measure measures the counterfactual policy and the run's own on held-out problems, under the run's own recipe. What
// the run has measured itself is not measured again.
func Measure(r Runner, scope api.Scope, in *api.CounterfactualUpdate, out *Replayed) error {
	scope.Config = in.Config
	measure := func(stage, what string, policy api.PolicyRef) (*api.EvaluationSummary, error) {
		var done api.Evaluated
		err := run(r, Whole(stage), "held-out problems, "+what, api.EvaluateInput{Scope: scope, Policy: policy,
			Tag: api.TagStep}, &done)
		return &done.Summary, err
	}
	var err error
	if out.Factual = in.Measured; out.Factual == nil && in.Own != nil {
		if out.Factual, err = measure(schema.StageFactual, "the run's own policy", *in.Own); err != nil {
			return err
		}
	}
	out.Counterfactual, err = measure(schema.StageEvaluate, "the counterfactual policy", out.Updated.Policy)
	return err
}

// selectNext begins to select the next step's prompts, if they are asked for. The returned function waits for them. If
// they cannot be selected, the next step says why.
func selectNext(r Runner, in *In, out *Out) (wait func()) {
	if in.Next == nil {
		return func() {}
	}
	var made api.Done
	selected := r.Aside(func(r Runner) error {
		return run(r, Whole(schema.StagePrompts), "the next step's problems", *in.Next, &made)
	})
	return func() {
		if selected() == nil {
			out.Next = &made
		}
	}
}

// sample takes a step to its rewards, once or in rounds of dynamic sampling. A round continues the shard and group
// numbers of the previous one. Whether another one follows is decided from the committed rewards, so a step that runs
// again goes through the same rounds. A shard that fails stops no other: what these commit is adopted.
func sample(r Runner, in *In, out *Sampled) error {
	for informative := 0; ; {
		first := len(out.Prompts) * in.Plan.Shards
		prompts, err := in.prompts(r, len(out.Prompts))
		if err != nil {
			return err
		}
		shards := make([]api.Episodes, in.Plan.Shards)
		if err := r.Each(len(shards), func(r Runner, i int) error {
			if in.skips(first + i) {
				return nil
			}
			return Shard.Do(r, At{schema.StageRollout, first + i, -1}, ofShard(first+i), &api.EpisodesInput{
				Scope: in.Scope, Shard: first + i, Prompts: prompts, Policy: in.Sampling, MaxTurns: in.Plan.MaxTurns,
				Needs: in.Plan.Needs, Summaries: in.Plan.Summaries, Hosts: in.Plan.Hosts, Record: in.Record,
			}, &shards[i])
		}); err != nil {
			return err
		}
		out.Prompts = append(out.Prompts, prompts)
		for i, s := range shards {
			if !in.skips(first + i) {
				out.Shards, informative = append(out.Shards, s), informative+s.Scored.Informative
			}
		}
		if d := in.Plan.Dynamic; d == nil || d.Enough(in.Step, len(out.Prompts), informative) {
			return nil
		}
	}
}

// prompts returns the prompts of a round. In a step without rounds they follow from the recipe and the seed, so that a
// later generation of the step has the same.
func (in *In) prompts(r Runner, round int) (schema.Ref, error) {
	if in.Prompts != nil {
		return *in.Prompts, nil
	}
	ask, note := api.PromptsInput{Scope: in.Scope}, "the step's problems"
	if d := in.Plan.Dynamic; d != nil {
		ask.Round, note = &round, fmt.Sprintf("round %d of at most %d", round+1, d.Tries)
	} else {
		ask.Gen = 0
	}
	var made api.Done
	err := run(r, Whole(schema.StagePrompts), note, ask, &made)
	return made.Manifest, err
}

func (in *In) skips(shard int) bool {
	return slices.ContainsFunc(in.Skip, func(e api.ExcludedShard) bool { return e.Shard == shard })
}

// Finish updates the policy and publishes it.
var Finish = Group[*api.FinishInput, *api.Finished]{api.UpdateAndPublish, finish}

func finish(r Runner, in *api.FinishInput, out *api.Finished) error {
	if err := update(r, in, &out.Updated); err != nil {
		return err
	}
	return publish(r, in, out)
}

func update(r Runner, in *api.FinishInput, out *api.Updated) error {
	return run(r, Whole(schema.StageUpdate), in.Note, in.UpdateInput, out)
}

func publish(r Runner, in *api.FinishInput, out *api.Finished) error {
	digest := out.Policy.Digest
	return run(r, Whole(schema.StagePublish), "serve "+digest[:min(12, len(digest))], api.PublishInput{Scope: in.Scope,
		Policy: out.Policy, Unloaded: in.Unloaded,
		Stages: append(slices.Clone(in.Stages), api.StageRef{Stage: schema.StageUpdate, Ref: out.Manifest})},
		&out.Published)
}

// ending is the update and the publication of a step that has learnt.
func (in *In) ending(learnt api.Batch) *api.FinishInput {
	return &api.FinishInput{
		UpdateInput: api.UpdateInput{Scope: in.Scope, Batch: learnt.Batch.Manifest, Policy: in.Policy,
			Buffer: learnt.Buffered.Manifest},
		Stages: learnt.Made, Unloaded: in.Plan.Finish && in.Evaluate == nil,
		Note: fmt.Sprintf("%d rows, %d tokens", learnt.Batch.Rows, learnt.Batch.Tokens),
	}
}

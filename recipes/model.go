package recipes

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rl/method"
)

// WithModel returns the recipe with the model that was found at policy.checkpoint.
func (r *Recipe) WithModel(found Pinned) (*Resolved, error) {
	with := *r
	with.Policy.Pinned = &found
	if path, text := modelFits(&with); text != "" {
		return nil, Problems{{File: "recipe " + r.Name, Path: path, Message: text}}
	}
	return with.resolved()
}

// Shape returns the sizes of the model at policy.checkpoint; ok is false if none is pinned.
func (p Policy) Shape() (shape checkpoint.Shape, ok bool, err error) {
	if p.Pinned == nil {
		return shape, false, nil
	}
	shape, err = checkpoint.ParseConfig([]byte(p.Pinned.Config))
	return shape, true, err
}

// modelFits checks what the recipe asks of a pinned model. It returns the field that is at fault and why, or "".
func modelFits(r *Recipe) (path, text string) {
	shape, _, err := r.Policy.Shape()
	if err != nil {
		return "policy.pinned.config", err.Error()
	}
	if path, text := r.RewritingFault(); text != "" {
		return path, text
	}
	longest, at := r.Rollout.MaxTokens, "rollout.max_tokens"
	for _, s := range r.Schedule.Stages() {
		if s.MaxTokens > longest {
			longest, at = s.MaxTokens, "schedule.stages"
		}
	}
	if longest > shape.Positions {
		return at, fmt.Sprintf("must be ≤ %d, the longest sequence of the model at policy.checkpoint, got %d",
			shape.Positions, longest)
	}
	return "engine.lora.rank", r.Engine.LoRA.fault(Policy{Hidden: shape.Hidden, Heads: shape.Heads,
		KVHeads: shape.KVHeads, HeadDim: shape.HeadDim, FFN: shape.FFN})
}

// RewritingFault checks a recipe whose model's chat template writes earlier turns differently in later prompts. It
// returns the field that is at fault and why, or no text.
func (r *Recipe) RewritingFault() (path, text string) {
	switch {
	case !r.Rewritten():
		return "", ""
	case r.Layout != method.Turns:
		return "layout", "must be turns: the chat template of the model at policy.checkpoint writes earlier turns " +
			"differently once the results of calls follow, so each turn needs a whole prompt of its own; got " +
			r.Layout
	case r.Rollout.Tree != nil:
		return "rollout.tree", "cannot branch: each turn has a whole prompt of its own, because the chat template of " +
			"the model at policy.checkpoint writes earlier turns differently once the results of calls follow"
	}
	return "rollout.history", unless(r.Rollout.History == 0 && r.Rollout.HistoryTokens == 0, "cuts earlier turns, and "+
		"the chat template of the model at policy.checkpoint writes them into each prompt; leave it and "+
		"rollout.history_tokens out")
}

// Clones reports whether the warm start clones demonstrations.
func (r *Recipe) Clones() bool {
	return r.WarmStart.Steps > 0 && (r.Environment.Declaration().Demonstrated || r.WarmStart.Demonstrations != nil)
}

// ClonesGolds reports whether the warm start shows the policy the golds of the very tasks that it then trains on:
// of files, or of the rows of the user's own Python.
func (r *Recipe) ClonesGolds() bool {
	limited := func(name string) bool { return declared(name).Listed || name == remote.Python.Name }
	return r.Clones() && r.WarmStart.Demonstrations == nil && (limited(r.Environment.Name) ||
		slices.ContainsFunc(r.Environment.Parts, func(p Part) bool { return limited(p.Name) }))
}

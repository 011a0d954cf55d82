package planning

import (
	"fmt"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// TokenizerOf makes the tokenizer of a recipe's policy, without merges if the recipe has it trained.
func TokenizerOf(r *recipes.Recipe) (*tokenizer.Tokenizer, error) {
	p, err := r.Protocol()
	if err != nil {
		return nil, err
	}
	of := r.Environment.Declaration()
	if r.Tokenizer != nil {
		of.Strings = nil // what occurs often is merged
	}
	if p.Spec().Summaries && r.Rollout.Summary != nil {
		p = rollout.Summarizing{Protocol: p}
	}
	if of.Interactive {
		return rollout.TokenizerOf(p, of)
	}
	called, err := r.Rollout.Declared()
	if err != nil {
		return nil, err
	}
	return rollout.TokenizerOf(p, of, tools.Specs(called)...)
}

// NewShape returns the shape of a recipe's own model, for the tokenizer of rollouts.
func NewShape(p recipes.Policy, tokens *tokenizer.Tokenizer) (checkpoint.Shape, error) {
	end, ok := tokens.ID(tokenizer.EndOfTurn)
	if !ok {
		return checkpoint.Shape{}, fmt.Errorf("tokenizer has no %s", tokenizer.EndOfTurn)
	}
	return checkpoint.Shape{
		Vocab: tokens.VocabSize(), Hidden: p.Hidden, Layers: p.Layers, Heads: p.Heads, KVHeads: p.KVHeads,
		HeadDim: p.HeadDim,
		FFN:     p.FFN, Positions: p.MaxPositions, RopeTheta: p.RopeBase, NormEps: 1e-6, EOS: []int32{end}, Pad: -1,
	}, nil
}

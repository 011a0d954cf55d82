package resolver

import (
	"fmt"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
)

// Shape returns the sizes of the model that a recipe trains.
func (r *Recipes) Shape(recipe *recipes.Recipe) (checkpoint.Shape, error) {
	if shape, known, err := recipe.Policy.Shape(); known || err != nil {
		return shape, err
	}
	tokens, err := r.Tokenizer(recipe)
	if err != nil {
		return checkpoint.Shape{}, err
	}
	return PolicyShape(recipe.Policy, tokens)
}

// PolicyShape is the shape of a recipe's own model, for the tokenizer of rollouts.
func PolicyShape(p recipes.Policy, tokens *tokenizer.Tokenizer) (checkpoint.Shape, error) {
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

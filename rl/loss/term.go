package loss

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Term is what a term of the loss next to the policy loss states about itself. The file of the term holds it.
type Term struct {
	// Choice holds name, source and parameters. Its Settings implement Adder and hold the defaults of the term's
	// parameters. Settings of what changes no objective, such as the critic's, do not implement it.
	choice.Choice
	// Inner are the choices that a recipe makes inside the term's section; without any the term is on or off.
	Inner []Inner
}

// Inner is a choice that a recipe makes inside the section of a term.
type Inner struct {
	Name, Doc string
	Choices   []choice.Choice
}

// Adder puts a term into the objective of a step. It is a value without state: its fields are the parameters that a
// recipe sets.
type Adder interface {
	// Add sets the objective's field of the term.
	Add(o *Objective, s Step)
}

// Step is what terms may read about a step.
type Step struct {
	KL float64 // coefficient of the penalty on the divergence from the reference
}

// Terms lists the terms that recipes can name, in the order of the documents. A new term is one more line here.
func Terms() []Term { return slices.Clone(terms) }

var terms = []Term{
	sequenceMaskTerm,
	tisTerm,
	klTerm,
	entropyTerm,
	referenceTerm,
	valueTerm,
}

// AddTerms puts the terms into an objective that a recipe switches on.
func AddTerms(o *Objective, params choice.Params, s Step) error {
	for _, t := range terms {
		settings, on, err := t.On(params)
		if err != nil {
			return fmt.Errorf("loss.%s: %w", t.Name, err)
		}
		if a, ok := settings.(Adder); on && ok {
			a.Add(o, s)
		}
	}
	return nil
}

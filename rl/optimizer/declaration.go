// Package optimizer holds the rules by which a step changes the parameters of a model, and declares those that recipes
// can name (optimizer.name).
//
// Glossary. A *rule* is an optimiser with its settings. Its *states* are the numbers that it keeps of each parameter
// from step to step. A *kernel* applies one step of a rule to parameters that lie next to each other. The CPU engine
// runs the kernels; the PyTorch engine has the same rules in gpu/engine/ropewalk_engine/optimizers.py.
package optimizer

import (
	"fmt"
	"slices"
)

// Declaration declares an optimiser.
type Declaration struct {
	Name   string // as recipes spell it
	Doc    string // one line, without a full stop
	Source string
	// Settings hold the defaults of the parameters. The tags of their struct are those of package choice.
	Settings Rule
	// States names the states, which checkpoints hold as tensors STATE.PARAMETER.
	States []string
}

// Rule is an optimiser with its settings.
type Rule interface {
	// Declaration returns the optimiser's declaration.
	Declaration() Declaration
	// Validate reports the first setting that makes no sense in any step.
	Validate() error
	// Kernels returns what takes a step.
	Kernels(s Step) Kernels
}

// Step is one step of an optimiser.
type Step struct {
	LR     float64
	Number int64   // of the step, from 1
	Scale  float64 // of the gradient, which clipping makes less than 1
}

// Kernel changes weights w and their states by the gradient g, and leaves zeros in g. All slices have the same length.
// decays is true for matrices, which weight decay moves, and false for norms and biases.
type Kernel[T float32 | float64] func(w, g []T, states [][]T, decays bool)

// Kernels are the kernels of one step in both number types.
type Kernels struct {
	F32 Kernel[float32]
	F64 Kernel[float64]
}

// AdamWName names the optimiser of recipes that name none.
const AdamWName = "adamw"

// declarations lists the optimisers in the order of the documents.
var declarations = []Declaration{
	adamW,
	sgd,
}

// Declarations lists the optimisers that recipes can name. A new optimiser is one more line in the list here.
func Declarations() []Declaration { return slices.Clone(declarations) }

// Named returns the declaration with a name, or the zero value.
func Named(name string) Declaration {
	if i := slices.IndexFunc(declarations, func(d Declaration) bool { return d.Name == name }); i >= 0 {
		return declarations[i]
	}
	return Declaration{}
}

// checkBelow reports that a setting is no number from 0 to below a limit.
func checkBelow(name string, v, limit float64) error {
	if v >= 0 && v < limit {
		return nil
	}
	return fmt.Errorf("%s is %v", name, v)
}

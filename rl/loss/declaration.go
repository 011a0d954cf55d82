package loss

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Declaration is what a policy loss states about itself. The file of the loss holds it.
type Declaration struct {
	// Choice holds name, source and parameters. Its Settings are the loss itself with the defaults of its parameters
	// in place, or a struct with a method Surrogate() that makes the loss.
	choice.Choice
	// Aggregation is the mode that the loss's own paper or release trains with; "" = TokenMean.
	Aggregation Mode
	// RowAdvantage says that the loss reads one advantage for each row, so that advantages must not differ by token.
	RowAdvantage bool
	// Brief describes the settings in a few words for the table of methods; nil = the bounds of the clip, if any.
	Brief func(Surrogate) string
}

// Declarations lists the policy losses that recipes can name, in the order of the documents. A new loss is one more
// line here.
func Declarations() []Declaration { return slices.Clone(declarations) }

var declarations = []Declaration{
	ppoClip,
	cispo,
	sapo,
	gspo,
	gspoToken,
	gpg,
	gppo,
	ceGPPO,
	aepoClip,
	clipCov,
	klCov,
}

// Declared returns the declaration of a loss.
func Declared(name string) (Declaration, bool) { return choice.Declared(declarations, name) }

// New makes the loss of that name with the parameters that a recipe sets; the others have their defaults.
func New(name string, params choice.Params) (Surrogate, error) {
	d, err := choice.Find("loss", declarations, name)
	if err != nil {
		return nil, err
	}
	return d.New(params)
}

// New makes the declared loss with the parameters that a recipe sets; the others have their defaults.
func (d Declaration) New(params choice.Params) (Surrogate, error) {
	settings, err := d.Set("loss", params)
	if err != nil {
		return nil, err
	}
	return surrogateOf(d.Name, settings)
}

// surrogateOf makes the loss of its settings.
func surrogateOf(name string, settings any) (Surrogate, error) {
	switch s := settings.(type) {
	case Surrogate:
		return s, nil
	case interface{ Surrogate() Surrogate }:
		return s.Surrogate(), nil
	}
	return nil, fmt.Errorf("loss %s: its settings are no loss and make none", name)
}

// ExampleLoss is the loss with the settings that tests and benchmarks use, and its parameters under their names in
// recipes.
func (d Declaration) ExampleLoss() (Surrogate, choice.Params, error) {
	settings := d.Example
	if settings == nil {
		settings = d.Settings
	}
	s, err := surrogateOf(d.Name, settings)
	return s, choice.Values(settings), err
}

// Describe says in a few words which loss with which settings a recipe chooses: ppo_clip −0.2/+0.28.
func (d Declaration) Describe(params choice.Params) (string, error) {
	values := choice.Values(d.Settings)
	for name, v := range params {
		values[name] = v
	}
	text := d.Name
	if d.Brief != nil {
		s, err := d.New(params)
		if err != nil {
			return "", err
		}
		return text + " " + d.Brief(s), nil
	}
	if low, high := values["clip_low"], values["clip_high"]; low != nil && high != nil {
		text += fmt.Sprintf(" −%v/+%v", low, high)
	}
	if dual, ok := values["dual_clip"].(float64); ok && dual > 0 {
		text += fmt.Sprintf(" dual %v", dual)
	}
	return text, nil
}

// check reports a declaration that contradicts itself; a test calls it for every loss.
func (d Declaration) check() error {
	s, _, err := d.ExampleLoss()
	if err != nil {
		return err
	}
	made, err := d.New(nil)
	if err != nil {
		return err
	}
	if s.Name() != d.Name || made.Name() != d.Name {
		return fmt.Errorf("loss %s: its settings make %s and %s", d.Name, made.Name(), s.Name())
	}
	return errors.Join(made.Validate(), s.Validate())
}

// RatioOfRow says that the loss clips one importance ratio for a whole row.
func (d Declaration) RatioOfRow() bool {
	s, err := d.New(nil)
	return err == nil && s.Inputs().has(Sequence)
}

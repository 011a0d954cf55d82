package advantage

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Estimator gives the rows of a step advantages. It is a value without state: its fields are the parameters that a
// recipe sets.
type Estimator interface {
	// Estimate returns the advantages of the batch's rows, in their order.
	Estimate(b Batch) (Estimates, error)
}

// Estimates holds either one advantage for each row or one for each token.
type Estimates struct {
	Rows   []float64   // by row; every token under the mask has its row's advantage
	Tokens [][]float64 // by row and token, 0 under mask 0; nil where Rows is set
	// Returns are what the critic learns, by row and token; nil without a critic.
	Returns [][]float64
}

// Batch is what estimators may read of a step's kept rows. The functions are called only by estimators whose
// declaration needs what they return.
type Batch struct {
	Rows     []Sample
	TurnRows bool // rows are turns, not whole trajectories
	// Entropies are those of the policy before the update, in nats, by row and token.
	Entropies func() [][]float64
	// Values are the critic's before the update, by row and token.
	Values func() [][]float64
	// TokenRewards are the rewards by row and token: a row's score on its last token under the mask, less the penalty
	// on the distance from the reference where a recipe puts that into the reward.
	TokenRewards func() ([][]float64, error)
}

// Sample is one row: a trajectory, or one turn of it.
type Sample struct {
	Row
	Reward  float64 // of the whole trajectory
	Score   float64 // the reward, less invalid_penalty where the row is an invalid turn
	Written int     // tokens that the policy wrote, under the mask or not
	Mask    []int32 // 1 for each token that is in the loss
	// Of a turn alone.
	Summary     bool   // the policy wrote a summary and did not act: the turn is in no anchor state
	LastTurn    bool   // the trajectory's last one
	Invalid     bool   // its action could not be read
	Anchor      string // digest of what the policy saw before the turn
	Observation string // the text of it, without the task
	// Only for turns in an interactive environment: a digest of its state before the turn, and what it paid for
	// the turn, where the trajectory's reward is the sum over its turns; else "" and nil.
	State string
	Paid  *float64
}

// Scores lists the rows' scores.
func (b Batch) Scores() []float64 { return each(b, func(s Sample) float64 { return s.Score }) }

// Groups lists the rows' groups.
func (b Batch) Groups() []string { return each(b, func(s Sample) string { return s.Group }) }

// Names lists the rows' names.
func (b Batch) Names() []Row { return each(b, func(s Sample) Row { return s.Row }) }

// Masks lists the rows' masks.
func (b Batch) Masks() [][]int32 { return each(b, func(s Sample) []int32 { return s.Mask }) }

func each[T any](b Batch, of func(Sample) T) []T {
	out := make([]T, len(b.Rows))
	for i, s := range b.Rows {
		out[i] = of(s)
	}
	return out
}

// Declaration is what an estimator states about itself. The file of the estimator holds it.
type Declaration struct {
	// Choice holds name, source and parameters. Its Settings are the Estimator with the defaults of its parameters.
	choice.Choice
	PerToken   bool // gives each token its own advantage
	Turns      bool // compares turns, so rows must be turns (layout: turns)
	GroupMeans bool // measures a row against the mean of its group, as SPEAR's replay does
	// TokenRewards says that the estimator reads rewards of tokens, which a penalty in the reward changes.
	TokenRewards bool
	// ByEntropy says that the estimator weighs by entropy already, so that entropy_aware would weigh twice.
	ByEntropy bool
}

// Declarations lists the estimators that recipes can name, in the order of the documents. A new estimator is one more
// line here.
func Declarations() []Declaration { return slices.Clone(declarations) }

var declarations = []Declaration{
	grpo,
	rloo,
	opo,
	gpg,
	reinforcePP,
	reinforcePPBaseline,
	gae,
	gigpo,
	empg,
}

// New makes the estimator of that name with the parameters that a recipe sets; the others have their defaults.
func New(name string, params choice.Params) (Estimator, error) {
	d, err := choice.Find("advantage", declarations, name)
	if err != nil {
		return nil, err
	}
	return d.New(params)
}

// New makes the declared estimator with the parameters that a recipe sets; the others have their defaults.
func (d Declaration) New(params choice.Params) (Estimator, error) {
	settings, err := d.Set("advantage", params)
	if err != nil {
		return nil, err
	}
	e, ok := settings.(Estimator)
	if !ok {
		return nil, fmt.Errorf("advantage %s: its settings %T are no estimator", d.Name, settings)
	}
	return e, nil
}

package advantage

import "github.com/ropewalk/ropewalk/rl/choice"

// GPG (Chu et al. 2025, "Group Policy Gradient"): a row's score minus its group's mean. The whole batch is scaled up
// to make up for the rows without a gradient,
//
//	A_i = α·(R_i − μ),  α = B/(B − M)
//
// where B is the number of rows of the batch and M the number of rows in groups of equal scores. Its loss is the
// plain policy gradient (rl/loss, GPG). Departures: in verl's release M counts the rows whose score is 0. The two
// differ if scores are not just right and wrong, or if a whole group is right; Idle offers both. α is 1 if B = M.
// A group of one keeps its raw score in released code and then counts as a group of unequal scores; see SingleGroup.

var gpg = Declaration{
	Choice: choice.Choice{
		Name: "gpg", Doc: "reward minus the group's mean, scaled up for the rows that have no gradient",
		Source:   "GPG (Chu et al. 2025)",
		Settings: gpgSettings{SingleGroup: SingleRaw, Idle: IdleEqual},
	},
	GroupMeans: true,
}

// gpgSettings are the parameters of GPG in a recipe.
type gpgSettings struct {
	SingleGroup    SingleGroup `json:"single_group"`
	InvalidPenalty float64     `json:"invalid_penalty"`
	Idle           Idle        `json:"idle" enum:"equal|zero" doc:"rows that the others are scaled up for: those in groups of equal scores (the paper), or those of score 0 (verl)"`
}

// Estimate is GPG over rows of either layout.
func (g gpgSettings) Estimate(b Batch) (out Estimates, err error) {
	out.Rows, err = GPG{Idle: g.Idle, SingleGroup: g.SingleGroup}.Estimate(b.Scores(), b.Groups())
	return out, err
}

// Idle says which rows α makes up for.
type Idle string

// The two readings: rows in groups of equal scores (the paper), and rows with score 0 (verl).
const (
	IdleEqual Idle = "equal"
	IdleZero  Idle = "zero"
)

// GPG is the estimator of group policy gradient.
type GPG struct {
	Idle        Idle        `enum:"equal|zero"` // IdleEqual when empty
	SingleGroup SingleGroup `enum:"raw|zero"`   // SingleRaw when empty
}

// Validate reports the first bad field.
func (g GPG) Validate() error { return choice.Check("", g) }

// Estimate returns the advantage of each row of a whole batch from its score and the name of its group.
func (g GPG) Estimate(scores []float64, groups []string) ([]float64, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	out, err := Group{SingleGroup: g.SingleGroup}.Estimate(scores, groups)
	if err != nil {
		return nil, err
	}
	busy := g.busy(scores, groups)
	if busy == 0 {
		return out, nil
	}
	alpha := float64(len(scores)) / float64(busy)
	for i := range out {
		out[i] *= alpha
	}
	return out, nil
}

// busy counts the rows of the batch that α does not make up for.
func (g GPG) busy(scores []float64, groups []string) int {
	type span struct {
		least, most float64
		rows        int
	}
	n, of := 0, map[string]span{}
	for i, s := range scores {
		if s != 0 && g.Idle == IdleZero {
			n++
		}
		seen, ok := of[groups[i]]
		if !ok {
			seen.least, seen.most = s, s
		}
		of[groups[i]] = span{min(seen.least, s), max(seen.most, s), seen.rows + 1}
	}
	if g.Idle == IdleZero {
		return n
	}
	for _, s := range of { // a sum of whole numbers does not depend on the order
		if s.least != s.most || s.rows == 1 && g.SingleGroup != SingleZero && s.least != 0 {
			n += s.rows
		}
	}
	return n
}

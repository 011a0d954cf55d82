package batch

import (
	"slices"

	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/schema"
)

// Advantages of tokens that several trajectories of a tree share. Each of the n kept trajectories that share token t
// has an advantage A_i,t for it. By advantage.prefixes:
//
//	per_leaf       the token is in n rows, with A_i,t in row i (AEPO eq 10)
//	mean_per_leaf  the token is in n rows, with mean_i A_i,t in each
//	mean_once      the token is in the first of the n rows alone, with mean_i A_i,t
//
// mean_once takes the token off the other rows' loss masks, so an aggregation divides by fewer tokens. Factors of
// entropies come last: their means and deviations count the tokens that are left.
//
// A trajectory that is masked shares nothing. A row that the update repeats counts as often in the mean.

// origin identifies a token: who wrote its turn, and where it is in the turn.
type origin struct {
	owner    string
	turn, at int32
}

// JoinLineage tells the sequences which of their turns other trajectories wrote.
func JoinLineage(kept []Sequence, lineage schema.Lineage) {
	for i := range kept {
		s := &kept[i]
		s.owners = make([]string, len(s.turns))
		for k := range s.turns {
			s.owners[k] = lineage.Owner(s.TrajectoryID, s.turns[k].Turn)
		}
	}
}

// origins are those of the sequence's tokens; nil if its lineage is not known.
func (s Sequence) origins() []origin {
	if s.owners == nil {
		return nil
	}
	out := make([]origin, 0, len(s.TokenIDs))
	for k, t := range s.turns {
		for at := range t.TokenIDs {
			out = append(out, origin{s.owners[k], t.Turn, int32(at)})
		}
	}
	return out
}

// tokenAt is a token of a row.
type tokenAt struct{ row, at int }

// sharedTokens lists the places of each token that is in the loss of several rows, in the order of the rows.
func (e *estimation) sharedTokens() [][]tokenAt {
	of := map[origin][]tokenAt{}
	var order []origin
	for i := range e.rows {
		r := &e.rows[i]
		skip := len(r.TokenIDs) - len(r.origins) // the origins are those of the row's last tokens
		for k, o := range r.origins {
			if r.LossMask[skip+k] != 1 {
				continue
			}
			if of[o] == nil {
				order = append(order, o)
			}
			of[o] = append(of[o], tokenAt{i, skip + k})
		}
	}
	var out [][]tokenAt
	for _, o := range order {
		if len(of[o]) > 1 {
			out = append(out, of[o])
		}
	}
	return out
}

// sharePrefixes gives each shared token the mean of its advantages, once or in each row.
func (e *estimation) sharePrefixes(advantages [][]float64) {
	once := e.method.Advantage.Prefixes == method.PrefixesMeanOnce
	for _, places := range e.sharedTokens() {
		sum, rows := 0.0, 0.0
		for _, p := range places {
			n := float64(max(e.rows[p.row].Count, 1))
			sum, rows = sum+n*advantages[p.row][p.at], rows+n
		}
		for i, p := range places {
			if advantages[p.row][p.at] = sum / rows; once && i > 0 {
				e.unlearn(p)
				advantages[p.row][p.at] = 0
			}
		}
	}
}

// unlearn takes a token off its row's loss mask.
func (e *estimation) unlearn(p tokenAt) {
	r := &e.rows[p.row]
	if !r.unshared {
		r.LossMask, r.unshared = slices.Clone(r.LossMask), true
	}
	r.LossMask[p.at] = 0
}

// factors are what entropies multiply advantages by.
func factors(a advantage.AEPO, b advantage.Batch, masks [][]int32) ([][]float64, error) {
	ones := make([]float64, len(masks))
	for i := range ones {
		ones[i] = 1
	}
	_, out, err := a.Estimate(b.Names(), ones, b.Entropies(), masks)
	return out, err
}

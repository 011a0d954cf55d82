package diagnose

// Entropy of the policy over a step (ARLArena section 3 and SPEAR figure 3 plot it by step), with
// H_t the entropy of token t, m the mask, T_i = Σ_t m of row i and N the number of live rows:
//
//	token-mean               Σ_i Σ_t m·H / Σ_i T_i
//	seq-mean-token-sum       Σ_i Σ_t m·H / N
//
// Departures: the third aggregate, over the configured response limit, is left out.

import "github.com/ropewalk/ropewalk/rl/internal/exact"

// Entropy gathers the entropies of a step's tokens.
type Entropy struct {
	rows, tokens int
	sum          exact.Sum
}

// EntropyReport holds the aggregates, in nats; all are 0 without live rows.
type EntropyReport struct {
	Rows, Tokens    int // live rows, and tokens under the mask
	TokenMean       float64
	SeqMeanTokenSum float64
}

// Add adds rows by Mask and Entropy. If one is refused, none is added.
func (e *Entropy) Add(rows ...Row) error {
	for i, r := range rows {
		if err := r.check(i, r.entropy()); err != nil {
			return err
		}
	}
	for _, r := range rows {
		live := 0
		for t, m := range r.Mask {
			if m == 1 {
				e.tokens++
				e.sum.Add(r.Entropy[t])
				live = 1
			}
		}
		e.rows += live
	}
	return nil
}

// Report returns the aggregates.
func (e *Entropy) Report() EntropyReport {
	sum := e.sum.Value()
	return EntropyReport{Rows: e.rows, Tokens: e.tokens, TokenMean: meanOf(sum, e.tokens),
		SeqMeanTokenSum: meanOf(sum, e.rows)}
}

package policy

import (
	"fmt"
	"math"
)

// Truncation limits sampling to the likeliest tokens. The zero value leaves all of them. It is applied to the tempered
// distribution: TopK first, then TopP to what TopK has left, then MinP. The tokens' order is that of their logits, the
// greatest first, and of their ids where logits are equal. The first token always remains. The probabilities of the
// remaining tokens are divided by their sum.
type Truncation struct {
	// TopK leaves so many tokens; 0 = all (Fan et al. 2018).
	TopK int
	// TopP leaves the fewest tokens, from the first on, whose probabilities add up to TopP at least; 0 and 1 = all
	// (nucleus sampling, Holtzman et al. 2020).
	TopP float64
	// MinP leaves the tokens that have at least MinP times the probability of the first; 0 = all (Nguyen et al. 2025).
	MinP float64
}

// Active reports whether any token may be left out.
func (t Truncation) Active() bool { return t.TopK > 0 || t.TopP > 0 && t.TopP < 1 || t.MinP > 0 }

// Validate names the first limit that no distribution can obey. Its error is ErrBadRequest.
func (t Truncation) Validate() error {
	switch {
	case t.TopK < 0 || t.TopK > math.MaxInt32:
		return fmt.Errorf("%w: top-k of %d", ErrBadRequest, t.TopK)
	case !(t.TopP >= 0 && t.TopP <= 1):
		return fmt.Errorf("%w: top-p of %v", ErrBadRequest, t.TopP)
	case !(t.MinP >= 0 && t.MinP <= 1):
		return fmt.Errorf("%w: min-p of %v", ErrBadRequest, t.MinP)
	}
	return nil
}

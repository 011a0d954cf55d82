package advantage

import "fmt"

// The constants of papers and releases.
var (
	// DefaultAEPO holds the paper's constant.
	DefaultAEPO = AEPO{Weight: 0.2, Scope: ScopeGroup, Form: FormLinear}
	// DefaultEMPG holds ARLArena's constants.
	DefaultEMPG = EMPG{K: 1, KPrime: 1, Zeta: 0.05, Mean: MeanRows}
	// DefaultGAE uses γ = λ = 1: a token's advantage is its return minus its value.
	DefaultGAE = GAE{Gamma: 1, Lambda: 1}
	// DefaultGiGPO holds ARLArena's constants.
	DefaultGiGPO = GiGPO{Gamma: 0.95, Omega: 1, Mode: ModeMeanStdNorm, InvalidPenalty: 0.1}
	// DefaultReinforcePP does not discount.
	DefaultReinforcePP = ReinforcePP{Gamma: 1, Gap: GapCarry}
)

// Whiten checks its input.
func Whiten(x [][]float64, mask [][]int32) ([][]float64, error) {
	if err := checkMask(mask); err != nil {
		return nil, fmt.Errorf("whiten: %w", err)
	}
	if err := checkTokens("values", x, mask, false); err != nil {
		return nil, fmt.Errorf("whiten: %w", err)
	}
	return whiten(x, mask), nil
}

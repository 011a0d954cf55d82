package advantage

import (
	"math"
	"strings"
	"testing"
)

func TestValidateNamesTheField(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	type settings interface{ Validate() error }
	for _, tt := range []struct {
		settings settings
		field    string
	}{
		{TurnRows{Norm: Group{Epsilon: nan}}, "epsilon"},
		{TurnRows{Stats: "rows"}, "stats"},
		{RLOO{SingleGroup: "mean"}, "single_group"},
		{OPO{SingleGroup: "mean"}, "single_group"},
		{GPG{SingleGroup: "mean"}, "single_group"},
		{GPG{Idle: "none"}, "idle"},
		{ReinforcePP{Gamma: 1.1}, "gamma"},
		{ReinforcePP{Gamma: nan}, "gamma"},
		{ReinforcePP{Gap: "skip"}, "gap"},
		{GAE{Gamma: -1}, "gamma"},
		{GAE{Lambda: nan}, "lambda"},
		{GiGPO{Gamma: 2}, "gamma"},
		{GiGPO{Omega: inf}, "omega"},
		{GiGPO{InvalidPenalty: -0.1}, "invalid_penalty"},
		{GiGPO{Mode: "std"}, "mode"},
		{GiGPO{Epsilon: -1}, "epsilon"},
		{GiGPO{SingleGroup: "x"}, "single_group"},
		{GiGPO{Stats: "x"}, "stats"},
		{GiGPO{Anchors: Anchors{Similarity: 1}}, "similarity"},
		{Anchors{Similarity: nan}, "similarity"},
		{EMPG{K: -1}, "k "},
		{EMPG{KPrime: inf}, "k_prime"},
		{EMPG{Zeta: nan}, "zeta"},
		{EMPG{Mean: "x"}, "mean"},
		{AEPO{Weight: nan}, "weight"},
		{AEPO{Scope: "token"}, "scope"},
		{AEPO{Form: "cubic"}, "form"},
		{Recalibration{WeightDecay: 1.5}, "weight_decay"},
		{Recalibration{WeightDecay: nan}, "weight_decay"},
	} {
		if err := tt.settings.Validate(); err == nil || !strings.HasPrefix(err.Error(), tt.field) {
			t.Errorf("%+v: %v, want a word on %q", tt.settings, err, tt.field)
		}
	}
	for _, s := range []settings{
		TurnRows{}, RLOO{}, OPO{}, GPG{}, GPG{Idle: IdleZero}, ReinforcePP{}, GAE{}, GiGPO{}, Anchors{}, EMPG{}, AEPO{},
		Recalibration{},
		DefaultReinforcePP, DefaultGAE, DefaultGiGPO, DefaultEMPG, DefaultAEPO, Anchors{Similarity: DefaultSimilarity},
	} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestEstimateValidatesItsSettings(t *testing.T) {
	_, turn := TurnRows{Stats: "x"}.Estimate(nil, nil)
	_, rloo := RLOO{SingleGroup: "x"}.Estimate(nil, nil)
	_, _, plus := ReinforcePP{Gap: "x"}.Estimate(nil, nil)
	_, gae := GAE{Gamma: 2}.Estimate(nil, nil, nil)
	_, gigpo := GiGPO{Mode: "x"}.Estimate(nil)
	_, empg := EMPG{Mean: "x"}.Estimate(nil)
	_, _, aepo := AEPO{Form: "x"}.Estimate(nil, nil, nil, nil)
	_, spear := Recalibration{WeightDecay: -1}.Estimate(nil, nil)
	for i, err := range []error{turn, rloo, plus, gae, gigpo, empg, aepo, spear} {
		if err == nil {
			t.Errorf("estimator %d ran with a bad setting", i)
		}
	}
}

package advantage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// sample is a batch with everything that some estimator reads.
type sample struct {
	rows        []Row
	scores      []float64
	observation []string
	invalid     []bool
	rewards     [][]float64
	values      [][]float64
	mask        [][]int32
}

func (s sample) groups() []string {
	out := make([]string, len(s.rows))
	for i, r := range s.rows {
		out[i] = r.Group
	}
	return out
}

// randomSample has groups of trajectories of turns of tokens; among them groups of one, scores that
// are all equal and rows without a valid token.
func randomSample(rng *rand.Rand) sample {
	var s sample
	for g := range 1 + rng.IntN(4) {
		equal := rng.IntN(4) == 0
		for tr := range 1 + rng.IntN(5) {
			for turn := range 1 + rng.IntN(4) {
				s.rows = append(s.rows, Row{fmt.Sprint("g", g), fmt.Sprint("t", tr), turn})
				score := math.Round(rng.NormFloat64()*10) / 10
				if equal {
					score = 0.1
				}
				s.scores = append(s.scores, score)
				s.observation = append(s.observation, fmt.Sprintf("you are in room %d and see a door", rng.IntN(30)))
				s.invalid = append(s.invalid, rng.IntN(4) == 0)
				s.addTokens(rng)
			}
		}
	}
	return s
}

func (s *sample) addTokens(rng *rand.Rand) {
	var rewards, values []float64
	var mask []int32
	dead := rng.IntN(8) == 0
	for range rng.IntN(7) {
		rewards, values = append(rewards, rng.NormFloat64()), append(values, rng.NormFloat64())
		m := int32(rng.IntN(2))
		if dead {
			m = 0
		}
		mask = append(mask, m)
	}
	s.rewards, s.values, s.mask = append(s.rewards, rewards), append(s.values, values), append(s.mask, mask)
}

// permuted is the sample with row perm[k] in place k.
func (s sample) permuted(perm []int) sample {
	var out sample
	for _, i := range perm {
		out.rows, out.scores = append(out.rows, s.rows[i]), append(out.scores, s.scores[i])
		out.observation, out.invalid = append(out.observation, s.observation[i]), append(out.invalid, s.invalid[i])
		out.rewards, out.values = append(out.rewards, s.rewards[i]), append(out.values, s.values[i])
		out.mask = append(out.mask, s.mask[i])
	}
	return out
}

// renamed calls the groups by names that sort the other way round.
func (s sample) renamed() sample {
	s.rows = append([]Row(nil), s.rows...)
	for i := range s.rows {
		s.rows[i].Group = fmt.Sprint("h", 9-int(s.rows[i].Group[1]-'0'))
	}
	return s
}

// disturbed puts other numbers under mask 0 and pads the rows.
func (s sample) disturbed(rng *rand.Rand) sample {
	out := s
	out.rewards, out.values, out.mask = nil, nil, nil
	for i, mask := range s.mask {
		pad := rng.IntN(5)
		rewards, values := append([]float64(nil), s.rewards[i]...), append([]float64(nil), s.values[i]...)
		mask = append([]int32(nil), mask...)
		for range pad {
			rewards, values, mask = append(rewards, 0), append(values, 0), append(mask, 0)
		}
		for t, m := range mask {
			if m == 0 {
				rewards[t], values[t] = rng.NormFloat64()*100, rng.NormFloat64()*100
			}
		}
		out.rewards, out.values = append(out.rewards, rewards), append(out.values, values)
		out.mask = append(out.mask, mask)
	}
	return out
}

// column lays one number per row out as rows of one number.
func column(v []float64) [][]float64 {
	out := make([][]float64, len(v))
	for i := range v {
		out[i] = v[i : i+1]
	}
	return out
}

// join puts the parts' columns side by side.
func join(parts ...[][]float64) [][]float64 {
	out := make([][]float64, len(parts[0]))
	for _, p := range parts {
		for i := range p {
			out[i] = append(out[i], p[i]...)
		}
	}
	return out
}

// valid keeps the values under mask 1.
func valid(x [][]float64, mask [][]int32) [][]float64 {
	out := make([][]float64, len(x))
	for i := range x {
		for t, m := range mask[i] {
			if m == 1 {
				out[i] = append(out[i], x[i][t])
			}
		}
	}
	return out
}

func gigpoRows(s sample) []GiGPORow {
	out := make([]GiGPORow, len(s.rows))
	for i := range out {
		out[i] = GiGPORow{Row: s.rows[i], Reward: s.scores[i], Observation: s.observation[i], Invalid: s.invalid[i]}
	}
	return out
}

func runGiGPO(g GiGPO) func(sample) ([][]float64, error) {
	return func(s sample) ([][]float64, error) {
		r, err := g.Estimate(gigpoRows(s))
		return join(
			column(r.StepReturn), column(r.StepScore), column(r.EpisodeScore), column(r.Episode), column(r.Step),
			column(r.Advantage),
		), err
	}
}

func runAEPO(a AEPO) func(sample) ([][]float64, error) {
	return func(s sample) ([][]float64, error) {
		z, out, err := a.Estimate(s.rows, s.scores, s.values, s.mask)
		return join(valid(z, s.mask), valid(out, s.mask)), err
	}
}

func runEMPG(e EMPG) func(sample) ([][]float64, error) {
	return func(s sample) ([][]float64, error) {
		rows := make([]EMPGRow, len(s.rows))
		for i := range rows {
			h, err := TurnEntropy(s.values[i], s.mask[i])
			if err != nil {
				return nil, err
			}
			rows[i] = EMPGRow{Row: s.rows[i], Entropy: h, Advantage: s.scores[i], Dead: countTokens(s.mask[i]) == 0}
		}
		r, err := e.Estimate(rows)
		return join(column(r.Normalised), column(r.Gain), column(r.Future), column(r.Advantage)), err
	}
}

func runTurnRows(e TurnRows) func(sample) ([][]float64, error) {
	return func(s sample) ([][]float64, error) {
		a, err := e.Estimate(s.scores, s.rows)
		return column(a), err
	}
}

// estimators is every estimator with every choice, as one function of a sample; the values under
// mask 0 that are of no meaning are left out.
func estimators() map[string]func(sample) ([][]float64, error) {
	out := map[string]func(sample) ([][]float64, error){
		"rloo": func(s sample) ([][]float64, error) {
			a, err := RLOO{}.Estimate(s.scores, s.groups())
			return column(a), err
		},
		"opo": func(s sample) ([][]float64, error) {
			lengths := make([]int, len(s.mask))
			for i, mask := range s.mask {
				lengths[i] = 1
				for _, m := range mask {
					lengths[i] += int(m)
				}
			}
			a, err := OPO{}.Estimate(s.scores, lengths, s.groups())
			return column(a), err
		},
		"gpg": func(s sample) ([][]float64, error) {
			a, err := GPG{}.Estimate(s.scores, s.groups())
			return column(a), err
		},
		"grpo": func(s sample) ([][]float64, error) {
			a, err := Group{Std: true}.Estimate(s.scores, s.groups())
			return column(a), err
		},
		"reinforce++": func(s sample) ([][]float64, error) {
			returns, a, err := ReinforcePP{Gamma: 0.9}.Estimate(s.rewards, s.mask)
			return join(valid(returns, s.mask), valid(a, s.mask)), err
		},
		"reinforce++-baseline": func(s sample) ([][]float64, error) {
			a, err := ReinforcePPBaseline{}.Estimate(s.scores, s.groups(), s.mask)
			return valid(a, s.mask), err
		},
		"gae": func(s sample) ([][]float64, error) {
			r, err := GAE{Gamma: 0.99, Lambda: 0.95}.Estimate(s.rewards, s.values, s.mask)
			return join(valid(r.Raw, s.mask), valid(r.Returns, s.mask), valid(r.Whitened, s.mask)), err
		},
	}
	for _, stats := range []Stats{StatsTurnRows, StatsPerTrajectory} {
		for _, single := range []SingleGroup{SingleRaw, SingleZero} {
			norm := Group{Std: true, SingleGroup: single}
			out[fmt.Sprint("turn rows ", stats, single)] = runTurnRows(TurnRows{Norm: norm, Stats: stats})
			for _, similarity := range []float64{0, 0.95} {
				for _, mode := range []Mode{ModeMeanNorm, ModeMeanStdNorm} {
					out[fmt.Sprint(
						"gigpo ", stats, single, similarity, mode,
					)] = runGiGPO(GiGPO{Gamma: 0.95, Omega: 0.5, Mode: mode,
						InvalidPenalty: 0.1, SingleGroup: single, Stats: stats,
						Anchors: Anchors{Similarity: similarity}})
				}
			}
		}
	}
	for _, mean := range []EntropyMean{MeanRows, MeanTrajectories, SumTrajectories} {
		out[fmt.Sprint("empg ", mean)] = runEMPG(EMPG{K: 1, KPrime: 0.5, Zeta: 0.1, Mean: mean})
	}
	for _, scope := range []Scope{ScopeGroup, ScopeTrajectory, ScopeBatch} {
		for _, form := range []Form{FormLinear, FormPower} {
			out[fmt.Sprint("aepo ", scope, form)] = runAEPO(AEPO{Weight: 0.2, Scope: scope, Form: form})
		}
	}
	return out
}

func mustRun(t *testing.T, f func(sample) ([][]float64, error), s sample) [][]float64 {
	t.Helper()
	out, err := f(s)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range out {
		for _, v := range row {
			if !finite(v) {
				t.Fatalf("row %d holds %g", i, v)
			}
		}
	}
	return out
}

func TestNothingDependsOnOrderNamesOrMaskedTokens(t *testing.T) {
	for name, f := range estimators() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, 12))
			for range 60 {
				s := randomSample(rng)
				want := mustRun(t, f, s)
				perm := rng.Perm(len(s.rows))
				moved := mustRun(t, f, s.permuted(perm))
				for k, i := range perm {
					if !reflect.DeepEqual(moved[k], want[i]) {
						t.Fatalf("order changed row %d: %v, want %v", i, moved[k], want[i])
					}
				}
				if got := mustRun(t, f, s.renamed()); !reflect.DeepEqual(got, want) {
					t.Fatalf("names of groups changed %v to %v", want, got)
				}
				if got := mustRun(t, f, s.disturbed(rng)); !reflect.DeepEqual(got, want) {
					t.Fatalf("masked tokens changed %v to %v", want, got)
				}
			}
		})
	}
}

func TestDegenerateBatches(t *testing.T) {
	one := sample{
		rows:        []Row{{"g", "t", 0}},
		scores:      []float64{0.5},
		observation: []string{"o"},
		invalid:     []bool{false},
		rewards:     [][]float64{{1}},
		values:      [][]float64{{0.2}},
		mask:        [][]int32{{1}},
	}
	masked := one
	masked.mask = [][]int32{{0}}
	equal := sample{}
	for i := range 4 {
		equal.rows = append(equal.rows, Row{"g", fmt.Sprint(i), 0})
		equal.scores, equal.observation = append(equal.scores, 0.1), append(equal.observation, "o")
		equal.invalid, equal.mask = append(equal.invalid, false), append(equal.mask, []int32{1})
		equal.rewards, equal.values = append(equal.rewards, []float64{0.1}), append(equal.values, []float64{0.3})
	}
	for name, f := range estimators() {
		t.Run(name, func(t *testing.T) {
			for _, s := range []sample{{}, one, masked, equal} {
				if got := mustRun(t, f, s); len(got) != len(s.rows) { // mustRun refuses NaN
					t.Errorf("%d rows of result for %d", len(got), len(s.rows))
				}
			}
		})
	}
	for _, name := range []string{"grpo", "rloo", "turn rows per_trajectoryraw"} {
		for _, row := range mustRun(t, estimators()[name], equal) {
			if row[0] != 0 {
				t.Errorf("%s of equal scores is %g", name, row[0])
			}
		}
	}
}

package diagnose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// gathering is what the property tests see of any of the package's.
type gathering[T any] struct {
	add   func(items ...T) error
	merge func(other gathering[T]) error
	// self is what merge of another gathering takes; report is a plain struct.
	self   any
	report func() any
}

// orderFree fails unless items give the same report in any order and over any shards.
func orderFree[T any](t *testing.T, items []T, empty func() gathering[T]) {
	t.Helper()
	whole := empty()
	if err := whole.add(items...); err != nil {
		t.Fatal(err)
	}
	want := whole.report()
	noNaN(t, want)
	rng := rand.New(rand.NewPCG(7, 8))
	for range 12 {
		rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		total := empty()
		for rest := items; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			shard := empty()
			if err := shard.add(rest[:n]...); err != nil {
				t.Fatal(err)
			}
			// Half the time the other way round: merging commutes.
			if rng.IntN(2) == 0 {
				total, shard = shard, total
			}
			if err := total.merge(shard); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got := total.report(); !reflect.DeepEqual(got, want) {
			t.Fatalf("shards give\n%+v\none gathering\n%+v", got, want)
		}
	}
	none := empty()
	noNaN(t, none.report())
	if err := none.merge(whole); err != nil || !reflect.DeepEqual(none.report(), want) {
		t.Fatalf("an empty gathering changed what it took in: %v", err)
	}
}

// noNaN fails where a report holds a number that is not finite.
func noNaN(t *testing.T, report any) {
	t.Helper()
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Float64:
			if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
				t.Errorf("%s is %g", path, f)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
		}
	}
	walk(reflect.TypeOf(report).Name(), reflect.ValueOf(report))
}

// accumulator is a pointer to a gathering whose Merge cannot fail.
type accumulator[T, A any] interface {
	*A
	Add(...T) error
	Merge(*A)
}

// plain wraps an accumulator with a zero value that is empty.
func plain[T, A any, P accumulator[T, A]](report func(P) any) func() gathering[T] {
	return func() gathering[T] {
		var p P = new(A)
		return gathering[T]{
			add:    p.Add,
			merge:  func(o gathering[T]) error { p.Merge(o.self.(*A)); return nil },
			self:   (*A)(p),
			report: func() any { return report(p) },
		}
	}
}

// randomRows draws rows of every slice, some of them dead, some tokens masked.
func randomRows(rng *rand.Rand, n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		length := rng.IntN(30)
		dead := rng.IntN(5) == 0
		for range length {
			m := int32(0)
			if !dead && rng.IntN(4) > 0 {
				m = 1
			}
			logp := -3 * rng.Float64()
			r := &rows[i]
			r.Mask = append(r.Mask, m)
			r.LogProbs = append(r.LogProbs, logp)
			r.Old = append(r.Old, min(0, logp+0.6*rng.NormFloat64()))
			r.Reference = append(r.Reference, min(0, logp+rng.NormFloat64()))
			r.Advantages = append(r.Advantages, float64(rng.IntN(3)-1)*rng.Float64())
			r.Entropy = append(r.Entropy, 2*rng.Float64())
		}
	}
	return rows
}

func TestNoDiagnosisDependsOnOrderOrShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	rows := randomRows(rng, 60)
	for i := range rows { // an empty row has no columns at all
		if len(rows[i].Mask) == 0 {
			rows[i] = Row{
				Mask: []int32{0}, LogProbs: []float64{0}, Old: []float64{0}, Reference: []float64{0},
				Advantages: []float64{0}, Entropy: []float64{0},
			}
		}
	}
	t.Run("entropy", func(t *testing.T) {
		orderFree(t, rows, plain[Row, Entropy](func(e *Entropy) any { return e.Report(100) }))
	})
	t.Run("kl", func(t *testing.T) {
		orderFree(t, rows, plain[Row, KL](func(k *KL) any { return k.Report() }))
	})
	for name, add := range map[string]func(*Ratios) func(...Row) error{
		"token ratios":    func(r *Ratios) func(...Row) error { return r.AddTokens },
		"sequence ratios": func(r *Ratios) func(...Row) error { return r.AddSequences },
	} {
		t.Run(name, func(t *testing.T) {
			orderFree(t, rows, func() gathering[Row] {
				r, err := NewRatios(DefaultRatioBounds)
				if err != nil {
					t.Fatal(err)
				}
				return gathering[Row]{add: add(r), self: r, report: func() any { return r.Report() },
					merge: func(o gathering[Row]) error { return r.Merge(o.self.(*Ratios)) }}
			})
		})
	}
	t.Run("hesitation", func(t *testing.T) {
		orderFree(t, rows, func() gathering[Row] {
			h := &Hesitation{Window: 3}
			return gathering[Row]{add: h.Add, self: h, report: func() any { return h.Report() },
				merge: func(o gathering[Row]) error { return h.Merge(o.self.(*Hesitation)) }}
		})
	})
	t.Run("eight groups", func(t *testing.T) {
		samples, err := Samples(rows)
		if err != nil {
			t.Fatal(err)
		}
		threshold := MedianEntropy(samples)
		orderFree(t, samples, func() gathering[Sample] {
			g, err := NewEightGroups(threshold)
			if err != nil {
				t.Fatal(err)
			}
			return gathering[Sample]{add: g.Add, self: g, report: func() any { return g.Report() },
				merge: func(o gathering[Sample]) error { return g.Merge(o.self.(*EightGroups)) }}
		})
	})
}

func TestNoCountDependsOnOrderOrShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	draw := func(n int) int { return rng.IntN(n) }
	var uses []ToolUse
	var chains []Chain
	var trajectories []Trajectory
	var qualities []Quality
	var values []Value
	var turns []TurnRow
	var calls []Call
	var groups []GroupReward
	var tasks [][]float64
	for i := range 80 {
		f := Failures{draw(3), draw(3), draw(3)}
		uses = append(uses, ToolUse{Reward: float64(draw(3) - 1), Calls: f.Total() + draw(4), Failures: f})
		chains = append(
			chains, Chain{Prompt: fmt.Sprint(draw(9)), Children: []int{draw(3), draw(2), draw(2), draw(4)}[:draw(5)]},
		)
		trajectories = append(
			trajectories,
			Trajectory{
				Calls: map[string]int{"search": draw(4), "python": draw(3)}, Tokens: draw(900), Turns: draw(9),
				Truncated: draw(5) == 0,
			},
		)
		qualities = append(
			qualities, Quality{Error: rng.Float64(), Format: rng.Float64(), Answers: draw(4), Kept: draw(2) == 0},
		)
		values = append(
			values,
			Value{Score: rng.Float64(), Probability: rng.Float64() / 80, N: draw(4), Omega: 2 - 1/float64(1+draw(3))},
		)
		turns = append(
			turns,
			TurnRow{
				Group: fmt.Sprint(draw(4)), Anchor: fmt.Sprint(draw(9)), Episode: rng.NormFloat64(),
				Step: rng.NormFloat64(),
			},
		)
		queued := rng.Float64() * 10
		started := queued + rng.ExpFloat64()
		calls = append(calls, Call{Step: i % 3, Queued: queued, Started: started, Finished: started + rng.ExpFloat64()})
		rewards := []float64{rng.NormFloat64(), rng.NormFloat64(), float64(draw(2))}[:draw(4)]
		groups = append(groups, GroupReward{Rewards: rewards, Kept: rewards[:len(rewards)/2]})
		tasks = append(tasks, []float64{float64(draw(2)), float64(draw(2))}[:draw(3)])
	}
	t.Run("tool errors", func(t *testing.T) {
		orderFree(t, uses, plain[ToolUse, ToolErrors](func(e *ToolErrors) any { return e.Report() }))
	})
	t.Run("branches", func(t *testing.T) {
		orderFree(t, chains, plain[Chain, Branches](func(b *Branches) any { return b.Report() }))
	})
	t.Run("effort", func(t *testing.T) {
		orderFree(t, trajectories, plain[Trajectory, Effort](func(e *Effort) any { return e.Report() }))
	})
	t.Run("quality", func(t *testing.T) {
		orderFree(t, qualities, plain[Quality, Qualities](func(q *Qualities) any { return q.Report() }))
	})
	t.Run("values", func(t *testing.T) {
		orderFree(t, values, plain[Value, Values](func(v *Values) any { return v.Report() }))
	})
	t.Run("anchors", func(t *testing.T) {
		orderFree(t, turns, plain[TurnRow, Anchors](func(a *Anchors) any { return a.Report() }))
	})
	t.Run("latency", func(t *testing.T) {
		orderFree(t, calls, plain[Call, Latency](func(l *Latency) any { return l.Report() }))
	})
	t.Run("group rewards", func(t *testing.T) {
		orderFree(t, groups, plain[GroupReward, GroupRewards](func(g *GroupRewards) any { return g.Report() }))
	})
	t.Run("zero advantage", func(t *testing.T) {
		orderFree(t, tasks, func() gathering[[]float64] {
			z := &ZeroAdvantage{}
			return gathering[[]float64]{add: z.Add, self: z, report: func() any { return z.Report() },
				merge: func(o gathering[[]float64]) error { return z.Merge(o.self.(*ZeroAdvantage)) }}
		})
	})
	t.Run("solved", func(t *testing.T) {
		orderFree(t, tasks, func() gathering[[]float64] {
			s := &Solved{}
			return gathering[[]float64]{
				add: func(tasks ...[]float64) error {
					for _, scores := range tasks {
						solved := make([]bool, len(scores))
						for i, v := range scores {
							solved[i] = v > 0
						}
						if err := s.Add(scores, solved); err != nil {
							return err
						}
					}
					return nil
				},
				self: s, merge: func(o gathering[[]float64]) error { s.Merge(o.self.(*Solved)); return nil },
				report: func() any {
					p, err := s.PassAtK(1)
					if err != nil {
						t.Fatal(err)
					}
					return struct {
						SolvedReport
						P float64
					}{s.Report(), p}
				},
			}
		})
	})
	t.Run("validity", func(t *testing.T) {
		var turns [][]Turn
		for range 40 {
			turns = append(turns, []Turn{{draw(2) == 0, draw(2) == 0}, {draw(2) == 0, true}}[:draw(3)])
		}
		orderFree(t, turns, func() gathering[[]Turn] {
			v := &Validity{}
			return gathering[[]Turn]{
				add: func(items ...[]Turn) error {
					for _, turns := range items {
						v.Add(turns...)
					}
					return nil
				},
				self: v, merge: func(o gathering[[]Turn]) error { v.Merge(o.self.(*Validity)); return nil },
				report: func() any { return v.Report() },
			}
		})
	})
	t.Run("transitions", func(t *testing.T) {
		var paths [][]string
		for range 40 {
			paths = append(paths, []string{"a", string(rune('a' + draw(6))), string(rune('a' + draw(6)))}[:draw(4)])
		}
		orderFree(t, paths, func() gathering[[]string] {
			tr := &Transitions{}
			return gathering[[]string]{
				add: func(items ...[]string) error {
					for _, labels := range items {
						tr.Add(labels...)
					}
					return nil
				},
				self: tr, merge: func(o gathering[[]string]) error { tr.Merge(o.self.(*Transitions)); return nil },
				report: func() any {
					return struct{ R, F any }{
						tr.Report(MinFrequency), tr.Report(MinFrequency).Flows(),
					}
				},
			}
		})
	})
}

// The values of masked tokens never matter, not even those that would be refused elsewhere.
func TestMaskedTokensNeverMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	rows := randomRows(rng, 40)
	reports := func() []any {
		var e Entropy
		var k KL
		h := Hesitation{Window: 3}
		tokens, _ := NewRatios(DefaultRatioBounds)
		sequences, _ := NewRatios(DefaultRatioBounds)
		for _, add := range []func(...Row) error{e.Add, k.Add, h.Add, tokens.AddTokens, sequences.AddSequences} {
			if err := add(rows...); err != nil {
				t.Fatal(err)
			}
		}
		samples, err := Samples(rows)
		if err != nil {
			t.Fatal(err)
		}
		return []any{e.Report(64), k.Report(), h.Report(), tokens.Report(), sequences.Report(), samples}
	}
	want := reports()
	for _, r := range rows {
		for i, m := range r.Mask {
			if m == 0 {
				for _, c := range [][]float64{r.LogProbs, r.Old, r.Reference, r.Advantages, r.Entropy} {
					c[i] = math.NaN()
				}
			}
		}
	}
	if got := reports(); !reflect.DeepEqual(got, want) {
		t.Fatalf("masked tokens changed\n%+v\nto\n%+v", want, got)
	}
}

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
	add    func(items ...T) error
	report func() any // a plain struct
}

// orderFree fails unless items give the same report in any order, however many are added at once.
func orderFree[T any](t *testing.T, items []T, empty func() gathering[T]) {
	t.Helper()
	whole := empty()
	if err := whole.add(items...); err != nil {
		t.Fatal(err)
	}
	want := whole.report()
	noNaN(t, want)
	noNaN(t, empty().report())
	rng := rand.New(rand.NewPCG(7, 8))
	for range 12 {
		rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		total := empty()
		for rest := items; len(rest) > 0; {
			n := 1 + rng.IntN(len(rest))
			if err := total.add(rest[:n]...); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if got := total.report(); !reflect.DeepEqual(got, want) {
			t.Fatalf("parts give\n%+v\nall at once\n%+v", got, want)
		}
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

// accumulator is a pointer to a gathering.
type accumulator[T, A any] interface {
	*A
	Add(...T) error
}

// plain wraps an accumulator with a zero value that is empty.
func plain[T, A any, P accumulator[T, A]](report func(P) any) func() gathering[T] {
	return func() gathering[T] {
		var p P = new(A)
		return gathering[T]{add: p.Add, report: func() any { return report(p) }}
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
		orderFree(t, rows, plain[Row, Entropy](func(e *Entropy) any { return e.Report() }))
	})
	t.Run("kl", func(t *testing.T) {
		orderFree(t, rows, plain[Row, KL](func(k *KL) any { return k.Report() }))
	})
	t.Run("hesitation", func(t *testing.T) {
		orderFree(t, rows, func() gathering[Row] {
			h := &Hesitation{Window: 3}
			return gathering[Row]{add: h.Add, report: func() any { return h.Report() }}
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
			return gathering[Sample]{add: g.Add, report: func() any { return g.Report() }}
		})
	})
}

func TestNoCountDependsOnOrderOrShards(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	draw := func(n int) int { return rng.IntN(n) }
	var chains []Chain
	var tasks [][]float64
	var paths [][]string
	for range 80 {
		chains = append(
			chains, Chain{Prompt: fmt.Sprint(draw(9)), Children: []int{draw(3), draw(2), draw(2), draw(4)}[:draw(5)]},
		)
		tasks = append(tasks, []float64{float64(draw(2)), float64(draw(2))}[:draw(3)])
		paths = append(paths, []string{"a", string(rune('a' + draw(6))), string(rune('a' + draw(6)))}[:draw(4)])
	}
	t.Run("branches", func(t *testing.T) {
		orderFree(t, chains, plain[Chain, Branches](func(b *Branches) any { return b.Report() }))
	})
	t.Run("zero advantage", func(t *testing.T) {
		orderFree(t, tasks, plain[[]float64, ZeroAdvantage](func(z *ZeroAdvantage) any { return z.Report() }))
	})
	t.Run("transitions", func(t *testing.T) {
		orderFree(t, paths, func() gathering[[]string] {
			tr := &Transitions{}
			return gathering[[]string]{
				add: func(items ...[]string) error {
					for _, labels := range items {
						tr.Add(labels...)
					}
					return nil
				},
				report: func() any { return tr.Report(MinFrequency) },
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
		var m Mismatch
		for _, add := range []func(...Row) error{e.Add, k.Add, h.Add, m.Add} {
			if err := add(rows...); err != nil {
				t.Fatal(err)
			}
		}
		samples, err := Samples(rows)
		if err != nil {
			t.Fatal(err)
		}
		return []any{e.Report(), k.Report(), h.Report(), m.Report(), samples}
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

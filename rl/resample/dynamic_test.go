package resample

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// batchOf reads groups off words; a capital is informative.
func batchOf(names string) []Outcome {
	var out []Outcome
	for _, n := range names {
		id := strings.ToLower(string(n))
		out = append(out, Outcome{GroupID: id, Informative: id != string(n)})
	}
	return out
}

func TestDynamicSampling(t *testing.T) {
	for name, tt := range map[string]struct {
		d       DynamicSampling
		step    int
		batches []string
		want    []string // kept after each batch
		filled  int
		done    bool
	}{
		"filled at last": {
			DynamicSampling{Target: 4, Tries: 3}, 0, []string{"aBc", "dEF", "ghi"}, []string{"b", "bef", "befg"}, 1,
			true,
		},
		"informative first": {DynamicSampling{Target: 3, Tries: 1}, 0, []string{"abCdE"}, []string{"cea"}, 1, true},
		"release's order": {
			DynamicSampling{Target: 3, Tries: 1, Fill: FillInOrder}, 0, []string{"abCdE"}, []string{"abc"}, 2, true,
		},
		"enough at once": {DynamicSampling{Target: 2, Tries: 3}, 0, []string{"aBCD"}, []string{"bc"}, 0, true},
		"three by default": {
			DynamicSampling{Target: 9}, 0, []string{"A", "b", "c"}, []string{"a", "a", "ac"}, 1, true,
		},
		"not done": {DynamicSampling{Target: 9}, 0, []string{"Ab"}, []string{"a"}, 0, false},
		"cold start": {
			DynamicSampling{Target: 3, ColdStart: 5}, 4, []string{"aBcd"}, []string{"abc"}, 2, true,
		},
		"after cold start": {DynamicSampling{Target: 3, ColdStart: 5}, 5, []string{"aBcd"}, []string{"b"}, 0, false},
		"nothing informative": {
			DynamicSampling{Target: 2, Tries: 2}, 0, []string{"ab", "cd"}, []string{"", "cd"}, 2, true,
		},
		"empty batch": {DynamicSampling{Target: 2, Tries: 2}, 0, []string{"", "C"}, []string{"", "c"}, 0, true},
	} {
		a := Accumulation{}
		for i, batch := range tt.batches {
			outcomes := batchOf(batch)
			rand.New(rand.NewPCG(uint64(i), 1)).Shuffle(
				len(outcomes), func(i, j int) { outcomes[i], outcomes[j] = outcomes[j], outcomes[i] },
			)
			next, verdicts, err := tt.d.Advance(a, tt.step, outcomes)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(next.Kept, ""); got != tt.want[i] {
				t.Errorf("%s: kept %q after batch %d, want %q", name, got, i, tt.want[i])
			}
			kept := 0
			for _, v := range verdicts {
				if v.Kept {
					kept++
				}
				if v.Kept != (v.Reason == "") || v.Kept != slices.Contains(next.Kept, v.GroupID) {
					t.Errorf("%s: verdict %+v of %v", name, v, next.Kept)
				}
			}
			if len(verdicts) != len(batch) || kept != len(next.Kept)-len(a.Kept) {
				t.Errorf("%s: %d verdicts on %d groups", name, len(verdicts), len(batch))
			}
			a = next
		}
		if a.Done != tt.done || a.Filled != tt.filled || a.Tries != len(tt.batches) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestDynamicSamplingReasons(t *testing.T) {
	_, verdicts, err := DynamicSampling{Target: 1}.Advance(Accumulation{}, 0, batchOf("aBC"))
	if err != nil || fmt.Sprint(verdicts) != "[{a false zero_variance} {b true } {c false dynamic_surplus}]" {
		t.Errorf("%v, %v", verdicts, err)
	}
}

func TestDynamicSamplingRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		d     DynamicSampling
		a     Accumulation
		batch string
	}{
		"target":       {DynamicSampling{}, Accumulation{}, ""},
		"tries":        {DynamicSampling{Target: 1, Tries: -1}, Accumulation{}, ""},
		"fill":         {DynamicSampling{Target: 1, Fill: "any"}, Accumulation{}, ""},
		"done":         {DynamicSampling{Target: 1}, Accumulation{Done: true}, "a"},
		"twice":        {DynamicSampling{Target: 1}, Accumulation{}, "aa"},
		"kept already": {DynamicSampling{Target: 3}, Accumulation{Kept: []string{"a"}}, "a"},
	} {
		if _, _, err := tt.d.Advance(tt.a, 0, batchOf(tt.batch)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestInformative(t *testing.T) {
	if Informative(nil) || Informative([]float64{1}) || Informative([]float64{2, 2}) ||
		!Informative([]float64{1, 1, 0}) {
		t.Error("rewards are informative iff they are not all equal")
	}
}

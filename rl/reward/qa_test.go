package reward

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/words"
)

func TestNormalizeQA(t *testing.T) {
	tests := []struct{ in, want string }{
		{
			"The Eiffel Tower!", "eiffel tower",
		}, {"a", ""}, {"", ""}, {"theatre", "theatre"}, {"A-one", "aone"}, {"U.S.A.", "usa"},
		{
			"an apple  a\tday", "apple day",
		}, {"aé", "aé"}, {"é a é", "é é"}, {"a1", "a1"}, {"don't", "dont"}, {"the_end", "theend"},
		{"“the” end", "“ ” end"}, {
			"x\u00a0y\u3000z\x1fw", "x y z w",
		}, {"a,an,the", "aanthe"}, {"a—b", "—b"}, {"ÉCOLE", "école"},
	}
	for _, tt := range tests {
		if got := NormalizeQA(tt.in); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestQA(t *testing.T) {
	tests := []struct {
		prediction string
		golds      []string
		em, sub    bool
		f1         float64
	}{
		{"Paris", nil, false, false, 0},
		{"Paris", []string{"London", "paris"}, true, true, 1},
		{"in Paris, France", []string{"Paris"}, false, true, 0.5},
		{"Barack Obama", []string{"Michelle", "Barack Hussein Obama"}, false, false, 0.8},
		{"a b b c", []string{"b b b"}, false, false, 2 * (2.0 / 3) * (2.0 / 3) / (4.0 / 3)},
		{"yes", []string{"no"}, false, false, 0},
		{"yes it is", []string{"yes"}, false, true, 0},
		{"noanswer", []string{"no answer"}, false, false, 0},
		{"", []string{"x"}, false, false, 0},
		{"x", []string{""}, false, false, 0},
		{"the", []string{"a"}, false, false, 0},
		{"!!!", []string{"A"}, false, false, 0},
		{"", []string{"A"}, false, false, 0},
		{"(A)", []string{"A"}, true, true, 1},
		{"The.", []string{"the"}, true, true, 1},
		{"!!!", []string{"?"}, false, false, 0},
	}
	for _, tt := range tests {
		if got := ExactMatch(tt.prediction, tt.golds); got != tt.em {
			t.Errorf("EM of %q in %q: %v", tt.prediction, tt.golds, got)
		}
		if got := SubMatch(tt.prediction, tt.golds); got != tt.sub {
			t.Errorf("sub-EM of %q in %q: %v", tt.prediction, tt.golds, got)
		}
		if got := F1(tt.prediction, tt.golds); !near(got, tt.f1) {
			t.Errorf("F1 of %q in %q: %g, want %g", tt.prediction, tt.golds, got, tt.f1)
		}
	}
}

func TestSearchR1(t *testing.T) {
	paris := "<answer> Paris </answer>"
	tests := []struct {
		name, text string
		metric     QAMetric
		want       float64
	}{
		{"right", "so " + paris, "", 1},
		{"right, by name", paris, QAExact, 1},
		{"wrong", "<answer>Rome</answer>", "", 0},
		{"last counts", "<answer>Rome</answer>" + paris, "", 1},
		{"last counts, wrong", paris + "<answer>Rome</answer>", "", 0},
		{"no block", "Paris", "", 0},
		{"no text", "", "", 0},
		{"ten", strings.Repeat(paris, 10), "", 1},
		{"eleven", strings.Repeat(paris, 11), "", 0.25},
		{"eleven openings", strings.Repeat("<answer>", 10) + paris, "", 0.25},
		{"eleven closings", paris + strings.Repeat("</answer>", 10), "", 0},
		{"wrong and sprayed", strings.Repeat("<answer>Rome</answer>", 11), "", 0},
		{"longer", "<answer>Paris, France</answer>", "", 0},
		{"longer, by substring", "<answer>Paris, France</answer>", QASub, 1},
		{"longer, by F1", "<answer>Paris, France</answer>", QAF1, 2.0 / 3},
	}
	for _, tt := range tests {
		got, err := SearchR1{Metric: tt.metric}.Reward(tt.text, []string{"paris"})
		if err != nil || !near(got, tt.want) {
			t.Errorf("%s: %g, %v, want %g", tt.name, got, err, tt.want)
		}
	}
	if _, err := (SearchR1{Metric: "rouge"}).Reward("", nil); err == nil ||
		err.Error() != `Search-R1: metric must be em, sub_em or f1, got "rouge"` {
		t.Errorf("unknown metric: %v", err)
	}
}

func FuzzQA(f *testing.F) {
	for _, seed := range [][2]string{{
		"The Eiffel Tower!", "eiffel tower",
	}, {"", ""}, {"the", "a"}, {"yes", "no"}, {"\xff a", "é"}, {"İ ſ", "i s"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, prediction, gold string) {
		golds := []string{gold}
		f1 := F1(prediction, golds)
		if !(f1 >= 0 && f1 <= 1) || f1 != F1(gold, []string{prediction}) {
			t.Errorf("F1 of %q and %q: %g", prediction, gold, f1)
		}
		if em := ExactMatch(prediction, golds); em && (f1 != 1 || !SubMatch(prediction, golds)) {
			t.Errorf("%q equals %q: F1 %g, sub-EM %v", prediction, gold, f1, SubMatch(prediction, golds))
		}
		if words.Key(prediction) != "" && !ExactMatch(prediction, []string{prediction}) {
			t.Errorf("%q differs from itself", prediction)
		}
		if n := NormalizeQA(prediction); n != strings.Join(
			strings.FieldsFunc(n, isSpace), " ",
		) || strings.ContainsAny(n, words.Punctuation) {
			t.Errorf("%q normalises to %q", prediction, n)
		}
	})
}

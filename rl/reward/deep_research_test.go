package reward

import (
	"strings"
	"testing"

	"github.com/ropewalk/ropewalk/rl/words"
)

const (
	searched = "<search>q</search> <result>\nr\n</result>"
	computed = "<python>print(1)</python> <result>1</result>"
	answered = `<answer>it is \boxed{New York}</answer>`
)

func TestDeepResearch(t *testing.T) {
	tests := []struct {
		name, text string
		want       float64
	}{
		{"answer alone", answered, 1},
		{"search", "<think>a</think>" + searched + answered, 1},
		{"search and python", "<think>a</think>" + searched + computed + answered, 1.1},
		{"calls while thinking", "<think>a" + searched + "b" + computed + "</think>" + answered, 1.1},
		{"partly right", searched + computed + `<answer>\boxed{York}</answer>`, 2.0/3 + 0.1},
		{"wrong", searched + computed + `<answer>\boxed{London}</answer>`, 0},
		{
			"tags in what a tool returned",
			"<search>q</search><result><think></search></python><answer></result>" + answered, 1,
		},
		{"tags in code", "<python>s = '<search><answer>'</python><result>1</result>" + answered, 1},
		{"nested thought", "<think>a<think>b</think></think>" + answered, 1},
		{"no answer", searched, -1},
		{"nothing", "", -1},
		{"two answers", answered + answered, -1},
		{"answer without box", "<answer>New York</answer>", -1},
		{"open box", `<answer>\boxed{New York</answer>`, -1},
		{"box outside", `\boxed{New York}<answer>New York</answer>`, -1},
		{"open answer", `<answer>\boxed{New York}`, -1},
		{"open thought", "<think>a" + answered, -1},
		{"closed twice", "<think>a</think></think>" + answered, -1},
		{"search without result", "<search>q</search>" + answered, -1},
		{"open search", "<search>q<result>r</result>" + answered, -1},
		{"open result", "<search>q</search><result>r" + answered, -1},
		{"two calls, one result", "<search>q</search><python>1</python><result>r</result>" + answered, -1},
		{"result of nothing", "<result>r</result>" + answered, -1},
		{"closing tags alone", "</search></python>" + answered, -1},
	}
	for _, tt := range tests {
		got, err := DeepResearch{}.Score(Trajectory{Text: tt.text, Gold: "new york"}, Outcome{})
		if err != nil || !near(got, tt.want) {
			t.Errorf("%s: %g, %v, want %g", tt.name, got, err, tt.want)
		}
	}
	several := Trajectory{Text: searched + computed + answered, Golds: []string{"London", "New York"}}
	if got, err := (DeepResearch{}).Score(several, Outcome{}); err != nil || got != 1.1 {
		t.Errorf("several golds: %g, %v", got, err)
	}
}

func FuzzReadResearch(f *testing.F) {
	for _, seed := range []string{searched + computed + answered, "<think>" + searched + "</think>" + answered,
		"<answer>", "</think>", "<search></search><result>", `<answer>\boxed{\boxed{}}</answer>`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := ReadResearch(text)
		if r.WellFormed &&
			(!strings.Contains(text, boxOpen+r.Answer+"}") || !strings.Contains(text, answerOpen) ||
				!strings.Contains(text, answerClose)) {
			t.Errorf("%q: %+v", text, r)
		}
		if !r.WellFormed && r.Answer != "" {
			t.Errorf("%q is malformed and answers %q", text, r.Answer)
		}
		if r.Searches > strings.Count(text, "</search>") || r.Python > strings.Count(text, "</python>") ||
			r.Searches+r.Python > strings.Count(text, "</result>") {
			t.Errorf("%q: %+v", text, r)
		}
		if words.Key(r.Answer) == "" {
			return // nothing equals it
		}
		got, err := DeepResearch{}.Score(Trajectory{Text: text, Gold: r.Answer}, Outcome{})
		if want := -1.0; err != nil || r.WellFormed && got < 1 || !r.WellFormed && got != want {
			t.Errorf("%q against its own answer: %g, %v", text, got, err)
		}
	})
}

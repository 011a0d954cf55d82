package reward

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPRS(t *testing.T) {
	clean := Facts{Turns: 2, Calls: 2, ParsedCalls: 2, ExecutedCalls: 2, Answered: true}
	with := func(change func(*Facts)) Facts {
		f := clean
		change(&f)
		return f
	}
	tests := []struct {
		name      string
		prs       PRS
		facts     Facts
		answer    string
		judgement Judgement
		want      PRSParts
	}{
		{"all right", PRS{}, clean, "New York City", "", PRSParts{1, 0.1, 0, 1, 2.1}},
		{"shorter answer", PRS{}, clean, "New York", "", PRSParts{1, 0.1, 0, math.Exp(-0.5), 1.1 + math.Exp(-0.5)}},
		{"wrong answer", PRS{}, clean, "London", "", PRSParts{1, 0.1, 0, 0, 1.1}},
		{
			"no answer", PRS{}, with(func(f *Facts) { f.Answered = false }), "New York City", "",
			PRSParts{0, 0.1, 0, 0, 0.1},
		},
		{
			"unread call", PRS{}, with(func(f *Facts) { f.ParsedCalls, f.ExecutedCalls = 1, 1 }), "New York City", "",
			PRSParts{-1, 0.1, 0, 1, -0.9},
		},
		{
			"failed call", PRS{}, with(func(f *Facts) { f.ExecutedCalls = 1 }), "New York City", "",
			PRSParts{-1, 0.1, 0, 1, -0.9},
		},
		{
			"failed call, parsing is enough", PRS{ParsedOnly: true}, with(func(f *Facts) { f.ExecutedCalls = 1 }),
			"New York City", "", PRSParts{1, 0.1, 0, 1, 2.1},
		},
		{
			"malformed turn", PRS{}, with(func(f *Facts) { f.MalformedTurns = 1 }), "New York City", "",
			PRSParts{1, 0, 0, 1, 2},
		},
		{"no calls", PRS{}, Facts{Turns: 1, Answered: true}, "New York City", "", PRSParts{1, 0.1, 0, 1, 2.1}},
		{"nothing", PRS{}, Facts{}, "", "", PRSParts{0, 0, 0, 0, 0}},
		{"long, match", PRS{Form: PRSLong}, clean, "New York City", Match, PRSParts{1, 0.1, 1, 1, 3.1}},
		{"long, mismatch", PRS{Form: PRSLong}, clean, "New York City", Mismatch, PRSParts{1, 0.1, 0, 1, 1.1}},
		{
			"long, stage not reached", PRS{Form: PRSLong}, with(func(f *Facts) { f.Answered = false }), "", Match,
			PRSParts{0, 0.1, 1, 0, 0.1},
		},
		{
			"smoothed", PRS{BLEU: BLEU{Smoothing: 0.1}}, clean, "London", "",
			PRSParts{1, 0.1, 0, 0.1 * math.Exp(-2), 1.1 + 0.1*math.Exp(-2)},
		},
	}
	for _, tt := range tests {
		got, err := tt.prs.Reward(tt.facts, tt.answer, []string{"new york city"}, tt.judgement)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if !near(got.Process, tt.want.Process) || !near(got.Format, tt.want.Format) ||
			!near(got.Judge, tt.want.Judge) || !near(got.Answer, tt.want.Answer) ||
			!near(got.Total, tt.want.Total) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestPRSRefuses(t *testing.T) {
	tests := []struct {
		name      string
		prs       PRS
		facts     Facts
		judgement Judgement
		want      string
	}{
		{"form", PRS{Form: "medium"}, Facts{}, "", `PRS: form must be prs_short or prs_long, got "medium"`},
		{
			"smoothing", PRS{BLEU: BLEU{Smoothing: math.NaN()}}, Facts{}, "",
			"BLEU: smoothing must be in [0, 1), got NaN",
		},
		{"facts", PRS{}, Facts{Calls: -1}, "", "read facts: calls must not be negative, got -1"},
		{"judgement", PRS{Form: PRSLong}, Facts{}, "", `judgement must be match or mismatch, got ""`},
	}
	for _, tt := range tests {
		if _, err := tt.prs.Reward(tt.facts, "", nil, tt.judgement); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

// A stage reached never pays less than one that was not, whatever the format.
func TestStagesAreOrdered(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 1000 {
		a, b, low := rng.Float64(), rng.Float64(), 0.1*float64(rng.IntN(2))
		if !(ShortPRS(-1, 0.1, a) < ShortPRS(0, low, b) && ShortPRS(0, 0.1, a) < ShortPRS(1, low, b)) {
			t.Fatalf("short: %g, %g", a, b)
		}
		if !(LongPRS(0, 0.1, 1, a) < LongPRS(1, low, 0, b) && LongPRS(1, 0.1, 0, 1) <= LongPRS(1, low, 1, b)+0.1) {
			t.Fatalf("long: %g, %g", a, b)
		}
	}
}

func TestGeneralPRS(t *testing.T) {
	tests := []struct {
		stages, thresholds []float64
		want               float64
	}{
		{[]float64{-3}, nil, -3},
		{[]float64{1, 0}, []float64{1}, 1.5},
		{[]float64{0.999, 0}, []float64{1}, 0.999},
		{[]float64{1, 0, 0, 0}, []float64{1, 0, 1}, 2},
		{[]float64{1, -1e6, 0}, []float64{0, -1e7}, 1.5},
		{[]float64{1, 1e6}, []float64{math.Inf(-1)}, 2},
	}
	for _, tt := range tests {
		got, err := GeneralPRS(tt.stages, tt.thresholds)
		if err != nil || !near(got, tt.want) {
			t.Errorf("%v over %v: %g, %v, want %g", tt.stages, tt.thresholds, got, err, tt.want)
		}
	}
}

func TestGeneralPRSRefuses(t *testing.T) {
	tests := []struct {
		stages, thresholds []float64
		want               string
	}{
		{nil, nil, "general PRS: 0 stages need one threshold fewer, got 0"},
		{[]float64{1}, []float64{1}, "general PRS: 1 stages need one threshold fewer, got 1"},
		{[]float64{1, math.NaN()}, []float64{2}, "general PRS: stage 1 is NaN"},
		{[]float64{math.Inf(1)}, nil, "general PRS: stage 0 is +Inf"},
		{[]float64{1, 1}, []float64{math.NaN()}, "general PRS: threshold 0 is NaN"},
	}
	for _, tt := range tests {
		if _, err := GeneralPRS(tt.stages, tt.thresholds); err == nil || err.Error() != tt.want {
			t.Errorf("%v over %v: %v, want %s", tt.stages, tt.thresholds, err, tt.want)
		}
	}
}

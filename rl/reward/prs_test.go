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
	short, long := prsShortReward{}, prsLongReward{}
	tests := []struct {
		name      string
		reward    Scorer
		facts     Facts
		answer    string
		judgement Judgement
		want      float64
	}{
		{"all right", short, clean, "New York City", "", 2.1},
		{"shorter answer", short, clean, "New York", "", 1.1 + math.Exp(-0.5)},
		{"wrong answer", short, clean, "London", "", 1.1},
		{"no answer", short, with(func(f *Facts) { f.Answered = false }), "New York City", "", 0.1},
		{
			"unread call", short, with(func(f *Facts) { f.ParsedCalls, f.ExecutedCalls = 1, 1 }), "New York City", "",
			-0.9,
		},
		{"failed call", short, with(func(f *Facts) { f.ExecutedCalls = 1 }), "New York City", "", -0.9},
		{"malformed turn", short, with(func(f *Facts) { f.MalformedTurns = 1 }), "New York City", "", 2},
		{"no calls", short, Facts{Turns: 1, Answered: true}, "New York City", "", 2.1},
		{"nothing", short, Facts{}, "", "", 0},
		{"long, match", long, clean, "New York City", Match, 3.1},
		{"long, mismatch", long, clean, "New York City", Mismatch, 1.1},
		{"long, stage not reached", long, with(func(f *Facts) { f.Answered = false }), "", Match, 0.1},
		{"smoothed", prsShortReward{SmoothedBLEU: true}, clean, "London", "", 1.1 + 0.1*math.Exp(-2)},
	}
	for _, tt := range tests {
		got, err := tt.reward.Score(Trajectory{Facts: tt.facts, Answer: tt.answer, Gold: "new york city",
			Answered: tt.facts.Answered, Judgement: tt.judgement}, Outcome{})
		if err != nil || !near(got, tt.want) {
			t.Errorf("%s: %g, %v, want %g", tt.name, got, err, tt.want)
		}
	}
}

func TestPRSRefuses(t *testing.T) {
	for want, trajectory := range map[string]Trajectory{
		"read facts: calls must not be negative, got -1":     {Facts: Facts{Calls: -1}},
		`judgement must be match or mismatch, got "perhaps"`: {Judgement: "perhaps"},
	} {
		for _, s := range []Scorer{prsShortReward{}, prsLongReward{}, prsGeneralReward{}} {
			if _, err := s.Score(trajectory, Outcome{}); err == nil || err.Error() != want {
				t.Errorf("%T: %v, want %s", s, err, want)
			}
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

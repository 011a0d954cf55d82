package diagnose

import (
	"errors"
	"math"
	"testing"
)

// Two groups: one without variance, one with a success that has a failed call. Both samples of the second group start
// from the state "a" with different returns.
func TestProperties(t *testing.T) {
	var p Properties
	nan := math.NaN()
	err := p.Add(
		Sampled{Group: "0", Calls: 1, Turns: []SampledTurn{{Anchor: "a", Valid: true, Entropy: 1}}},
		Sampled{Group: "0", Calls: 1, Turns: []SampledTurn{{Anchor: "a", Entropy: 1}}},
		Sampled{Group: "1", Reward: 1, Success: true, Calls: 4, Failed: 1, Turns: []SampledTurn{
			{Anchor: "a", Return: 0.95, Valid: true, Entropy: 3}, {Anchor: "b", Return: 1, Valid: true, Entropy: 2},
			{Anchor: "c", Return: 1, Valid: true, Entropy: 1}}},
		Sampled{Group: "1", Calls: 2, Failed: 2, Turns: []SampledTurn{{Anchor: "a", Valid: true, Entropy: nan}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Report()
	if err != nil {
		t.Fatal(err)
	}
	want := PropertyReport{Trajectories: 4, Groups: 2, Turns: 6, Calls: 8, PositiveCalls: 4, ZeroVariance: 0.5,
		FailedInPositive: 0.25, Success: 0.25, Compared: 2.0 / 6, Invalid: 1.0 / 6, CallsPerTrajectory: 2,
		ConsecutiveHigh: 0.5, AnchorsKnown: true, EntropiesKnown: true} // the mean of first turns is 5/3
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if again, _ := p.Report(); again != want {
		t.Errorf("a second report differs: %+v", again)
	}
	reached := ""
	for _, property := range got.List() {
		if property.Reached() {
			reached += property.For + ";"
		}
	}
	if reached != "RoC;" {
		t.Errorf("reached %s", reached)
	}
	for _, bad := range []Sampled{{Reward: nan}, {Calls: -1}, {Failed: 1},
		{Turns: []SampledTurn{{Return: math.Inf(1)}}}, {Turns: []SampledTurn{{Entropy: math.Inf(1)}}}} {
		if err := p.Add(Sampled{Group: "2"}, bad); !errors.Is(err, ErrBadInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if after, _ := p.Report(); after != want {
		t.Errorf("refused trajectories were added: %+v", after)
	}
	var empty Properties
	none, err := empty.Report()
	if err != nil || none != (PropertyReport{}) {
		t.Errorf("no trajectories: %+v, %v", none, err)
	}
	for _, property := range none.List() {
		if property.Known || property.Reached() {
			t.Errorf("%s is known without data", property.Name)
		}
	}
}

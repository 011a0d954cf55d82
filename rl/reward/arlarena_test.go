package reward

import (
	"math"
	"reflect"
	"testing"
)

func TestArenaOutcomes(t *testing.T) {
	for name, pair := range map[string][2]float64{
		"Sokoban, step":         {SokobanMove{}.Reward(), -0.1},
		"Sokoban, on target":    {SokobanMove{OnTarget: 1}.Reward(), 0.9},
		"Sokoban, off target":   {SokobanMove{OffTarget: 1}.Reward(), -1.1},
		"Sokoban, the last box": {SokobanMove{OnTarget: 1, Solved: true}.Reward(), 10.9},
		"maths, right":          {GradeLastBox(`\boxed{1} so \boxed{0.5}`, "1/2", Options{}).Reward, 1},
		"maths, wrong":          {GradeLastBox(`\boxed{0.5} so \boxed{1}`, "1/2", Options{}).Reward, 0},
		"maths, no box":         {GradeLastBox(`<answer>1/2</answer>`, "1/2", Options{}).Reward, 0},
		"rStar2, box outside":   {RStar2{}.Reward(`<answer>\boxed{1}</answer>\boxed{2}`, "2").Reward, 0},
		"rStar2, the whole text": {
			RStar2{WholeText: true}.Reward(`<answer>\boxed{1}</answer>\boxed{2}`, "2").Reward, 1,
		},
		"rStar2, fallback":         {RStar2{Options: Options{Fallback: true}}.Reward(`\boxed{2}`, "2").Reward, 1},
		"rStar2, without fallback": {RStar2{}.Reward(`\boxed{2}`, "2").Reward, 0},
	} {
		if !near(pair[0], pair[1]) {
			t.Errorf("%s: %g, want %g", name, pair[0], pair[1])
		}
	}
}

func TestTurnRewards(t *testing.T) {
	paid, valid := LastTurn(10, 3), []bool{true, false, false}
	tests := []struct {
		rewards TurnRewards
		want    []float64
	}{
		{TurnRewards{}, []float64{0, -0.1, 9.9}},
		{TurnRewards{Penalty: 0.5}, []float64{0, -0.5, 9.5}},
		{TurnRewards{WithoutPenalty: true}, []float64{0, 0, 10}},
	}
	for _, tt := range tests {
		if got, err := tt.rewards.Rows(paid, valid); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v: %v, %v", tt.rewards, got, err)
		}
	}
	if !reflect.DeepEqual(paid, []float64{0, 0, 10}) {
		t.Errorf("what was paid has changed: %v", paid)
	}
	if got, err := (TurnRewards{}).Rows(LastTurn(10, 0), nil); err != nil || len(got) != 0 {
		t.Errorf("no turns: %v, %v", got, err)
	}
}

func TestTurnRewardsRefuse(t *testing.T) {
	tests := []struct {
		rewards TurnRewards
		paid    []float64
		valid   []bool
		want    string
	}{
		{TurnRewards{Penalty: -1}, nil, nil, "turn rewards: penalty must be finite and not negative, got -1"},
		{TurnRewards{Penalty: math.NaN()}, nil, nil, "turn rewards: penalty must be finite and not negative, got NaN"},
		{TurnRewards{Penalty: 1, WithoutPenalty: true}, nil, nil, "turn rewards: penalty is 1, and penalties are off"},
		{TurnRewards{}, []float64{1}, nil, "turn rewards: 1 rewards and 0 validities"},
		{TurnRewards{}, []float64{1, math.NaN()}, []bool{true, true}, "turn rewards: turn 1 has NaN"},
	}
	for _, tt := range tests {
		if _, err := tt.rewards.Rows(tt.paid, tt.valid); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v, want %s", tt.rewards, err, tt.want)
		}
	}
}

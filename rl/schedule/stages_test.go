package schedule

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// The paper's three stages, step by step where something changes.
func ExampleStages() {
	stages := RStar2()
	for _, step := range []int{0, 299, 300, 384, 385, 386, 509} {
		at, err := stages.At(step)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%3d %-7s +%-3d response %d, enters %v\n", step, at.Stage.Name, at.Step, at.Stage.MaxResponse, at.Enters)
	}
	// Output:
	//   0 concise +0   response 8192, enters false
	// 299 concise +299 response 8192, enters false
	// 300 longer  +0   response 12288, enters true
	// 384 longer  +84  response 12288, enters false
	// 385 hard    +0   response 12288, enters true
	// 386 hard    +1   response 12288, enters false
	// 509 hard    +124 response 12288, enters false
}

func TestStagesInheritWhatTheyDoNotSet(t *testing.T) {
	stages := Stages{
		{Name: "a", MaxResponse: 10},
		{Name: "b", FirstStep: 5, LearningRate: 1e-5},
		{Name: "c", FirstStep: 9, MaxResponse: 20, ResetOptimizer: true},
		{Name: "d", FirstStep: 12, Filter: ProblemFilter{Samples: 8}},
	}
	tests := []struct {
		step, index, response int
		rate                  float64
		reset, filter         bool
	}{
		{4, 0, 10, 0, false, false},
		{5, 1, 10, 1e-5, false, false},
		{9, 2, 20, 1e-5, true, false},
		{99, 3, 20, 1e-5, false, true}, // transitions are not inherited
	}
	for _, tt := range tests {
		at, err := stages.At(tt.step)
		if err != nil {
			t.Fatal(err)
		}
		s := at.Stage
		if at.Index != tt.index || s.MaxResponse != tt.response || s.LearningRate != tt.rate || s.ResetOptimizer != tt.reset || s.Filter.Active() != tt.filter {
			t.Errorf("step %d: %+v", tt.step, at)
		}
	}
	if stages[1].MaxResponse != 0 {
		t.Error("the schedule itself was changed")
	}
}

func TestEachLaterStageIsEnteredOnce(t *testing.T) {
	stages, entered := RStar2(), 0
	for step := range 510 {
		at, err := stages.At(step)
		if err != nil {
			t.Fatal(err)
		}
		if at.Enters {
			entered++
		}
	}
	if entered != len(stages)-1 {
		t.Fatalf("%d stages were entered, want %d", entered, len(stages)-1)
	}
}

func TestStagesRefuse(t *testing.T) {
	tests := []struct {
		stages Stages
		field  string
	}{
		{nil, "at least one"},
		{Stages{{FirstStep: 1}}, "first_step"},
		{Stages{{}, {FirstStep: 3}, {FirstStep: 3}}, "stage 2"},
		{Stages{{MaxResponse: -1}}, "max_response"},
		{Stages{{}, {FirstStep: 2, LearningRate: math.NaN()}}, "learning_rate"},
		{Stages{{ResetOptimizer: true}}, "reset_optimizer"},
		{Stages{{}, {FirstStep: 2, Filter: ProblemFilter{Samples: 4, MinCorrect: 5}}}, "filter: min_correct"},
		{Stages{{}, {FirstStep: 2, Filter: ProblemFilter{Samples: -1}}}, "filter: samples"},
		{Stages{{}, {FirstStep: 2, Filter: ProblemFilter{MinCorrect: 1}}}, "filter: min_correct"},
		{Stages{{Filter: ProblemFilter{Samples: 8}}}, "belong between"},
	}
	for _, tt := range tests {
		if _, err := tt.stages.At(0); err == nil || !strings.Contains(err.Error(), tt.field) {
			t.Errorf("%+v: error %v does not name %s", tt.stages, err, tt.field)
		}
	}
	if _, err := RStar2().At(-1); err == nil {
		t.Error("step -1 was accepted")
	}
}

package schedule

import (
	"reflect"
	"testing"

	"github.com/ropewalk/ropewalk/rl/choice"
)

func TestStagesBegun(t *testing.T) {
	s := Stages{List: []Stage{{FromStep: 1, MaxTokens: 8192}, {FromStep: 300, MaxTokens: 12288}, {FromStep: 385}}}
	for step, want := range map[int]int{0: 0, 1: 1, 299: 1, 300: 2, 384: 2, 385: 3, 510: 3} {
		if got := s.Begun(step); !reflect.DeepEqual(got, s.List[:want]) {
			t.Errorf("step %d: %d stages have begun, want %d", step, len(got), want)
		}
	}
	if got := (Stages{}).Begun(7); len(got) != 0 {
		t.Errorf("without stages, %v have begun", got)
	}
}

func TestStagesRise(t *testing.T) {
	const doc = "from_step rises from stage to stage"
	for want, list := range map[string][]Stage{
		"": {{FromStep: 1}, {FromStep: 2}},
		"from_step must rise from stage to stage, got 3 after 3": {{FromStep: 1}, {FromStep: 3}, {FromStep: 3}},
		"from_step must rise from stage to stage, got 1 after 4": {{FromStep: 4}, {FromStep: 1}},
	} {
		if got := stages.Fault("stages", doc, choice.Params{"stages": list}); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
	if got := stages.Fault("stages", doc, nil); got != "" {
		t.Errorf("without stages: %q", got)
	}
}

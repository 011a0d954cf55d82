package scheduler

import (
	"fmt"
	"testing"
)

func TestCapacity(t *testing.T) {
	for _, tt := range []struct {
		blocks, size int
		safety       float64
		want         int
		ok           bool
	}{{1000, 16, DefaultSafety, 14400, true}, {0, 16, 1, 0, true}, {3, 3, 0.5, 4, true}, {1, 1, 0, 0, false},
		{1, 1, 1.1, 0, false}, {-1, 1, 1, 0, false}} {
		if got, err := Capacity(tt.blocks, tt.size, tt.safety); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%+v: %d, %v", tt, got, err)
		}
	}
	for _, tt := range [][3]int{{100, 30, 3}, {90, 30, 3}, {29, 30, 0}, {-5, 30, 0}, {100, 0, 0}} {
		if got := SafeRollouts(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%d tokens hold %d rollouts of %d", tt[0], got, tt[1])
		}
	}
}

func TestSpread(t *testing.T) {
	if got := fmt.Sprint(apart([]string{"a", "a", "a", "b", "c", "c"})); got != "[0 3 4 1 5 2]" {
		t.Errorf("order %s", got)
	}
	if got := apart[int](nil); len(got) != 0 {
		t.Errorf("order %v of nothing", got)
	}
}

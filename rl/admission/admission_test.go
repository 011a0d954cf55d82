package admission

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	if got := fmt.Sprint(Spread([]string{"a", "a", "a", "b", "c", "c"})); got != "[0 3 4 1 5 2]" {
		t.Errorf("order %s", got)
	}
	if got := Spread(nil); len(got) != 0 {
		t.Errorf("order %v of nothing", got)
	}
}

func TestRanks(t *testing.T) {
	// 70 and 80 tokens both hold two rollouts of 30: the tie goes to the lower engine, unless tokens count.
	for rank, want := range map[Rank]string{"": "[0 1 0 1]", FreeTokens: "[1 0 1 0]"} {
		s, err := NewScheduler(rank, []int{70, 80}, 30)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			if err := s.Enqueue(i, 30); err != nil {
				t.Fatal(err)
			}
		}
		var engines []int
		for _, p := range s.Admit() {
			engines = append(engines, p.Engine)
		}
		if fmt.Sprint(engines) != want {
			t.Errorf("rank %q: engines %v, want %s", rank, engines, want)
		}
		if first, again := s.Waiting(); first != 2 || again != 0 {
			t.Errorf("%d and %d wait", first, again)
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestHeadIsNotOvertaken(t *testing.T) {
	s, err := NewScheduler("", []int{50}, 0)
	must(t, err, s.Enqueue(0, 30), s.Enqueue(1, 40), s.Enqueue(2, 10))
	if got := fmt.Sprint(s.Admit()); got != "[{0 0 false}]" {
		t.Errorf("placed %s: the third fits but comes after the second", got)
	}
	must(t, s.Tighten(0, 10))
	if got := fmt.Sprint(s.Admit()); got != "[{1 0 false}]" || s.Reserved()[0] != 50 {
		t.Errorf("placed %s, %v reserved", got, s.Reserved())
	}
	must(t, s.Finish(1))
	if got := fmt.Sprint(s.Admit()); got != "[{2 0 false}]" {
		t.Errorf("placed %s", got)
	}
}

func TestParkedComeBackFirstAndToTheirEngine(t *testing.T) {
	s, err := NewScheduler("", []int{30, 30}, 30)
	must(t, err)
	for i := range 5 {
		must(t, s.Enqueue(i, 30))
	}
	s.Admit() // 0 on engine 0, 1 on engine 1
	must(t, s.Park(0))
	if got := fmt.Sprint(s.Admit()); got != "[{2 0 false}]" {
		t.Errorf("the room of a parked rollout goes to %s", got)
	}
	must(t, s.Return(0), s.Finish(2))
	if got := fmt.Sprint(s.Admit()); got != "[{0 0 true}]" {
		t.Errorf("placed %s: who comes back goes before the queue", got)
	}
	must(t, s.Park(0), s.Finish(0), s.Finish(1))
	if got := fmt.Sprint(s.Admit()); got != "[{3 0 false} {4 1 false}]" {
		t.Errorf("placed %s", got)
	}
	must(t, s.Park(3), s.Return(3), s.Finish(3), s.Finish(4))
	if s.Admit() != nil || fmt.Sprint(s.Reserved()) != "[0 0]" {
		t.Errorf("%v reserved, and no request holds a place", s.Reserved())
	}
}

func TestSchedulerRefuses(t *testing.T) {
	for name, make := range map[string]func() (*Scheduler, error){
		"rank":    func() (*Scheduler, error) { return NewScheduler("x", []int{1}, 0) },
		"engines": func() (*Scheduler, error) { return NewScheduler("", nil, 0) },
		"small":   func() (*Scheduler, error) { return NewScheduler("", []int{90, 29}, 30) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s, err := NewScheduler("", []int{50}, 30)
	must(t, err, s.Enqueue(1, 30))
	for name, err := range map[string]error{
		"queued": s.Enqueue(1, 30), "large": s.Enqueue(2, 51), "empty": s.Enqueue(2, 0),
		"finish": s.Finish(1), "park": s.Park(9), "return": s.Return(1), "tighten": s.Tighten(1, 1),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s.Admit()
	must(t, s.Park(1))
	for name, err := range map[string]error{"placed": s.Enqueue(1, 30), "parked twice": s.Park(1),
		"tightened": s.Tighten(1, 5)} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSimulateHoldsOrReleasesDuringTools(t *testing.T) {
	// One engine for one rollout at a time. The first calls a tool for 10 s after 1 s.
	rollouts := []Rollout{
		{Reservation: 30, Prompt: 5, Segments: []Segment{{Seconds: 1, Tokens: 5, Tool: 10}, {Seconds: 1, Tokens: 2}}},
		{Reservation: 30, Segments: []Segment{{Seconds: 4, Tokens: 8}}},
	}
	for name, tt := range map[string]struct {
		settings Settings
		trace    string
		makespan float64
		parked   int
		again    int
		idle     float64
	}{
		"held": {Settings{}, "[{0 0 0 false} {12 1 0 false}]", 16, 0, 0, 10.0 / 16},
		"released": {
			Settings{ReleaseOnTool: true, Park: 2}, "[{0 0 0 false} {3 1 0 false} {11 0 0 true}]", 12, 1, 10, 6.0 / 12,
		},
		"prefill": {
			Settings{ReleaseOnTool: true, Park: 2, Recompute: 5}, "[{0 0 0 false} {3 1 0 false} {11 0 0 true}]", 14, 1,
			10, 6.0 / 14,
		},
		"short": {Settings{ReleaseOnTool: true, Park: 10}, "[{0 0 0 false} {12 1 0 false}]", 16, 0, 0, 10.0 / 16},
	} {
		trace, m, err := Simulate(tt.settings, []int{40}, rollouts)
		must(t, err)
		if fmt.Sprint(trace) != tt.trace || m.Makespan != tt.makespan || m.Parked != tt.parked ||
			m.Recomputed != tt.again {
			t.Errorf("%s: %v, %+v", name, trace, m)
		}
		if math.Abs(m.Idle[0]-tt.idle) > 1e-12 || m.Evictions != 0 || m.MaxWait != trace[1].Time ||
			m.MeanWait != trace[1].Time/2 {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestStaticEvictsHalf(t *testing.T) {
	// Four rollouts grow together by 10 tokens a second; 100 tokens are full after 2.5 s, when two
	// are left, who end after 4 s with 80. The two others begin again.
	var rollouts []Rollout
	for range 4 {
		rollouts = append(rollouts, Rollout{Reservation: 40, Segments: []Segment{{Seconds: 4, Tokens: 40}}})
	}
	trace, m, err := SimulateStatic([]int{100}, rollouts)
	must(t, err)
	if fmt.Sprint(trace) != "[{0 0 0 false} {0 1 0 false} {0 2 0 false} {0 3 0 false} {4 2 0 true} {4 3 0 true}]" {
		t.Errorf("trace %v", trace)
	}
	if m.Makespan != 8 || m.Evictions != 2 || m.Recomputed != 50 || m.Idle[0] != 0 || m.MaxWait != 0 {
		t.Errorf("%+v", m)
	}
	_, m, err = SimulateStatic([]int{80, 80}, rollouts)
	must(t, err)
	if m.Makespan != 4 || m.Evictions != 0 || m.Recomputed != 0 || math.Abs(m.Reserved[1]-0.5) > 1e-12 {
		t.Errorf("two engines: %+v", m)
	}
	for name, bad := range map[string][]int{"no engine": nil, "small": {39}} {
		if _, _, err := SimulateStatic(bad, rollouts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// workload is random rollouts with a few long ones, as agents have them.
func workload(rng *rand.Rand, n int) []Rollout {
	out := make([]Rollout, n)
	for i := range out {
		r := Rollout{Reservation: 2000, Prompt: 100}
		for range 1 + rng.IntN(5) {
			tokens := 20 + rng.IntN(100)
			if rng.IntN(5) == 0 {
				tokens += 200
			}
			r.Segments = append(
				r.Segments, Segment{Seconds: float64(tokens) / 50, Tokens: tokens, Tool: 3 * rng.Float64()},
			)
		}
		out[i] = r
	}
	return out
}

// Whatever the workload, every rollout is placed, no engine is overbooked, and nothing is evicted.
func TestSimulateInvariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 60 {
		capacity := []int{4000 + rng.IntN(9000), 4000 + rng.IntN(9000), 4000 + rng.IntN(9000)}
		rollouts := workload(rng, 1+rng.IntN(60))
		settings := Settings{
			ReleaseOnTool: rng.IntN(2) == 0, Park: rng.Float64(), Recompute: 1000,
			Rank: []Rank{FreeSlots, FreeTokens}[rng.IntN(2)],
		}
		trace, m, err := Simulate(settings, capacity, rollouts)
		must(t, err)
		first, homes, again := map[int]bool{}, map[int]int{}, 0
		for i, p := range trace {
			if i > 0 && p.Time < trace[i-1].Time {
				t.Fatal("the trace goes back in time")
			}
			if p.Again {
				again++
				if homes[p.Rollout] != p.Engine {
					t.Fatalf("rollout %d moved", p.Rollout)
				}
				continue
			}
			first[p.Rollout], homes[p.Rollout] = true, p.Engine
		}
		if len(first) != len(rollouts) || m.Evictions != 0 || again > m.Parked ||
			!settings.ReleaseOnTool && m.Parked > 0 {
			t.Fatalf("%d of %d placed, %+v", len(first), len(rollouts), m)
		}
		for e := range capacity {
			if m.Reserved[e] < 0 || m.Reserved[e] > 1+1e-12 || m.Idle[e] < -1e-12 || m.Idle[e] > 1 {
				t.Fatalf("engine %d: %+v", e, m)
			}
		}
		other, _, err := Simulate(settings, capacity, rollouts)
		must(t, err)
		if !slices.Equal(other, trace) {
			t.Fatal("the same rollouts are placed otherwise")
		}
		static, sm, err := SimulateStatic(capacity, rollouts)
		must(t, err)
		if len(static) != len(rollouts)+sm.Evictions {
			t.Fatalf("static: %d placements of %d rollouts, %d evictions", len(static), len(rollouts), sm.Evictions)
		}
	}
}

func TestSimulateDegenerate(t *testing.T) {
	trace, m, err := Simulate(Settings{}, []int{10}, nil)
	must(t, err)
	if len(trace) != 0 || m.Makespan != 0 || m.Idle[0] != 1 || m.MeanWait != 0 {
		t.Errorf("no rollouts: %v, %+v", trace, m)
	}
	trace, m, err = Simulate(Settings{}, []int{10}, []Rollout{{Reservation: 10}, {Reservation: 10}})
	must(t, err)
	if len(trace) != 2 || m.Makespan != 0 {
		t.Errorf("rollouts without segments: %v, %+v", trace, m)
	}
	good := []Rollout{{Reservation: 10}}
	for name, tt := range map[string]struct {
		settings Settings
		capacity []int
		rollouts []Rollout
	}{
		"park":        {Settings{Park: -1}, []int{10}, good},
		"recompute":   {Settings{Recompute: math.NaN()}, []int{10}, good},
		"small":       {Settings{}, []int{10, 9}, good},
		"none fits":   {Settings{SkipSmall: true}, []int{9}, good},
		"reservation": {Settings{}, []int{10}, []Rollout{{Reservation: 5, Prompt: 6}}},
		"seconds":     {Settings{}, []int{10}, []Rollout{{Reservation: 5, Segments: []Segment{{Seconds: math.NaN()}}}}},
	} {
		if _, _, err := Simulate(tt.settings, tt.capacity, tt.rollouts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

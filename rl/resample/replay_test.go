package resample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// groupOf makes one group of trajectories of one row; a row's advantage is its reward less the mean.
func groupOf(id string, rewards ...float64) []ReplayRow {
	mean, _ := advantage.Moments(rewards)
	var rows []ReplayRow
	for i, r := range rewards {
		rows = append(
			rows,
			ReplayRow{GroupID: id, TrajectoryID: fmt.Sprint(id, "/", i), Reward: r, Advantage: r - mean, ToolCalls: i},
		)
	}
	return rows
}

func mustAdvance(t *testing.T, r Replay, b Buffer, step int, rows []ReplayRow, source *rand.Rand) (Buffer, Replayed) {
	t.Helper()
	before := fmt.Sprint(b)
	next, out, err := r.Advance(b, step, rows, source)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(b) != before {
		t.Fatal("Advance changed the buffer that it was given")
	}
	fates := map[Fate]int{}
	for _, v := range out.Verdicts {
		fates[v.Fate]++
		if (v.Reason == "") != (v.Fate == Stored || v.Fate == Imitated) {
			t.Fatalf("verdict %+v has fate and reason that disagree", v)
		}
	}
	left := len(b.Entries) - fates[Imitated] - fates[Retired]
	if fates[Stored]+fates[Passed] != len(rows) || len(next.Entries) != left+fates[Stored] ||
		out.Stored != fates[Stored] ||
		out.Imitated != fates[Imitated] {
		t.Fatalf("of %d rows and %d entries: fates %v, %d entries", len(rows), len(b.Entries), fates, len(next.Entries))
	}
	return next, out
}

// The same steps in the paper's and in the release's order.
func TestReplayOrders(t *testing.T) {
	steps := [][]ReplayRow{groupOf("a", 1, -1), groupOf("b", 3, 1), groupOf("c", 9, 7)}
	for _, tt := range []struct {
		order    ReplayOrder
		consumed bool
		p50      float64
		imitated int
		left     int
		last     Reason
	}{
		// The new mean 8 is in the queue {0, 2, 8}: only 3 beats the median 2. 9 is not stored.
		{OrderPaper, true, 2, 1, 0, ReplayStep},
		// Judged by {0, 2}; both 1 and 3 are above 1? 1 is not. 9 is stored always.
		{OrderRelease, true, 1, 1, 1, ""},
	} {
		r, b, out := Replay{Capacity: 2, Baselines: 10, Order: tt.order}, Buffer{}, Replayed{}
		for i, rows := range steps {
			b, out = mustAdvance(t, r, b, i+1, rows, nil)
			if i < 2 && (out.Consumed || out.Stored != 1) {
				t.Errorf("%s, step %d: %+v", tt.order, i+1, out)
			}
		}
		if out.Consumed != tt.consumed || out.P50 != tt.p50 || out.Imitated != tt.imitated ||
			len(b.Entries) != tt.left {
			t.Errorf("%s: %+v, left %v", tt.order, out, b.Entries)
		}
		nine := out.Verdicts[2]
		if nine.Entry.Reward != 9 || nine.Reason != tt.last {
			t.Errorf("%s: the step's positive became %+v", tt.order, nine)
		}
	}
}

// A group's mean is over trajectories, not over rows: of two, the one of three turns counts as one.
func TestGroupMeanOfTurns(t *testing.T) {
	rows := []ReplayRow{{GroupID: "g", TrajectoryID: "a", Reward: 1}}
	for turn := range 3 {
		rows = append(rows, ReplayRow{GroupID: "g", TrajectoryID: "b", Turn: turn, Reward: float64(turn)})
	}
	rows = append(rows, ReplayRow{GroupID: "h", TrajectoryID: "b", Reward: 5})
	want := []advantage.Baseline{{Step: 7, Group: "g", Mean: 1}, {Step: 7, Group: "h", Mean: 5}}
	if got, err := baselines(7, rows); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("means %v, %v", got, err)
	}
}

func TestReplayOptions(t *testing.T) {
	full := Buffer{Baselines: advantage.BaselineQueue{{Step: 0, Mean: 0}}}
	for i, reward := range []float64{2, 1, 0, -1, 3} {
		full.Entries = append(full.Entries, Entry{Step: 0, TrajectoryID: fmt.Sprint(i), Reward: reward, Advantage: 0.5})
	}
	for name, tt := range map[string]struct {
		replay   Replay
		step     int
		consumed bool
		imitated int
		reasons  map[Reason]int
	}{
		"paper":      {Replay{Capacity: 5, Baselines: 9}, 1, true, 3, map[Reason]int{Outgrown: 2}},
		"not full":   {Replay{Capacity: 6, Baselines: 9}, 1, false, 0, map[Reason]int{}},
		"zero kept":  {Replay{Capacity: 5, Baselines: 9, KeepZero: true}, 1, true, 4, map[Reason]int{Outgrown: 1}},
		"decay":      {Replay{Capacity: 5, Baselines: 9, Decay: 0.5}, 1, true, 5, map[Reason]int{}},
		"3 of 1.5·2": {Replay{Capacity: 2, Baselines: 9, Full: FullAboveMedian}, 1, false, 0, map[Reason]int{}},
		"3 of 1.5·1": {
			Replay{Capacity: 1, Baselines: 9, Full: FullAboveMedian}, 1, true, 3, map[Reason]int{Outgrown: 2},
		},
		"capped": {
			Replay{Capacity: 2, Baselines: 9, RowCap: true}, 1, true, 2, map[Reason]int{Outgrown: 2, ReplaySurplus: 1},
		},
		"power of two": {
			Replay{Capacity: 5, Baselines: 9, PowerOfTwo: true}, 1, true, 2,
			map[Reason]int{Outgrown: 2, ReplaySurplus: 1},
		},
		"too few": {
			Replay{Capacity: 5, Baselines: 9, MinRows: 4}, 1, true, 0, map[Reason]int{Outgrown: 2, ReplayTooSmall: 3},
		},
		"young enough": {Replay{Capacity: 5, Baselines: 9, MaxAge: 5}, 5, true, 3, map[Reason]int{Outgrown: 2}},
		"too old":      {Replay{Capacity: 5, Baselines: 9, MaxAge: 5}, 6, false, 0, map[Reason]int{TooOld: 5}},
		"used, not old": {
			Replay{Capacity: 5, Baselines: 9, MaxAge: 5, Order: OrderRelease}, 6, true, 3, map[Reason]int{Outgrown: 2},
		},
	} {
		next, out := mustAdvance(t, tt.replay, full, tt.step, nil, rand.New(rand.NewPCG(1, 1)))
		reasons := map[Reason]int{}
		for _, v := range out.Verdicts {
			if v.Reason != "" {
				reasons[v.Reason]++
			}
		}
		if out.Consumed != tt.consumed || out.Imitated != tt.imitated || !reflect.DeepEqual(reasons, tt.reasons) {
			t.Errorf("%s: consumed %v, imitated %d, reasons %v", name, out.Consumed, out.Imitated, reasons)
		}
		if tt.consumed && len(next.Entries) != 0 {
			t.Errorf("%s: %d entries are left", name, len(next.Entries))
		}
	}
	r := Replay{Capacity: 9, Baselines: 9, RequireToolCall: true}
	rows := groupOf("g", 1, -1, 1)
	_, out := mustAdvance(t, r, Buffer{}, 0, rows, nil)
	if out.Stored != 1 || out.Verdicts[0].Reason != NoToolCall || out.Verdicts[1].Reason != AdvantageNotPositive {
		t.Errorf("verdicts %+v", out.Verdicts)
	}
	if next, out := mustAdvance(t, r, Buffer{}, 0, nil, nil); out.Consumed || len(next.Baselines) != 0 {
		t.Errorf("a step of no rows: %+v", out)
	}
}

// Many steps: the order of rows changes nothing, the same seed draws the same, another does not.
func TestReplayIsDeterministic(t *testing.T) {
	for _, r := range []Replay{
		{Capacity: 12, Baselines: 7},
		{
			Capacity: 8, Baselines: 7, Full: FullAboveMedian, Order: OrderRelease, MaxAge: 5, RowCap: true,
			PowerOfTwo: true,
		},
	} {
		run := func(seed uint64, shuffle bool) (out []string) {
			made, b := rand.New(rand.NewPCG(1, 2)), Buffer{}
			for step := range 40 {
				var rows []ReplayRow
				for g := range 3 {
					rows = append(rows, groupOf(fmt.Sprint(g), made.Float64(), made.Float64(), made.Float64(), 0.1)...)
				}
				if shuffle {
					rand.New(rand.NewPCG(uint64(step), 3)).Shuffle(
						len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] },
					)
				}
				var result Replayed
				b, result = mustAdvance(t, r, b, step, rows, rand.New(rand.NewPCG(seed, uint64(step))))
				out = append(out, fmt.Sprintf("%+v %+v", b, result))
			}
			return out
		}
		want := run(1, false)
		if !slices.Equal(run(1, true), want) {
			t.Errorf("%+v: the order of the rows matters", r)
		}
		if other := slices.Equal(run(2, false), want); other != (r.Order != OrderRelease) {
			t.Errorf("%+v: with another seed the same %v", r, other)
		}
	}
}

// DefaultReplay holds the paper's constants and rules.
var DefaultReplay = Replay{Capacity: 2048, Baselines: 10240}

// ReleaseReplay holds the release's rules; MinRows is left to who knows the GPUs.
var ReleaseReplay = Replay{
	Capacity: 2048, Baselines: 10240, Full: FullAboveMedian, Order: OrderRelease, MaxAge: 5,
	RequireToolCall: true, RowCap: true, PowerOfTwo: true,
}

func TestReplayRefuses(t *testing.T) {
	good := Replay{Capacity: 1, Baselines: 1}
	nan, twice := groupOf("g", 1, 2), append(groupOf("g", 1), groupOf("g", 1)...)
	nan[0].Advantage = math.NaN()
	for name, tt := range map[string]struct {
		replay Replay
		buffer Buffer
		rows   []ReplayRow
	}{
		"capacity":     {Replay{Baselines: 1}, Buffer{}, nil},
		"baselines":    {Replay{Capacity: 1}, Buffer{}, nil},
		"full":         {Replay{Capacity: 1, Baselines: 1, Full: "half"}, Buffer{}, nil},
		"order":        {Replay{Capacity: 1, Baselines: 1, Order: "any"}, Buffer{}, nil},
		"age":          {Replay{Capacity: 1, Baselines: 1, MaxAge: -1}, Buffer{}, nil},
		"decay":        {Replay{Capacity: 1, Baselines: 1, Decay: -1}, Buffer{}, nil},
		"source":       {Replay{Capacity: 1, Baselines: 1, RowCap: true}, Buffer{}, nil},
		"NaN":          {good, Buffer{}, nan},
		"twice":        {good, Buffer{}, twice},
		"the step":     {good, Buffer{Entries: []Entry{{Step: 3}}}, nil},
		"its baseline": {good, Buffer{Baselines: advantage.BaselineQueue{{Step: 4}}}, nil},
		"bad baseline": {good, Buffer{Baselines: advantage.BaselineQueue{{Step: 1, Mean: math.Inf(1)}}}, nil},
	} {
		if _, _, err := tt.replay.Advance(tt.buffer, 3, tt.rows, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, r := range []Replay{DefaultReplay, ReleaseReplay} {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	}
}

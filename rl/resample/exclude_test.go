package resample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// broken takes rows out of a step: those whose index is named have no reward any more.
func broken(rows []Row, at ...int) []Row {
	out := append([]Row(nil), rows...)
	for _, i := range at {
		out[i].Excluded = true
		out[i].Reward, out[i].ToolErrors = math.NaN(), 99 // no link may read them
	}
	return out
}

func TestExcludedRowsAreCountedAndNotJudged(t *testing.T) {
	rows := append(rowsOf("a", "++-----"), rowsOf("b", "+-+-+-+")...)
	s := mustSelect(t, broken(rows, 0, 6), chain(4))
	if s.DroppedBy[Excluded] != 2 || s.Rows[0].Reason != Excluded || s.Rows[6].Reason != Excluded {
		t.Fatalf("dropped %v, rows %+v", s.DroppedBy, s.Rows)
	}
	// Of a's other rows one in five is right: an excluded row as reward 0 would make it one in seven.
	if r := s.Rows[1]; math.Abs(r.GroupMean-0.2) > 1e-12 || math.Abs(r.GroupVariance-0.16) > 1e-12 {
		t.Errorf("group a has mean %g, variance %g", r.GroupMean, r.GroupVariance)
	}
	if r := s.Rows[0]; r.Reward != 0 || r.Count != 0 || r.Weight != 0 || r.Penalties != (Penalties{}) {
		t.Errorf("the excluded row became %+v", r)
	}
	if s.KeptGroups != 2 || s.KeptRows != 8 {
		t.Errorf("kept %d rows of %d groups", s.KeptRows, s.KeptGroups)
	}
}

func TestShortGroupsAreDropped(t *testing.T) {
	vspo := advantage.DefaultVSPO
	for name, tt := range map[string]struct {
		rows    []Row
		options Options
		want    map[Reason]int
		kept    int
	}{
		"one row left": {
			broken(rowsOf("a", "+-+"), 0, 1), Options{}, map[Reason]int{Excluded: 2, TooFewRows: 1}, 0,
		},
		"no row left":          {broken(rowsOf("a", "+-"), 0, 1), Options{}, map[Reason]int{Excluded: 2}, 0},
		"two rows left":        {broken(rowsOf("a", "+-+"), 2), Options{}, map[Reason]int{Excluded: 1}, 2},
		"sampled with one row": {rowsOf("a", "+"), Options{}, map[Reason]int{}, 1},
		"under RoC": {
			broken(rowsOf("a", "+-+-"), 0, 1, 2), chain(4), map[Reason]int{Excluded: 3, TooFewRows: 1}, 0,
		},
		"smaller than RoC keeps": {broken(rowsOf("a", "+-+-"), 0), Options{RoC: &RoC{Keep: 4}, Source: streams(1)},
			map[Reason]int{Excluded: 1, SmallGroup: 3}, 0},
		"under VSPO": {append(
			broken(rowsOf("a", "+-"), 0), rowsOf("b", "+-")...,
		), Options{VSPO: &vspo, Source: streams(1)},
			map[Reason]int{Excluded: 1, TooFewRows: 1}, 2},
	} {
		s := mustSelect(t, tt.rows, tt.options)
		if s.KeptRows != tt.kept || fmt.Sprint(s.DroppedBy) != fmt.Sprint(tt.want) {
			t.Errorf("%s: kept %d, dropped %v; want %d, %v", name, s.KeptRows, s.DroppedBy, tt.kept, tt.want)
		}
		for _, r := range s.Rows {
			if r.Kept && r.Count != 1 {
				t.Errorf("%s: a short group made room for a repeat: %+v", name, r)
			}
		}
	}
}

// What is selected of the other rows is what would have been selected had the excluded ones never
// been sampled, and had the short groups not been there.
func TestExclusionChangesNothingElse(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	shapes := []string{"++++----", "+-------", "e+n+--+-", "--------", "++++++++", "+-"}
	for range 300 {
		var all, left []Row
		for i := range 2 + rng.IntN(5) {
			group := rowsOf(fmt.Sprint("g", i), shapes[rng.IntN(len(shapes))])
			var out []int
			for k := range group {
				if rng.IntN(4) == 0 {
					out = append(out, k)
				}
			}
			marked := broken(group, out...)
			all = append(all, marked...)
			if len(out) > 0 && len(group)-len(out) < 2 {
				continue
			}
			for k := range marked {
				if !marked[k].Excluded {
					left = append(left, group[k])
				}
			}
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		with, without := mustSelect(t, all, chain(4)), mustSelect(t, left, chain(4))
		var got []Selected
		for _, r := range with.Rows {
			if r.Reason != Excluded && r.Reason != TooFewRows {
				got = append(got, r)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(without.Rows) || with.RewardMax != without.RewardMax ||
			with.KeptRows != without.KeptRows {
			t.Fatalf("with exclusions:\n%+v\nwithout those rows:\n%+v", got, without.Rows)
		}
	}
}

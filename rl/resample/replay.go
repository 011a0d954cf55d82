package resample

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/choice"
)

// FullRule chooses when the buffer counts as full.
type FullRule string

// FullSize: |D| ≥ N_D (the paper). FullAboveMedian: more than 1.5·N_D entries have a reward above
// P50 (the release, strictly).
const (
	FullSize        FullRule = "size"
	FullAboveMedian FullRule = "p50_1.5x"
)

// ReplayOrder chooses what a step does first.
type ReplayOrder string

// OrderPaper: evict, push baselines, test with the new P50, then consume or store, so a step that
// replays stores nothing. OrderRelease: test and consume with the P50 from before the step, then
// evict, push baselines and store, always.
const (
	OrderPaper   ReplayOrder = "paper"
	OrderRelease ReplayOrder = "release"
)

// Replay is SPEAR's self-imitation buffer: good rows are kept until the buffer is full, judged again
// by what the policy earns now, and imitated once:
//
//	Ã_j = R_j − P50(D_R),  kept iff Â_j > 0 at collection and Ã_j > 0
//
// Source: SPEAR Algorithm 1 and eqs 7–8; the release differs and its rules are options, off by
// default. Departures: units of Capacity are rows (turns, where rows are turns), of Baselines
// groups; eviction by age comes first in the paper's order, which has none.
type Replay struct {
	Capacity  int         `min:"1"`              // N_D
	Baselines int         `min:"1"`              // N_DR
	Full      FullRule    `enum:"size|p50_1.5x"` // FullSize when empty
	Order     ReplayOrder `enum:"paper|release"` // OrderPaper when empty
	MaxAge    int         `min:"0"`              // steps after which an entry is evicted; 0 is never
	// RequireToolCall: only rows with a tool call enter.
	RequireToolCall bool
	KeepZero        bool    // keep Ã = 0 too (the release's agents)
	Decay           float64 `min:"0" max:"1"` // w of (0, 1]: Ã = Â·w in place of P50; 0 is off
	// RowCap: imitate at most Capacity rows, drawn uniformly.
	RowCap bool
	// PowerOfTwo: imitate a power of two of rows, drawn uniformly, none of fewer than two.
	PowerOfTwo bool
	MinRows    int `min:"0"` // imitate nothing where fewer rows are left (the release: its number of GPUs)
}

// Validate reports the first bad field.
func (r Replay) Validate() error { return choice.Check("replay.", r) }

// IsFull applies the full rule to rewards that the buffer holds, and counts those above P50.
func (r Replay) IsFull(baselines advantage.BaselineQueue, rewards []float64) (above int, full bool) {
	if p50, ok := baselines.P50(); ok {
		for _, v := range rewards {
			if v > p50 {
				above++
			}
		}
	}
	if r.Full == FullAboveMedian {
		return above, 2*above > 3*r.Capacity
	}
	return above, len(rewards) >= r.Capacity
}

// Advance takes in one step: all rows of the groups that push a baseline (the release: of those
// that its group filter kept). step must be later than every step in the buffer. source is read
// only where rows are drawn, by RowCap and PowerOfTwo; equal arguments give equal results.
func (r Replay) Advance(b Buffer, step int, rows []ReplayRow, source *rand.Rand) (Buffer, Replayed, error) {
	rows, err := r.check(b, step, rows, source)
	if err != nil {
		return b, Replayed{}, fmt.Errorf("advance replay buffer to step %d: %w", step, err)
	}
	means, err := baselines(step, rows)
	if err != nil {
		return b, Replayed{}, fmt.Errorf("advance replay buffer to step %d: %w", step, err)
	}
	next, out := Buffer{Entries: slices.Clone(b.Entries), Baselines: b.Baselines}, Replayed{}
	if r.Order == OrderRelease {
		r.drainFull(&next, &out, source)
		r.evict(&next, &out, step)
		next.Baselines, err = b.Baselines.TrimSteps(r.Baselines).Push(means...)
		r.store(&next, &out, step, rows, true)
		return next, out, err
	}
	r.evict(&next, &out, step)
	if next.Baselines, err = b.Baselines.Push(means...); err != nil {
		return b, Replayed{}, err
	}
	next.Baselines = next.Baselines.Trim(r.Baselines)
	r.drainFull(&next, &out, source)
	r.store(&next, &out, step, rows, !out.Consumed)
	return next, out, nil
}

// baselines are the mean rewards of the step's groups.
func baselines(step int, rows []ReplayRow) ([]advantage.Baseline, error) {
	names, rewards := make([]advantage.Row, len(rows)), make([]float64, len(rows))
	for i, r := range rows {
		names[i], rewards[i] = advantage.Row{Group: r.GroupID, Trajectory: r.TrajectoryID, Turn: r.Turn}, r.Reward
	}
	return advantage.GroupMeans(step, names, rewards)
}

func (r Replay) check(b Buffer, step int, rows []ReplayRow, source *rand.Rand) ([]ReplayRow, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if source == nil && (r.RowCap || r.PowerOfTwo) {
		return nil, errors.New("a source of random draws is needed")
	}
	if err := b.check(step); err != nil {
		return nil, err
	}
	return replayOrder(rows)
}

// evict retires entries older than MaxAge steps.
func (r Replay) evict(b *Buffer, out *Replayed, step int) {
	if r.MaxAge == 0 {
		return
	}
	b.Entries = slices.DeleteFunc(b.Entries, func(e Entry) bool {
		old := step-e.Step > r.MaxAge
		if old {
			out.note(ReplayVerdict{Entry: e, Fate: Retired, Reason: TooOld})
		}
		return old
	})
}

// drainFull judges and empties a full buffer.
func (r Replay) drainFull(b *Buffer, out *Replayed, source *rand.Rand) {
	rewards := make([]float64, len(b.Entries))
	for i, e := range b.Entries {
		rewards[i] = e.Reward
	}
	if _, full := r.IsFull(b.Baselines, rewards); !full {
		return
	}
	out.Consumed = true
	out.P50, _ = b.Baselines.P50()
	verdicts, kept := r.judge(b.Entries, out.P50)
	r.retireExcess(verdicts, kept, source)
	for _, v := range verdicts {
		out.note(v)
	}
	b.Entries = nil
}

// judge recalibrates entries and returns the places of those to imitate.
func (r Replay) judge(entries []Entry, p50 float64) (verdicts []ReplayVerdict, kept []int) {
	verdicts = make([]ReplayVerdict, len(entries))
	for i, e := range entries {
		v := ReplayVerdict{Entry: e, Fate: Retired, Reason: Outgrown, Recalibrated: e.Reward - p50}
		if r.Decay > 0 {
			v.Recalibrated = e.Advantage * r.Decay
		}
		if e.Advantage > 0 && (v.Recalibrated > 0 || r.KeepZero && v.Recalibrated == 0) {
			v.Fate, v.Reason = Imitated, ""
			kept = append(kept, i)
		}
		verdicts[i] = v
	}
	return verdicts, kept
}

// retireExcess retires what is over the row cap or the power of two, and all where too few are left.
func (r Replay) retireExcess(verdicts []ReplayVerdict, kept []int, source *rand.Rand) {
	n, why := len(kept), ReplaySurplus
	if r.RowCap {
		n = min(n, r.Capacity)
	}
	if r.PowerOfTwo {
		n = PowerOfTwo(n, n)
	}
	if n < r.MinRows {
		n, why = 0, ReplayTooSmall
	}
	if n == len(kept) {
		return
	}
	if n > 0 {
		source.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	}
	for _, i := range kept[n:] {
		verdicts[i].Fate, verdicts[i].Reason = Retired, why
	}
}

// PowerOfTwo is the greatest power of two that is at most kept and limit, 0 where that is below 2.
func PowerOfTwo(kept, limit int) int {
	n := min(kept, limit)
	if n < 2 {
		return 0
	}
	return 1 << (bits.Len(uint(n)) - 1)
}

// store adds the step's rows with positive advantage, where the step is to store any.
func (r Replay) store(b *Buffer, out *Replayed, step int, rows []ReplayRow, open bool) {
	for _, row := range rows {
		v := ReplayVerdict{Fate: Passed, Entry: Entry{
			Step: step, GroupID: row.GroupID, TrajectoryID: row.TrajectoryID, Turn: row.Turn,
			Reward: row.Reward, Advantage: row.Advantage,
		}}
		switch {
		case !(row.Advantage > 0):
			v.Reason = AdvantageNotPositive
		case r.RequireToolCall && row.ToolCalls == 0:
			v.Reason = NoToolCall
		case !open:
			v.Reason = ReplayStep
		default:
			v.Fate = Stored
			b.Entries = append(b.Entries, v.Entry)
		}
		out.note(v)
	}
}

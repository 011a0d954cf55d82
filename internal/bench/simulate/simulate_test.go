package simulate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/scheduler"
)

// plain is an engine on which a token takes a second, whatever else it does, and prefixes almost no time.
var plain = model{tokens: 1000, rows: 100, base: 1, prefill: 1e9}

var worst = scheduler.Settings{Reserve: scheduler.Worst, Hold: true}

func one(prompt int, turns ...turn) rollout { return rollout{prompt: prompt, most: 500, turns: turns} }

// Times that can be worked out by hand. With one engine, static allocation has nothing to divide.
func TestTheModel(t *testing.T) {
	for name, tt := range map[string]struct {
		engine   model
		rollouts []rollout
		want     float64
	}{
		"base":  {plain, []rollout{one(1, turn{tokens: 10})}, 10},
		"tools": {plain, []rollout{one(1, turn{tokens: 10, result: 5, tool: 3}, turn{tokens: 2})}, 15},
		"rows together": {model{tokens: 1000, rows: 2, base: 1, row: 0.5, prefill: 1e9},
			[]rollout{one(1, turn{tokens: 10}), one(1, turn{tokens: 10})}, 20},
		"rows one by one": {model{tokens: 1000, rows: 1, base: 1, row: 0.5, prefill: 1e9},
			[]rollout{one(1, turn{tokens: 10}), one(1, turn{tokens: 10})}, 30},
		// ten steps that read 100, 101, … tokens: 10·1 + 0.1·(10·100 + 10·10/2), the growth being even
		"contexts": {model{tokens: 1000, rows: 1, base: 1, context: 0.1, prefill: 1e9},
			[]rollout{one(100, turn{tokens: 10})}, 10 + 0.1*(1000+50)},
		"prefix": {model{tokens: 1000, rows: 1, base: 1, prefill: 50}, []rollout{one(100, turn{tokens: 10})}, 12},
		// the result of 50 tokens is computed, the rest is cached
		"cached": {model{tokens: 1000, rows: 1, base: 1, prefill: 50},
			[]rollout{one(100, turn{tokens: 10, result: 50, tool: 0.25}, turn{tokens: 1})}, 2 + 10 + 0.25 + 1 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			j := &job{engines: 1, engine: tt.engine, rollouts: tt.rollouts}
			out, err := schedule(j, worst)
			require.NoError(t, err)
			require.InDelta(t, tt.want, out.makespan, 0.01)
			require.InDelta(t, tt.want, bound(j), 0.01)
			out, err = allocate(j)
			require.NoError(t, err)
			require.InDelta(t, tt.want, out.makespan, 0.01)
		})
	}
}

// When four rows of static allocation fill the cache, the two that began last are dropped and computed again at the
// end. The scheduler starts two at a time; told too short a length, it has the engine evict.
func TestStaticEvictsHalf(t *testing.T) {
	m := plain
	m.tokens = 100
	j := &job{engines: 1, engine: m}
	for range 4 {
		j.rollouts = append(j.rollouts, rollout{prompt: 10, most: 40, turns: []turn{{tokens: 30}}})
	}
	out, err := allocate(j)
	require.NoError(t, err)
	// 4·25 tokens fill the cache after 15 steps; two end after 30, and the others have 15 left
	require.InDelta(t, 45, out.makespan, 0.01)
	require.Equal(t, 2, out.evictions)
	out, err = schedule(j, worst)
	require.NoError(t, err)
	require.Zero(t, out.evictions)
	require.InDelta(t, 60, out.makespan, 0.01)
	out, err = schedule(j, scheduler.Settings{Reserve: scheduler.Expected, Length: 20, Margin: 1})
	require.NoError(t, err)
	require.Positive(t, out.evictions)
}

// Together, calls wait until the turns of all rollouts have ended.
func TestStaticWaitsForAll(t *testing.T) {
	j := &job{engines: 1, engine: plain, rollouts: []rollout{
		one(1, turn{tokens: 1, tool: 5, result: 1}, turn{tokens: 1}), one(1, turn{tokens: 10})}}
	all, err := allocate(j)
	require.NoError(t, err)
	require.InDelta(t, 16, all.makespan, 0.01)
}

// Every workload, cut to 1,500 rollouts: nothing is lost or evicted, no schedule beats the bound, and the same workload
// gives the same result.
func TestWorkloads(t *testing.T) {
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.rollouts = min(w.rollouts, 1500)
			c, err := w.compare()
			require.NoError(t, err)
			for _, out := range []*outcome{c.scheduler, c.static} {
				require.GreaterOrEqual(t, out.makespan, c.bound*(1-1e-6))
			}
			require.Zero(t, c.scheduler.evictions)
			j := w.drawn()
			require.Len(t, j.rollouts, w.rollouts)
			again, err := schedule(j, j.settings())
			require.NoError(t, err)
			require.Equal(t, c.scheduler, again)
			for _, r := range j.rollouts {
				require.LessOrEqual(t, r.held(), r.most)
			}
		})
	}
}

// The time in which steps are done is the inverse of the steps that are done in a time.
func TestStepsAndSeconds(t *testing.T) {
	m := model{base: 0.01, row: 5e-5, context: 4e-8}
	for _, k := range []float64{1e-6, 1, 77.5, 12000} {
		require.InEpsilon(t, k, m.steps(m.seconds(k, 200, 3e5), 200, 3e5), 1e-9)
	}
	require.False(t, math.IsNaN(m.steps(0, 0, 0)))
}

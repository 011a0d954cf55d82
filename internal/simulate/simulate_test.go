package simulate

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// plain is an engine on which a token takes a second, whatever else it does, and prefixes almost no time.
var plain = Model{Tokens: 1000, Rows: 100, Base: 1, Prefill: 1e9}

func one(prompt int, turns ...Turn) Rollout { return Rollout{Prompt: prompt, Most: 500, Turns: turns} }

func makespan(t *testing.T, job *Job, s scheduler.Settings) float64 {
	t.Helper()
	r, err := Dynamic(job, s)
	require.NoError(t, err)
	require.Equal(t, len(job.Rollouts), r.Ended)
	return r.Makespan
}

// Times that can be worked out by hand.
func TestTheModel(t *testing.T) {
	for name, tt := range map[string]struct {
		engine  Model
		rollout []Rollout
		want    float64
	}{
		"base":         {plain, []Rollout{one(1, Turn{Tokens: 10})}, 10},
		"tools":        {plain, []Rollout{one(1, Turn{Tokens: 10, Result: 5, Tool: 3}, Turn{Tokens: 2})}, 15},
		"verification": {plain, []Rollout{one(1, Turn{Tokens: 10, Tool: 0.5})}, 10.5},
		"rows together": {Model{Tokens: 1000, Rows: 2, Base: 1, Row: 0.5, Prefill: 1e9},
			[]Rollout{one(1, Turn{Tokens: 10}), one(1, Turn{Tokens: 10})}, 20},
		"rows one by one": {Model{Tokens: 1000, Rows: 1, Base: 1, Row: 0.5, Prefill: 1e9},
			[]Rollout{one(1, Turn{Tokens: 10}), one(1, Turn{Tokens: 10})}, 30},
		// ten steps that read 100, 101, … tokens: 10·1 + 0.1·(10·100 + 10·10/2), the growth being even
		"contexts": {Model{Tokens: 1000, Rows: 1, Base: 1, Context: 0.1, Prefill: 1e9},
			[]Rollout{one(100, Turn{Tokens: 10})},
			10 + 0.1*(1000+50)},
		"prefix": {Model{Tokens: 1000, Rows: 1, Base: 1, Prefill: 50}, []Rollout{one(100, Turn{Tokens: 10})}, 12},
		"speed": {Model{Tokens: 1000, Rows: 1, Base: 1, Prefill: 50, Speed: 2},
			[]Rollout{one(100, Turn{Tokens: 10})}, 6},
		// the result of 50 tokens is computed, the rest is cached
		"cached": {Model{Tokens: 1000, Rows: 1, Base: 1, Prefill: 50},
			[]Rollout{one(100, Turn{Tokens: 10, Result: 50, Tool: 0.25}, Turn{Tokens: 1})}, 2 + 10 + 0.25 + 1 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			job := &Job{Engines: []Model{tt.engine}, Rollouts: tt.rollout}
			require.InDelta(
				t,
				tt.want,
				makespan(t, job, scheduler.Settings{Reserve: scheduler.Worst, Hold: true}),
				0.01,
			)
			bound := BoundOf(job)
			if len(tt.rollout) == 2 { // the engine is full all the time
				require.InDelta(t, tt.want, bound.Simple(), 0.01)
			} else {
				require.InDelta(t, bound.Longest, bound.Simple(), 1e-9)
			}
			require.LessOrEqual(t, bound.Seconds(), tt.want+0.01)
			for _, wait := range []Wait{ForAll, ForNone} {
				r, err := Static(job, wait)
				require.NoError(t, err)
				require.InDelta(t, tt.want, r.Makespan, 0.01, "one engine has nothing to divide")
			}
		})
	}
}

// A call waits for a sender, travels in a batch, and waits for an executor.
func TestTheServiceOfTools(t *testing.T) {
	s := newTools(Service{Senders: 1, Batch: 2, Send: 1, Nodes: 1, Executors: 1})
	for i := range 3 {
		s.dispatch(0, call{rollout: i, tool: 10})
	}
	s.send(0)
	var at []float64
	for now, ok := s.next(); ok; now, ok = s.next() {
		for _, ok := s.answered(now); ok; _, ok = s.answered(now) {
			at = append(at, now)
		}
		s.send(now)
	}
	// the first two arrive at 1, the third at 2; one executor runs them one after the other
	require.Equal(t, []float64{11, 21, 31}, at)
	require.Equal(t, []float32{11, 21, 31}, s.latency)
}

// When four rows of static allocation fill the cache, the two that began last are dropped and computed again at the
// end.
func TestStaticEvictsHalf(t *testing.T) {
	m := plain
	m.Tokens = 100
	var rollouts []Rollout
	for range 4 {
		rollouts = append(rollouts, Rollout{Prompt: 10, Most: 40, Turns: []Turn{{Tokens: 30}}})
	}
	r, err := Static(&Job{Engines: []Model{m}, Rollouts: rollouts}, ForNone)
	require.NoError(t, err)
	// 4·25 tokens fill the cache after 15 steps; two end after 30, and the others have 15 left
	require.InDelta(t, 45, r.Makespan, 0.01)
	require.Equal(t, 2, r.Evictions)
	require.Equal(t, 2*25, r.Computed)
	dynamic, err := Dynamic(&Job{Engines: []Model{m}, Rollouts: rollouts}, scheduler.Settings{Reserve: scheduler.Worst})
	require.NoError(t, err)
	require.Zero(t, dynamic.Evictions)
	require.InDelta(t, 60, dynamic.Makespan, 0.01, "two at a time")
	expected, err := Dynamic(&Job{Engines: []Model{m}, Rollouts: rollouts},
		scheduler.Settings{Reserve: scheduler.Expected, Length: 20, Margin: 1})
	require.NoError(t, err)
	require.Positive(t, expected.Evictions, "the expected length is too short")
	require.Equal(t, expected.Evictions, expected.Decisions.Evicted)
}

// With ForAll, calls wait until the turns of all rollouts have ended.
func TestStaticWaitsForAll(t *testing.T) {
	job := &Job{
		Engines: []Model{plain},
		Rollouts: []Rollout{one(1, Turn{Tokens: 1, Tool: 5, Result: 1}, Turn{Tokens: 1}),
			one(1, Turn{Tokens: 10})},
	}
	all, err := Static(job, ForAll)
	require.NoError(t, err)
	require.InDelta(t, 16, all.Makespan, 0.01)
	none, err := Static(job, ForNone)
	require.NoError(t, err)
	require.InDelta(t, 10, none.Makespan, 0.01)
}

// small is a preset with few of its rollouts.
func small(t *testing.T, name string) *Job {
	t.Helper()
	data, ok := Preset(name)
	require.True(t, ok)
	w, err := Parse(name, data)
	require.NoError(t, err)
	for i := range w.Rollouts {
		w.Rollouts[i].Count = min(w.Rollouts[i].Count, 1500)
	}
	job, err := w.Draw()
	require.NoError(t, err)
	return job
}

// Every preset, cut to 1,500 rollouts: nothing is lost or evicted by default, no schedule beats the bound, and the same
// workload gives the same result.
func TestPresets(t *testing.T) {
	require.GreaterOrEqual(t, len(Presets()), 20)
	for _, name := range Presets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := small(t, name)
			c, err := Compare(name, job, Options{Settings: scheduler.Default()})
			require.NoError(t, err)
			for _, r := range []*Result{&c.Dynamic, c.Static, c.Asynchronous} {
				require.Equal(t, len(job.Rollouts), r.Ended)
				require.GreaterOrEqual(t, r.Makespan, c.Bound.Seconds()*(1-1e-6))
				require.True(t, r.Idle >= -1e-9 && r.Idle <= 1)
			}
			require.LessOrEqual(t, c.Bound.Simple(), c.Bound.Seconds()*(1+1e-9), "the simple bound is lower")
			require.GreaterOrEqual(t, c.SimpleRatio(), c.Ratio()*(1-1e-9))
			require.Zero(t, c.Dynamic.Evictions)
			again, err := Dynamic(
				job,
				scheduler.Settings{Reserve: scheduler.WorstStretch, Park: 1, Length: job.MeanHeld()},
			)
			require.NoError(t, err)
			again.usage, c.Dynamic.usage = nil, nil
			require.Equal(t, c.Dynamic, again)
			worst, err := Dynamic(job, scheduler.Settings{Reserve: scheduler.Worst, Park: 1})
			require.NoError(t, err)
			require.Zero(t, worst.Evictions)
			require.Equal(t, len(job.Rollouts), worst.Ended)
		})
	}
}

// Over-sampling stops the long rollouts of each group, and the result says so.
func TestOverSamplingCensors(t *testing.T) {
	job := small(t, "math-few")
	job.Need = 4
	c, err := Compare("math-few", job, Options{Settings: scheduler.Default(), Alone: true})
	require.NoError(t, err)
	require.Positive(t, c.Dynamic.Stopped)
	require.Equal(t, len(job.Rollouts), c.Dynamic.Ended+c.Dynamic.Stopped)
	require.Greater(t, c.Dynamic.StoppedTokens, c.Dynamic.EndedTokens)
	var text bytes.Buffer
	require.NoError(t, c.WriteText(&text))
	require.Contains(t, text.String(), "biased towards short rollouts")
}

// A simulation whose engines are all lost ends with an error.
func TestNothingIsLeft(t *testing.T) {
	job := &Job{Engines: []Model{plain}, Rollouts: []Rollout{one(1, Turn{Tokens: 10})},
		Failures: []Failure{{At: 2, Event: eventLost}}}
	_, err := Dynamic(job, scheduler.Default())
	require.ErrorContains(t, err, "1 of 1 rollouts have not ended")
	_, err = Static(job, ForAll)
	require.Error(t, err)
	job.Failures = append(job.Failures, Failure{At: 5, Event: eventJoined})
	require.InDelta(t, 15, makespan(t, job, scheduler.Default()), 0.01)
	require.InDelta(t, 13, BoundOf(job).Work, 0.01, "work counts only while the engine is there")
}

func TestDistributions(t *testing.T) {
	for name, text := range map[string]string{
		"none": "{}", "two": "{constant: 1, geometric: 2}", "negative": "{constant: -1}", "order": "{uniform: [2, 1]}",
		"geometric": "{geometric: 0.5}", "tail": "{pareto: {least: 1, alpha: 1}}", "bounds": "{constant: 1, min: " +
			"3, max: 2}",
		"infinite": "{constant: .inf}", "field": "{constant: 1, wide: 2}",
	} {
		_, err := Parse("x", []byte("engines: [{count: 1, kv_tokens: 9, rows: 1, base: 1, prefill: 1}]\n"+
			"rollouts: [{count: 1, limit: 9, prompt: "+text+", turns: {constant: 1}, tokens: {constant: 1}}]"))
		require.Error(t, err, name)
	}
	job := small(t, "rstar2")
	calls, n := 0, 0
	for _, r := range job.Rollouts {
		n++
		calls += len(r.Turns) - 1
		require.LessOrEqual(t, r.held(), r.Most)
	}
	require.LessOrEqual(t, float64(calls)/float64(n), 2.7)
}

func TestBadWorkloads(t *testing.T) {
	const rollouts = "rollouts: [{count: 1, limit: 9, prompt: {constant: 1}, turns: {constant: 1}, tokens: " +
		"{constant: 1}}]"
	for text, want := range map[string]string{
		"":                        "the file is empty",
		"engine: 1":               "field engine not found",
		rollouts:                  "engines: must be 1 to 4096, got 0",
		"engines: [{count: 0}]":   "engines[0].count: must be in [1, 4096], got 0",
		"engines: [{count: 1}]":   "engines[0].kv_tokens: must be ≥ 1",
		"seed: -1":                "cannot unmarshal",
		"failures: [{engine: 3}]": "engines: must be 1",
		"engines: [{count: 1, kv_tokens: 9, rows: 1, base: 1, prefill: 1}]\n" + rollouts +
			"\nfailures: [{at: 1, engine: 1, event: lost}]": "failures[0].engine: must be in [0, 1), got 1",
		"engines: [{count: 1, kv_tokens: 9, rows: 1, base: 1, prefill: 1}]\n" + rollouts +
			"\nfailures: [{at: 1, engine: 0, event: slow}]": "failures[0].factor: must be in (0, 1e6], got 0",
		"engines: [{count: 1, kv_tokens: 9, rows: 1, base: 1, prefill: 1}]\n" + rollouts +
			"\ntools: {senders: 1}": "tools: ",
		"engines: [{count: 1, kv_tokens: 9, rows: 1, base: 1, prefill: 1}]\n" + rollouts +
			"\nstretch: -1": "stretch: ",
	} {
		_, err := Parse("file", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
	w, err := Parse("file", []byte("engines: [{count: 1, kv_tokens: 8, rows: 1, base: 1, prefill: 1}]\n"+rollouts))
	require.NoError(t, err)
	_, err = w.Draw()
	require.ErrorContains(t, err, "rollouts[0].limit: 9 tokens fit no engine; the largest holds 8")
}

// The picture is well-formed, has a line for every engine, and is the same every time.
func TestThePicture(t *testing.T) {
	job := small(t, "lost-few")
	c, err := Compare("a <name>", job, Options{Settings: scheduler.Default()})
	require.NoError(t, err)
	var first, second bytes.Buffer
	require.NoError(t, c.WriteSVG(&first))
	require.NoError(t, c.WriteSVG(&second))
	require.Equal(t, first.String(), second.String())
	d := xml.NewDecoder(bytes.NewReader(first.Bytes()))
	marks := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			marks++
		}
	}
	require.Greater(t, marks, 3*len(job.Engines))
}

// The time in which steps are done is the inverse of the steps that are done in a time.
func TestStepsAndSeconds(t *testing.T) {
	m := Model{Base: 0.01, Row: 5e-5, Context: 4e-8}
	for _, k := range []float64{1e-6, 1, 77.5, 12000} {
		require.InEpsilon(t, k, m.steps(m.seconds(k, 200, 3e5), 200, 3e5), 1e-9)
	}
	require.False(t, math.IsNaN(m.steps(0, 0, 0)))
}

package view_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// small makes the quickstart take only seconds: every stage runs, and little is learnt.
var small = []string{
	"steps=3", "policy.layers=1", "policy.hidden=32", "policy.heads=1", "policy.kv_heads=1", "policy.ffn=64",
	"warm_start.steps=30", "warm_start.batch=16", "rollout.prompts=4", "rollout.samples_per_prompt=4",
	"rollout.shard_groups=2", "resample.roc.keep=2", "resample.roc.min_positive=1", "resample.roc.min_negative=1",
	"evaluation.problems=6", "evaluation.samples=1", "optimizer.minibatches=1", "checkpoint.every=0",
	"checkpoint.keep_last=1", "checkpoint.keep_best=0",
}

// A page that is open while the real workflow trains a policy shows each step as the step ends: its trajectories, and
// the figures with one point more.
func TestWhileARunTrains(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a tiny policy")
	}
	p := openTab(t)
	objects := &stepwise{Store: mem.New(), grown: make(chan struct{})}
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{})
	trained := make(chan error, 1)
	go func() {
		_, err := pipelinetest.Run[workflows.TrainRunResult](pipelinetest.Environment(deps), workflows.TrainRunName,
			workflows.TrainRunInput{Run: "r", Recipe: "quickstart", Set: small})
		trained <- err
	}()
	ended := sync.OnceValue(func() error { return <-trained })
	t.Cleanup(func() {
		objects.upTo(math.MaxInt)
		require.NoError(t, ended())
	})
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, err := analysis.New(objects).Run(t.Context(), "r")
		if err == nil {
			break
		}
		require.ErrorIs(t, err, analysis.ErrNoRun)
		require.True(t, time.Now().Before(end), "the run is not in the catalogue")
	}
	s := serve(t, objects, "r")
	p.open(s.link(""))
	p.is("No step is done yet.", `document.getElementById("summary").innerText`)

	const perStep = 16
	drawn := map[string]int{} // curves by the step after which they were drawn
	for step := 1; step <= 3; step++ {
		objects.upTo(step)
		p.is(strconv.Itoa(perStep*step), listed)
		p.is(fmt.Sprintf("%05d/0000/000", step), firstRow)
		p.press("f")
		p.is(strconv.Itoa(step), `document.getElementById("figures").dataset.steps`)
		drawn[p.value(`document.querySelector("#figures figure svg").innerHTML`)] = step
		p.press("t")
	}
	require.Len(t, drawn, 3, "each step changes the figure")
	require.NoError(t, ended())
	p.is("done", `document.getElementById("progress").dataset.status`)

	p.press("j")
	p.press("\r")
	p.is("00003/0000/000", shownID)
	p.is("true", `document.querySelectorAll("#closeup .turn").length > 0`)
	p.is("logprob", colourBy)
	p.is("true", coloured)
}

// stepwise is a store into which a run commits the heads of steps when the test lets it.
type stepwise struct {
	store.Store
	mu    sync.Mutex
	last  int           // the last step whose head may be committed
	grown chan struct{} // closed at the next change of last
}

// upTo lets the run commit the heads up to a step's.
func (s *stepwise) upTo(step int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = step
	close(s.grown)
	s.grown = make(chan struct{})
}

// PutIfAbsent implements store.Store.
func (s *stepwise) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	_, head, err := schema.ParseHeadKey(key)
	step, notNumbered := strconv.Atoi(head)
	for err == nil && notNumbered == nil {
		s.mu.Lock()
		last, grown := s.last, s.grown
		s.mu.Unlock()
		if step <= last {
			break
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Store.PutIfAbsent(ctx, key, data)
}

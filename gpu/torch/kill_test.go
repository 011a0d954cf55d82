package torch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/optimizer"
	"github.com/ropewalk/ropewalk/schema"
)

// medium is large enough that a save takes a while.
var medium = checkpoint.Shape{
	Vocab: 512, Hidden: 256, Layers: 4, Heads: 8, KVHeads: 4, HeadDim: 32, FFN: 768, Positions: 1024, RopeTheta: 10000,
	NormEps: 1e-6, Pad: -1,
}

// killer kills the engine's process when a call comes for the n-th time.
type killer struct {
	*Engine
	at    string
	times int
}

func (k *killer) come(call string) {
	if call != k.at {
		return
	}
	if k.times--; k.times == 0 {
		_ = syscall.Kill(k.latest().tree.root, syscall.SIGKILL)
	}
}

func (k *killer) Forward(ctx context.Context, req policy.ForwardRequest) (policy.TokenOutputs, error) {
	k.come("forward")
	return k.Engine.Forward(ctx, req)
}

func (k *killer) Backward(ctx context.Context, role policy.Role, kept policy.Kept, c policy.Cotangents) error {
	k.come("backward")
	return k.Engine.Backward(ctx, role, kept, c)
}

// Save is killed when its folder is seen to hold something, if it has not ended by then.
func (k *killer) Save(ctx context.Context, role policy.Role, dir string) (string, error) {
	pid, saved := k.latest().tree.root, make(chan struct{})
	defer close(saved)
	go func() {
		for k.at == "save" {
			if half, _ := filepath.Glob(dir + ".half-*/*"); len(half) > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				return
			}
			select {
			case <-saved:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return k.Engine.Save(ctx, role, dir)
}

// updateBatch are rows with random tokens and advantages; the old log-probabilities are made up, so that ratios differ.
func updateBatch(vocab int) []schema.BatchRow {
	r := rand.New(rand.NewPCG(4, 4))
	var out []schema.BatchRow
	for i := range 12 {
		row := schema.BatchRow{
			GroupID: fmt.Sprint("g", i/4), TrajectoryID: fmt.Sprintf("t%02d", i), Count: 1, Weight: 1,
		}
		for k := range 20 + r.IntN(20) {
			row.TokenIDs = append(row.TokenIDs, int32(r.IntN(vocab)))
			row.LossMask = append(row.LossMask, int32(min(k, 1)))
			row.Advantages = append(row.Advantages, float32(r.NormFloat64()))
			row.OldLogProbs = append(row.OldLogProbs, float32(-6-r.Float64()))
		}
		out = append(out, row)
	}
	return out
}

// update is an activity's work: load, two epochs of two optimiser steps, save. It gives the checkpoint's digest.
func update(ctx context.Context, e policy.Engine, from, to string) (string, error) {
	if err := e.Load(ctx, policy.RolePolicy, from, true); err != nil {
		return "", err
	}
	_, err := learner.Update(ctx, e, updateBatch(medium.Vocab), learner.Config{
		Minibatches: 2, Epochs: 2, MicrobatchTokens: 70, Temperature: 1, Shuffle: rand.New(rand.NewPCG(1, 1)),
		Objective: loss.Objective{
			Policy: loss.PPOClip{Low: 0.2, High: 0.28}, Aggregation: loss.Aggregation{Mode: loss.TokenMean},
		},
		Optimizer: policy.StepOptions{LR: 1e-3,
			Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.1}, ClipNorm: 1},
	}, nil)
	if err != nil {
		return "", err
	}
	return e.Save(ctx, policy.RolePolicy, to)
}

// TestRealKilled: an update whose engine is killed fails with ErrLost, and done again with the same engine gives the
// checkpoint of an undisturbed one. To start PyTorch takes seconds, so three moments stand for all.
func TestRealKilled(t *testing.T) {
	pythontest.NeedLong(t)
	e, _ := openReal(t, func(*Options) {})
	ctx, from := t.Context(), initialised(t, medium, 3)
	want, err := update(ctx, e, from, filepath.Join(t.TempDir(), "undisturbed"))
	require.NoError(t, err)
	t.Logf("undisturbed: %s", want)
	for _, c := range []struct {
		phase, at string
		times     int
	}{
		{"between forward and backward", "backward", 1},
		{"between optimiser steps", "forward", 7},
		{"during save", "save", 0},
	} {
		t.Run(c.phase, func(t *testing.T) {
			dir := t.TempDir()
			_, err := update(ctx, &killer{e, c.at, c.times}, from, filepath.Join(dir, "saved"))
			for tries := 0; c.at == "save" && err == nil && tries < 20; tries++ { // the save was over before the kill
				require.NoError(t, os.RemoveAll(filepath.Join(dir, "saved")))
				_, err = update(ctx, &killer{e, c.at, c.times}, from, filepath.Join(dir, "saved"))
			}
			require.ErrorIs(t, err, policy.ErrLost)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left, "nothing half written")
			got, err := update(ctx, e, from, filepath.Join(dir, "saved"))
			require.NoError(t, err)
			require.Equal(t, want, got)
			t.Logf("killed %s: %s", c.phase, got)
		})
	}
}

// TestRealStuck: an engine that is found hanging says where.
func TestRealStuck(t *testing.T) {
	pythontest.NeedLong(t)
	e, log := openReal(t, func(*Options) {})
	long := medium
	long.Positions = 30_100 // half a minute, where the stacks may take eight seconds
	ctx, from := t.Context(), initialised(t, long, 3)
	require.NoError(t, e.Load(ctx, policy.RolePolicy, from, false))
	p, working := e.latest(), untilBeat(t, e)
	p.opts.stackGrace = 8 * time.Second
	go func() {
		<-working.Done()
		p.endHung(time.Second)
	}()
	_, err := e.Generate(ctx, policy.GenerateRequest{
		Role: policy.RolePolicy, Prefixes: randomRows(1, long.Vocab, 10), Streams: []uint64{1},
		MaxTokens: []int{30_000}, Temperature: 1,
	})
	var lost *lostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, lostHung, lost.Reason)
	require.Contains(t, lost.Stacks, "generate.py", "the working thread's stack")
	require.Contains(t, lost.Stacks, "server.py", "and the reader's")
	require.Contains(t, log.String(), "generate.py")
}

// TestRealCancelled: a long call ends when it is cancelled, and the engine serves on.
func TestRealCancelled(t *testing.T) {
	e := fromPool(t, 1)
	defer e.Close()
	starts := e.Usage().Starts
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, initialised(t, medium, 3), true))
	rows := randomRows(1, medium.Vocab, 900, 900, 900, 900)
	for name, call := range map[string]func(context.Context) error{
		"generate": func(ctx context.Context) error {
			_, err := e.Generate(ctx, policy.GenerateRequest{
				Role: policy.RolePolicy, Prefixes: rows, Streams: []uint64{1, 2, 3, 4},
				MaxTokens: []int{100, 100, 100, 100}, Temperature: 1,
			})
			return err
		},
		"forward": func(ctx context.Context) error {
			_, err := e.Forward(ctx, policy.ForwardRequest{
				Role: policy.RolePolicy, Sequences: slices.Repeat(rows, 8), Temperature: 1, Outputs: policy.OutLogProb,
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, call(untilBeat(t, e.Engine)), context.Canceled)
			require.Equal(t, starts, e.Usage().Starts)
			_, err := e.Forward(t.Context(), one)
			require.NoError(t, err)
		})
	}
}

// TestRealOneRankOfTwoDies: all ranks end.
func TestRealOneRankOfTwoDies(t *testing.T) {
	pythontest.NeedLong(t)
	e, _ := openReal(t, func(o *Options) { o.Ranks, o.Threads = 2, 1 })
	ctx, from := t.Context(), initialised(t, tiny, 3)
	require.NoError(t, e.Load(ctx, policy.RolePolicy, from, true))
	_, err := e.Forward(ctx, one)
	require.NoError(t, err)
	p := e.latest()
	require.Len(t, p.tree.ranks, 2)
	victim := p.tree.ranks[0]
	if victim.Pid == p.hello.PID {
		victim = p.tree.ranks[1]
	}
	require.NoError(t, victim.Kill())
	_, err = e.Forward(ctx, one)
	require.ErrorIs(t, err, policy.ErrLost)
	for _, r := range p.tree.ranks {
		_, there := parents()[r.Pid]
		require.False(t, there)
	}
}

// TestRealResidentState: what is resident is not read again; a folder whose files have changed is.
func TestRealResidentState(t *testing.T) {
	e := fromPool(t, 1)
	defer e.Close()
	ctx, from := t.Context(), initialised(t, tiny, 3)
	reused := func() string {
		lines := strings.Split(strings.TrimSpace(e.log.String()), "\n")
		for i := len(lines) - 1; ; i-- {
			if _, after, ok := strings.Cut(lines[i], "reused="); ok {
				return after[:strings.Index(after, " seconds")]
			}
		}
	}
	load := func(dir string) {
		t.Helper()
		require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
	}
	load(from)
	require.Equal(t, "[]", reused())
	load(from)
	require.Contains(t, reused(), "weights")
	rows := randomRows(1, tiny.Vocab, 20)
	backward(t, e, policy.RolePolicy, forwardKept(t, e, policy.RolePolicy, rows).Kept, rows, 1)
	_, err := e.Step(ctx, policy.RolePolicy, policy.StepOptions{LR: 1e-2,
		Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}})
	require.NoError(t, err)
	load(from)
	require.Equal(t, "[]", reused(), "a step has changed the model")
	saved := filepath.Join(t.TempDir(), "saved")
	backward(t, e, policy.RolePolicy, forwardKept(t, e, policy.RolePolicy, rows).Kept, rows, 1)
	_, err = e.Step(ctx, policy.RolePolicy, policy.StepOptions{LR: 1e-2,
		Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8}})
	require.NoError(t, err)
	_, err = e.Save(ctx, policy.RolePolicy, saved)
	require.NoError(t, err)
	load(saved)
	require.Contains(t, reused(), "weights optimizer")
	before, err := e.Forward(ctx, one)
	require.NoError(t, err)
	// The same folder with other weights in it.
	other, err := os.ReadFile(filepath.Join(initialised(t, tiny, 4), checkpoint.FileWeights))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(saved, checkpoint.FileWeights), other, 0o600))
	load(saved)
	require.NotContains(t, reused(), "weights")
	after, err := e.Forward(ctx, one)
	require.NoError(t, err)
	require.NotEqual(t, before.LogProbs, after.LogProbs)
}

package torch

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// tiny is a model that tests train in milliseconds.
var tiny = checkpoint.Shape{
	Vocab: 23, Hidden: 16, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 24, Positions: 128, RopeTheta: 10000,
	NormEps: 1e-6, EOS: []int32{3}, Pad: -1,
}

func initialised(t testing.TB, s checkpoint.Shape, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, checkpoint.Init(dir, s, seed, map[string][]byte{"tokenizer.json": []byte("{}")}))
	return dir
}

// real are options for the engine itself, and its log; the test is skipped where Python has no torch.
func real(t testing.TB) (Options, *transcript.Transcript) {
	t.Helper()
	n := &transcript.Transcript{}
	return Options{
		Python: torchPython(t), Deterministic: true, Threads: 1, StartLimit: 5 * time.Minute,
		HangLimit: 5 * time.Minute, CancelLimit: 5 * time.Minute,
		Logger: slog.New(slog.NewTextHandler(n, nil)),
	}, n
}

// openReal opens an engine of a test's own.
func openReal(t testing.TB, change func(*Options)) (*Engine, *transcript.Transcript) {
	t.Helper()
	o, n := real(t)
	o.Dir = t.TempDir()
	change(&o)
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		left, err := os.ReadDir(o.Dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	return e, n
}

var foundPython struct {
	sync.Mutex
	exe string
}

func torchPython(t testing.TB) string {
	t.Helper()
	foundPython.Lock()
	defer foundPython.Unlock()
	if foundPython.exe == "" {
		exe, err := filepath.Abs(pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"))
		require.NoError(t, err)
		foundPython.exe = exe
	}
	return foundPython.exe
}

// pool keeps engines of the same settings: to start one takes seconds, most of them PyTorch's import. One that comes
// back is emptied by Unload.
var pool struct {
	sync.Mutex
	idle map[int][]*pooled // by ranks
	all  []*Engine
}

// pooled is an engine out of the pool; Close gives it back.
type pooled struct {
	*Engine
	ranks int
	log   *transcript.Transcript
	once  sync.Once
}

func fromPool(t testing.TB, ranks int) *pooled {
	t.Helper()
	pool.Lock()
	defer pool.Unlock()
	if idle := pool.idle[ranks]; len(idle) > 0 {
		pool.idle[ranks] = idle[:len(idle)-1]
		p := idle[len(idle)-1]
		return &pooled{Engine: p.Engine, ranks: ranks, log: p.log}
	}
	o, log := real(t)
	o.Ranks = ranks
	e, err := Open(t.Context(), o)
	require.NoError(t, err)
	pool.all = append(pool.all, e)
	return &pooled{Engine: e, ranks: ranks, log: log}
}

func (p *pooled) Close() error {
	var err error
	p.once.Do(func() {
		ctx := p.Engine.stop
		for _, role := range []policy.Role{policy.RolePolicy, policy.RoleReference, policy.RoleCritic} {
			if p.Unload(ctx, role) != nil {
				err = p.Engine.Close() // it is lost
				return
			}
		}
		pool.Lock()
		defer pool.Unlock()
		if pool.idle == nil {
			pool.idle = map[int][]*pooled{}
		}
		pool.idle[p.ranks] = append(pool.idle[p.ranks], p)
	})
	return err
}

func closePool() {
	for _, idle := range pool.idle {
		for _, e := range idle {
			_ = e.Engine.Close()
		}
	}
}

// sharedPIDs are the processes of the engines that tests share.
func sharedPIDs() (out []string) {
	pool.Lock()
	defer pool.Unlock()
	for _, e := range pool.all {
		out = append(out, strconv.Itoa(e.PID()))
	}
	return out
}

package activities

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/judge"
	"github.com/ropewalk/ropewalk/internal/metrics"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// Deps is what the stages of one worker share.
type Deps struct {
	records
	resolver
	execution
	// engines trains and generates; see draft.trainer and draft.sampler.
	engines *enginepool.Pool
	scratch string // folder for checkpoints that are made
	memory  int64  // of the machine, in bytes, if this worker runs models on it; else 0
	// modelFolder holds models that recipes name without a path; "" if this worker has none. bucket opens other buckets
	// of its S3 server.
	modelFolder string
	bucket      func(name string) (store.Store, error)
	// Host names this worker's host; "" if the host has no queue of its own.
	Host string
	// Code is the digest of the program: the record says which code made what.
	Code string

	tokens *tokenizer.Tokenizer // for calc's policies and for imports
	// held keeps the episodes of shards between their turns.
	held *held
	// segmentEvery is how often finished turns of a shard are kept; 0: the usual time.
	segmentEvery time.Duration
	// lookEvery is how often a shard looks for a newer policy; 0: the usual time.
	lookEvery time.Duration
	// servers holds sessions with MCP servers.
	servers *mcp.Pool
	// judgements holds verdicts of judges that are perhaps not committed yet.
	judgements *judge.Memory
	// functions holds the processes of users' reward functions.
	functions *remote.Functions
	// ledgers count, for each run, how the samples of its finished steps fared on each problem.
	ledgers recent[string, *ledger]
	// prepared holds the tasks that runs keep, by the manifests that decided on them.
	prepared recent[string, *prepared]
	// stages counts executions of stages; nil: nothing is counted.
	stages *metrics.Stages
	tracer *trace.Tracer // nil: nothing is traced
	// superseded reports whether another build of this worker's deployment is current; nil: it belongs to none.
	superseded func(ctx context.Context) (bool, error)
	confirms   bool // see confirmed
}

// Options are a worker's resources and settings.
type Options struct {
	Store   store.Store
	Trainer policy.Trainer   // trains for recipes with engine.kind cpu
	Rollout policy.Sampler   // generates for them
	Torch   enginepool.Torch // nil: no recipe with engine.kind torch can run here
	Sandbox sandbox.Executor
	Tier    sandbox.Tier // tier of Sandbox, at most that of Sessions
	// Sessions makes interpreters that live as long as a trajectory, at most MostSessions at once; nil: this worker
	// has none.
	Sessions     sandbox.Sessions
	MostSessions int    // 0: the pool's default
	Code         string // SHA-256 of the program, hex
	CacheBytes   int64  // memory for verified manifests and shards; 0 keeps none
	Scratch      string // folder for checkpoints that are loaded or saved
	// Memory is the machine's, in bytes: a recipe whose CPU engine cannot fit is refused. 0 refuses none.
	Memory int64
	// Score is the forward pass that inference servers are compared with; nil: no recipe can name any.
	Score servers.Score
	// Fetch opens the remote files that an environment's settings name; nil: this worker opens none.
	Fetch func(ctx context.Context, address string) (io.ReadCloser, error)
	// Models is the folder of the models that recipes name without a path; "" if this worker has none.
	Models string
	// Bucket opens another bucket of the worker's S3 server; nil: this worker opens none.
	Bucket func(name string) (store.Store, error)
	Host   string // name of the host whose own queue this worker also polls; "" if it polls none
	// Stages and Engines count what this worker does; nil counts nothing.
	Stages  *metrics.Stages
	Engines *metrics.Engines
	Tracer  *trace.Tracer // nil traces nothing
	// Superseded reports whether another build of this worker's deployment is current; nil if it belongs to none.
	Superseded func(ctx context.Context) (bool, error)
	// Confirms has the worker use programs and secrets that a recipe names only if someone with the store's keys has
	// asked for the run: others can start workflows too.
	Confirms bool
}

// New makes the shared state of the stages. The caller that opened the engines, the sandbox and the sessions closes
// them, after Close.
func New(o Options) (*Deps, error) {
	tokens, err := rollout.NewTokenizer()
	if err != nil {
		return nil, err
	}
	record := commit.New(o.Store).WithCache(commit.NewCache(o.CacheBytes))
	var observer enginepool.Observer
	if o.Engines != nil { // an interface with a nil pointer in it is not nil
		observer = o.Engines
	}
	d := &Deps{
		records: records{o.Store, record}, resolver: newResolver(record), Code: o.Code, tokens: tokens,
		execution: execution{Sandbox: o.Sandbox, Tier: o.Tier, sessions: o.Sessions},
		engines: enginepool.New(enginepool.Options{Record: record, Trainer: o.Trainer, Sampler: o.Rollout,
			Torch: o.Torch, Scratch: o.Scratch, Score: o.Score, Observer: observer}),
		scratch: o.Scratch, memory: o.Memory, Host: o.Host, modelFolder: o.Models, bucket: o.Bucket,
		stages: o.Stages, tracer: o.Tracer, superseded: o.Superseded, confirms: o.Confirms,
		held:     newHeld(heldBytes),
		ledgers:  recent[string, *ledger]{most: ledgersKept},
		prepared: recent[string, *prepared]{most: preparedKept},
		servers:  mcp.NewPool(), judgements: &judge.Memory{}, functions: &remote.Functions{},
	}
	d.fetch = o.Fetch
	if o.Sessions != nil {
		d.Notebooks = session.New(o.Sessions, session.Settings{Most: o.MostSessions})
	}
	return d, nil
}

// over returns the state of stages that need no engine and no sandbox, over another store.
func (d *Deps) over(objects store.Store) *Deps {
	record := commit.New(objects)
	return &Deps{records: records{objects, record}, resolver: newResolver(record), Code: d.Code, tokens: d.tokens}
}

// Close ends the trajectories' interpreters, the sessions with MCP servers and the PyTorch engines.
func (d *Deps) Close() error {
	stats := d.Record.CacheStats()
	slog.Info("read cache", "hits", stats.Hits, "misses", stats.Misses, "objects", stats.Objects, "bytes", stats.Bytes)
	err := errors.Join(d.engines.Close(), d.servers.Close())
	if d.Notebooks == nil {
		return err
	}
	return errors.Join(err, d.Notebooks.Close())
}

func callLimits(s recipes.Sandbox) sandbox.Limits {
	return sandbox.Limits{
		CPU:         time.Duration(s.CPUSeconds * float64(time.Second)),
		Wall:        time.Duration(s.WallSeconds * float64(time.Second)),
		MemoryBytes: int64(s.MemoryMB) << 20,
		OutputBytes: s.OutputKB << 10,
	}
}

// logTimings logs that measured times of calls could not be kept. They are not part of the result, so the stage does
// not fail.
func logTimings(err error) {
	if err != nil {
		slog.Warn("keep measured times", "error", err)
	}
}

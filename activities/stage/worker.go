// Package stage is the frame in which every stage runs, wherever it does: as an activity of its own or, by the Runner,
// within one activity for several stages. The frame adopts or commits, sends heartbeats, measures, and contains panics.
//
// Glossary. A *draft* is a stage's output before its commit. To *adopt* is to return what an earlier attempt has
// committed, without doing the work again. A stage *leases* the engine that it trains or samples with until it ends. An
// *Env* is what the stages of one activity share.
package stage

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/metrics"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/store"
)

// Worker is what the stages of one worker share.
type Worker struct {
	record.Records
	// Recipes reads recipes, Execution runs programs, and Engines train and generate; see Draft.Trainer.
	Recipes   resolver.Recipes
	Execution resource.Execution
	Engines   resource.Engines
	// Episodes keeps the episodes of shards between their turns.
	Episodes *resource.Episodes
	// Code is the digest of the program: the record says which code made what.
	Code string
	// Activities are the worker's stages, by the names of their activities.
	Activities map[string]Activity
	// SegmentEvery is how often finished turns of a shard are kept, and LookEvery how often a shard looks for a newer
	// policy; 0: the usual time.
	SegmentEvery, LookEvery time.Duration
	// Counts counts executions of stages; nil: nothing is counted.
	Counts *metrics.Stages
	Tracer *trace.Tracer // nil: nothing is traced
	// Superseded reports whether another build of this worker's deployment is current; nil: it belongs to none.
	Superseded func(ctx context.Context) (bool, error)
	// Judge applies the stop rule of an experiment; see Options.
	Judge func(ctx context.Context, in api.JudgeTrialsInput) (api.JudgedTrials, error)
}

// Close ends the trajectories' interpreters, the sessions with MCP servers and the PyTorch engines.
func (d *Worker) Close() error {
	stats := d.Record.CacheStats()
	slog.Info("read cache", "hits", stats.Hits, "misses", stats.Misses, "objects", stats.Objects, "bytes", stats.Bytes)
	return errors.Join(d.Engines.Pool.Close(), d.Execution.Close())
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
	Score policy.Score
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
	// Judge applies the stop rule of an experiment. It reads the record by SQL, which no stage does; nil: this worker
	// judges no trials.
	Judge func(ctx context.Context, in api.JudgeTrialsInput) (api.JudgedTrials, error)
	// Confirms has the worker use programs and secrets that a recipe names only if someone with the store's keys has
	// asked for the run: others can start workflows too.
	Confirms bool
}

// New makes a worker without stages. The caller that opened the engines, the sandbox and the sessions closes them,
// after Close.
func New(o Options) (*Worker, error) {
	tokens, err := rollout.NewTokenizer()
	if err != nil {
		return nil, err
	}
	writer := commit.New(o.Store).WithCache(commit.NewCache(o.CacheBytes))
	var observer enginepool.Observer
	if o.Engines != nil { // an interface with a nil pointer in it is not nil
		observer = o.Engines
	}
	r := record.Records{Store: o.Store, Record: writer}
	d := &Worker{
		Records: r, Recipes: resolver.New(r, tokens), Code: o.Code,
		Engines: resource.Engines{Host: o.Host, Scratch: o.Scratch, Memory: o.Memory,
			Pool: enginepool.New(enginepool.Options{Record: writer, Trainer: o.Trainer, Sampler: o.Rollout,
				Torch: o.Torch, Scratch: o.Scratch, Score: o.Score, Observer: observer})},
		Episodes: resource.NewEpisodes(resource.EpisodeBytes), Counts: o.Stages, Tracer: o.Tracer,
		Superseded: o.Superseded, Judge: o.Judge,
	}
	d.Recipes.Fetch, d.Recipes.Models, d.Recipes.Bucket = o.Fetch, o.Models, o.Bucket
	d.Execution = resource.NewExecution(o.Sandbox, o.Tier, o.Sessions, o.MostSessions, o.Store, &d.Recipes)
	d.Execution.Confirms = o.Confirms
	return d, nil
}

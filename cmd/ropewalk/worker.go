package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/ropewalk/ropewalk/activities"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/experiment/trials"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/metrics"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

type workerOptions struct {
	queues   []string
	threads  int
	blas     string
	sandbox  int
	sessions int
	// services run tool calls instead of the worker's own sandbox
	services []string
	// host names this host and its queue; address is where other hosts reach it
	host, address string
	hostTLS       gang.TLS // authenticates and encrypts connections to other hosts
	updateDevices int      // devices of one update
	cache         int      // MiB of the read cache; negative: not given
	deployment    deploymentOptions
	metricsOptions
}

func workerCommand(con *console) *cobra.Command {
	o := workerOptions{}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "poll task queues and run workflows and activities",
		Long: "worker connects to the Temporal server that TEMPORAL_ADDRESS or temporal.toml names and to the store\n" +
			"that the AWS_* variables name. It refuses a store without conditional puts.",
		Example: "  ropewalk worker\n  ropewalk worker --queues sandbox --sandbox-workers 16",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), con) },
	}
	cmd.Flags().StringSliceVar(&o.queues, "queues", nil, "task queues to poll (default all: cpu, rollout, sandbox, "+
		"gpu)")
	cmd.Flags().IntVar(&o.threads, "threads", 0, "threads of the CPU engine (default: all cores); results are equal "+
		"only for equal numbers of threads")
	cmd.Flags().StringVar(&o.blas, "blas", "", "openblas or gonum (default: openblas where it is found)")
	cmd.Flags().IntVar(&o.sandbox, "sandbox-workers", 0, "tool calls at once (default: as many as cores)")
	cmd.Flags().IntVar(&o.sessions, "sandbox-sessions", 256, "interpreters kept at once for recipes with "+
		"sandbox.session, one per trajectory; one that was closed to make room is rebuilt when its trajectory "+
		"continues")
	cmd.Flags().StringSliceVar(&o.services, "sandbox-address", nil, "run tool calls in sandbox services at these "+
		"addresses (ropewalk sandbox serve); "+tokenVariable+" holds their token")
	cmd.Flags().StringVar(&o.host, "host", "", "this host's name; a worker of the queue gpu also polls gpu.NAME, to "+
		"which the stages of a run return (default: "+hostVariable+", else the system's host name)")
	cmd.Flags().StringVar(&o.address, "host-address", "", "IP address at which other hosts reach this one, for "+
		"recipes with engine.hosts (default: "+addressVariable+", else the address used to reach Temporal)")
	o.addHostTLS(cmd.Flags())
	cmd.Flags().IntVar(&o.updateDevices, "update-devices", 1, "GPUs of one update (the recipes' engine.devices); the "+
		"number of updates at once is the host's GPUs divided by it")
	cmd.Flags().IntVar(&o.cache, "cache-mb", -1, "MiB of manifests and shards kept in memory once they are verified, "+
		"so that stages do not fetch them again; 0: none (default: "+cacheVariable+", else "+strconv.Itoa(
		defaultCache)+")")
	o.deployment.add(cmd.Flags())
	o.add(cmd.Flags(), metricsVariable)
	return cmd
}

func (o workerOptions) run(ctx context.Context, con *console) error {
	if o.sessions < 1 {
		return badInput("--sandbox-sessions: must be ≥ 1, got %d", o.sessions)
	}
	if err := o.checkHost(); err != nil {
		return err
	}
	if _, err := o.cacheBytes(); err != nil {
		return err
	}
	conf, err := temporalconf.Load("")
	if err != nil {
		return badinput.Of(err)
	}
	if err := o.checkQueues(conf); err != nil {
		return err
	}
	if err := o.checkHostTLS(); err != nil {
		return err
	}
	program, err := thisVersion()
	if err != nil {
		return err
	}
	code := program.Code
	worker.SetBinaryChecksum(code) // or else the SDK would read the program once more
	if err := o.deployment.settle(code); err != nil {
		return err
	}
	tracer, err := trace.FromEnv("worker")
	if err != nil {
		return badinput.Of(err)
	}
	defer tracer.Close()
	counts, stop, err := o.serve(con, "worker", code)
	if err != nil {
		return err
	}
	defer stop()
	var objects store.Store
	if err := persist(ctx, func() (err error) {
		if objects, err = o.openStore(ctx, counts.Requests()); err != nil {
			return err
		}
		if err := store.Probe(ctx, objects); err != nil {
			return err
		}
		if err := commit.PutProgram(ctx, objects, schema.Program(program)); err != nil {
			return err
		}
		return commit.PutSpecification(ctx, objects)
	}); err != nil {
		return err
	}
	c, options, err := connectTemporal(ctx, conf, counts)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := o.findAddress(options.HostPort); err != nil {
		return err
	}
	local := stack.IsLocal(options.HostPort)
	deps, devices, closeDeps, err := o.deps(ctx, objects, c, conf, code, counts, tracer, local)
	if err != nil {
		return err
	}
	defer closeDeps()
	return o.poll(ctx, c, conf, deps, devices)
}

// deps opens the engines and the sandbox, and counts the GPUs; the returned function closes them.
func (o workerOptions) deps(ctx context.Context, objects store.Store, c client.Client, conf temporalconf.Config,
	code string, counts *metrics.Process, tracer *trace.Tracer, local bool) (_ *stage.Worker,
	devices int, _ func(), _ error) {
	var opened []io.Closer
	closeAll := func() {
		for _, c := range opened {
			if err := c.Close(); err != nil {
				slog.Warn("close", "error", err)
			}
		}
	}
	fail := func(err error) (*stage.Worker, int, func(), error) { closeAll(); return nil, 0, nil, err }
	cacheBytes, err := o.cacheBytes()
	if err != nil {
		return fail(err)
	}
	scratch, err := os.MkdirTemp("", "ropewalk-worker-")
	if err != nil {
		return fail(fmt.Errorf("make a scratch folder: %w", err))
	}
	opened = append(opened, scratchFolder(scratch))
	box, err := o.openSandbox(ctx, scratch)
	if err != nil {
		return fail(err)
	}
	opened = append(opened, box)
	engine := cpu.Options{Threads: o.threads, BLAS: o.blas}
	trainer, err := cpu.Open(engine)
	if err != nil {
		return fail(err)
	}
	opened = append(opened, trainer)
	generator, err := cpu.Open(engine)
	if err != nil {
		return fail(err)
	}
	opened = append(opened, generator)
	var torch enginepool.Torch
	if o.wants("gpu") || o.generates() {
		pool, err := enginepool.OpenMaker(enginepool.MakerOptions{State: stateFolder(), Scratch: scratch,
			Threads: o.threads, Gangs: o.gangs(c)})
		if err != nil {
			return fail(err)
		}
		opened = append(opened, pool)
		torch, devices = pool, pool.Devices()
		if err := watchDevices(counts, pool); err != nil {
			return fail(err)
		}
	}
	slog.Info("worker", "engine", trainer.Describe(), "code", code, "host", o.host, "address", o.address, "devices",
		devices, "deployment", o.deployment.name, "build", o.deployment.build)
	memory := int64(0)
	if o.wants("gpu") && o.generates() { // the models run here
		memory = planning.HostMemory()
	}
	deps, err := activities.New(stage.Options{
		Memory: memory,
		Store:  objects, Trainer: trainer, Rollout: generator, Torch: torch, Code: code, Scratch: scratch,
		Host:   o.homeOf(),
		Fetch:  remoteFiles,
		Bucket: openBucket, Models: modelFolder(),
		CacheBytes: cacheBytes, Score: servers.ScoreWith(func() (policy.Engine, error) { return cpu.Open(engine) }),
		Sandbox: sandbox.NewOnce(counts.Sandbox(box.executor, box.tier)), Tier: box.tier,
		Sessions: box.sessions, MostSessions: o.sessions,
		Stages: counts.Stages(), Engines: counts.Engines(), Tracer: tracer,
		Superseded: o.deployment.superseded(c), Confirms: local, Judge: trials.Judge(objects, code),
	})
	if err != nil {
		return fail(err)
	}
	opened = slices.Insert(opened, 0, io.Closer(deps)) // closed before what it uses
	return deps, devices, closeAll, nil
}

// scratchFolder removes itself when closed.
type scratchFolder string

// Close implements io.Closer.
func (f scratchFolder) Close() error { return os.RemoveAll(string(f)) }

// codeDigest returns the SHA-256 of the running program, which the record calls its code.
func codeDigest() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the running program: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the running program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read the running program: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// poll runs a worker per queue until ctx ends.
func (o workerOptions) poll(ctx context.Context, c client.Client, conf temporalconf.Config, deps *stage.Worker,
	devices int) error {
	worker.SetStickyWorkflowCacheSize(conf.Worker.StickyCacheSize)
	failed := make(chan error, 8)
	var running []worker.Worker
	defer func() {
		for _, w := range running {
			w.Stop()
		}
	}()
	for _, q := range o.queuesOf(conf, devices) {
		w := worker.New(c, q.Name, o.tuning(conf, q.Queue, failed))
		activities.Register(w, deps)
		if q.Queue.WorkflowPollers > 0 {
			workflows.Register(w)
		}
		if err := w.Start(); err != nil {
			return fmt.Errorf("poll queue %s: %w", q.Name, err)
		}
		running = append(running, w)
		slog.Info("poll", "queue", q.Name, "activities", q.MaxConcurrentActivities)
	}
	if err := stack.WorkerReady(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

func (o workerOptions) wants(queue string) bool {
	return len(o.queues) == 0 || slices.Contains(o.queues, queue)
}

func (o workerOptions) tuning(conf temporalconf.Config, q temporalconf.Queue, failed chan<- error) worker.Options {
	return worker.Options{
		DeploymentOptions:                      o.deployment.options(),
		MaxConcurrentActivityExecutionSize:     q.MaxConcurrentActivities,
		MaxConcurrentActivityTaskPollers:       q.ActivityPollers,
		MaxConcurrentWorkflowTaskPollers:       max(q.WorkflowPollers, 2),
		DisableWorkflowWorker:                  q.WorkflowPollers == 0,
		MaxConcurrentWorkflowTaskExecutionSize: conf.Worker.MaxConcurrentWorkflowTasks,
		WorkerStopTimeout:                      conf.Worker.StopTimeout,
		MaxHeartbeatThrottleInterval:           conf.Worker.MaxHeartbeatThrottle,
		DefaultHeartbeatThrottleInterval:       conf.Worker.MaxHeartbeatThrottle,
		OnFatalError: func(err error) {
			select {
			case failed <- errors.Join(errors.New("worker lost its server"), err):
			default:
			}
		},
	}
}

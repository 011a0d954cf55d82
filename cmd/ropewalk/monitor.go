package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/monitor"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/schema"
)

type monitorOptions struct {
	address string
	runs    int
	every   time.Duration
}

func monitorCommand(con *console) *cobra.Command {
	o := monitorOptions{}
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "serve metrics about runs and task queues to Prometheus",
		Long: "monitor polls Temporal every few seconds and serves metrics at GET /metrics: the state, step and\n" +
			"figures of each run, the age of the task queues and their workers, and how long Temporal and the\n" +
			"bucket keep their data. It uses the servers that the environment names, or those of the running local\n" +
			"stack, and starts none. docs/operate.md",
		Example: "  ropewalk monitor\n  ropewalk monitor --metrics-address 0.0.0.0:9464 --runs 200",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), con) },
	}
	cmd.Flags().StringVar(&o.address, "metrics-address", "127.0.0.1:9464", "serve Prometheus' metrics at GET /metrics "+
		"on this address; port 0 takes a free one")
	cmd.Flags().IntVar(&o.runs, "runs", monitor.UsualRuns, "number of runs with their own series; the "+
		"others are only counted")
	cmd.Flags().DurationVar(&o.every, "every", monitor.UsualEvery, "how often the servers are asked")
	return cmd
}

func (o monitorOptions) run(ctx context.Context, con *console) error {
	if o.runs < 1 {
		return badInput("--runs: must be ≥ 1, got %d", o.runs)
	}
	if o.every < time.Second {
		return badInput("--every: must be ≥ 1s, got %s", o.every)
	}
	_, running, err := stack.TemporalNow()
	if err != nil {
		return err
	}
	if !running {
		return badInput("no Temporal server is named (TEMPORAL_ADDRESS, temporal.toml), and no local stack runs " +
			"here; `ropewalk up` starts one")
	}
	s, err := con.connector().Join(ctx, runs.NeedTemporal)
	if err != nil {
		return err
	}
	defer s.Close()
	stop, err := metricsOptions{at: o.address}.watch(ctx, con, "monitor", s, o)
	if err != nil {
		return err
	}
	defer stop()
	select {
	case <-ctx.Done():
		return nil
	case <-s.Lease.Done():
		return s.Lost()
	}
}

// monitor makes a command that has the servers serve what a monitor serves, if an address is given.
func (o metricsOptions) monitor(ctx context.Context, con *console, kind string, s *runs.Session) (func(), error) {
	if o.at == "" {
		return func() {}, nil
	}
	return o.watch(ctx, con, kind, s, monitorOptions{})
}

// watch serves the metrics of a session's servers until the returned function is called.
func (o metricsOptions) watch(ctx context.Context, con *console, kind string, s *runs.Session,
	w monitorOptions) (func(), error) {
	conf, err := temporalconf.Load("")
	if err != nil {
		return nil, err
	}
	code, err := codeDigest()
	if err != nil {
		return nil, err
	}
	m := monitor.New(monitor.Options{Temporal: s.Temporal, Namespace: s.Lease.Addresses().Namespace,
		Queues: watchedQueues(conf), MostRuns: w.runs, Every: w.every, Expiry: expiryOf(s)})
	counts, stop, err := o.serve(con, kind, code)
	if err != nil {
		return nil, err
	}
	if err := counts.Register(m); err != nil {
		stop()
		return nil, err
	}
	watching, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(watching) }()
	return func() { end(); <-ended; stop() }, nil
}

// watchedQueues are the queues of temporal.yaml.
func watchedQueues(conf temporalconf.Config) (out []monitor.Queue) {
	for _, q := range conf.Queues.All() {
		out = append(out, monitor.Queue{Name: q.Name, Workflows: q.WorkflowPollers > 0})
	}
	return out
}

// expiring is a store that says how long its bucket keeps objects.
type expiring interface {
	Expiry(ctx context.Context, prefixes []string) (time.Duration, bool, error)
}

// expiryOf asks the session's store how long it keeps the record; nil if it cannot say.
func expiryOf(s *runs.Session) func(context.Context) (time.Duration, bool, error) {
	bucket, ok := s.Store.(expiring)
	if !ok {
		return nil
	}
	return func(ctx context.Context) (time.Duration, bool, error) {
		return bucket.Expiry(ctx, schema.RecordPrefixes())
	}
}

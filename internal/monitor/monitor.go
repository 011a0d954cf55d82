package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/ropewalk/ropewalk/internal/runs"
)

// Temporal is the part of Temporal's client that a monitor uses.
type Temporal interface {
	runs.Describer
	runs.Querier
	// ListWorkflow lists workflows, the newest first.
	ListWorkflow(ctx context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (
		*workflowservice.ListWorkflowExecutionsResponse, error)
	// WorkflowService is the server's own interface.
	WorkflowService() workflowservice.WorkflowServiceClient
}

// Options are what a monitor watches.
type Options struct {
	Temporal  Temporal
	Namespace string
	Queues    []Queue
	// Expiry returns how long the bucket keeps an object of the record; false if it keeps them for ever. It may be nil.
	Expiry func(ctx context.Context) (time.Duration, bool, error)
	// MostRuns bounds the runs that are labels; 0 is UsualRuns.
	MostRuns int
	Every    time.Duration // between two refreshes; 0 is UsualEvery
	Now      func() time.Time
}

// Queue is a task queue.
type Queue struct {
	Name      string
	Workflows bool // it has workflow tasks, too
}

// Usual values of Options.
const (
	UsualRuns  = 50
	UsualEvery = 15 * time.Second
)

// patience bounds one refresh.
const patience = 30 * time.Second

// Monitor implements prometheus.Collector. Make one with New.
type Monitor struct {
	o        Options
	progress map[string]progress // by run; only Refresh uses it

	mu   sync.Mutex
	last snapshot
}

// progress is what was last seen of a run, and since when it has been so.
type progress struct {
	seen  string
	since time.Time
}

// snapshot is what the servers said at one refresh.
type snapshot struct {
	at        time.Time // of the latest refresh that succeeded; zero before the first
	up        bool      // the latest refresh succeeded
	open      int
	states    map[string]int // open runs by state
	runs      []run
	queues    []queue
	retention map[string]time.Duration // of temporal and of the store
}

// New makes a monitor. It asks nothing yet.
func New(o Options) *Monitor {
	o.MostRuns, o.Every = cmp.Or(o.MostRuns, UsualRuns), cmp.Or(o.Every, UsualEvery)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Monitor{o: o, progress: map[string]progress{}}
}

// Run refreshes until ctx ends. A refresh that fails is logged, and the runs and queues of the one before stay.
func (m *Monitor) Run(ctx context.Context) {
	tick := time.NewTicker(m.o.Every)
	defer tick.Stop()
	for {
		if err := m.Refresh(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "monitor", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Refresh asks the servers once. It must not run twice at the same time.
func (m *Monitor) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	next, err := m.look(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.last.up = false
		return err
	}
	m.last = next
	return nil
}

func (m *Monitor) look(ctx context.Context) (snapshot, error) {
	s := snapshot{at: m.o.Now(), up: true, retention: map[string]time.Duration{}}
	if err := m.lookAtRuns(ctx, &s); err != nil {
		return s, err
	}
	var err error
	if s.queues, err = m.lookAtQueues(ctx); err != nil {
		return s, err
	}
	return s, m.lookAtRetention(ctx, &s)
}

// lookAtRetention asks how long Temporal keeps closed workflows, and the bucket its objects.
func (m *Monitor) lookAtRetention(ctx context.Context, s *snapshot) error {
	d, err := m.o.Temporal.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: m.o.Namespace})
	if err != nil {
		return fmt.Errorf("describe namespace %s: %w", m.o.Namespace, err)
	}
	s.retention["temporal"] = d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if m.o.Expiry == nil {
		return nil
	}
	kept, limited, err := m.o.Expiry(ctx)
	if err != nil {
		return errors.Join(errors.New("ask how long the bucket keeps objects"), err)
	}
	if limited {
		s.retention["store"] = kept
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
)

// sampleEvery is how often memory is sampled.
const sampleEvery = 200 * time.Millisecond

// numbered returns the call, extended to print its own number, and its whole output. No two verdicts are the same.
func (s *subject) numbered(i int) (sandbox.Call, string) {
	call := s.call
	call.Code = fmt.Sprintf("%s; print(%d)", call.Code, i)
	return call, fmt.Sprintf("%s%d\n", s.output, i)
}

// answer is the result of a numbered call.
type answer struct {
	broken error
	mixed  bool
	took   time.Duration
}

// askFor runs one numbered call.
func (b *benchmark) askFor(ctx context.Context, e sandbox.Executor, i int) (a answer) {
	call, output := b.numbered(i)
	began := time.Now()
	results, err := e.Run(ctx, []sandbox.Call{call})
	a.took, a.broken = time.Since(began), err
	if err != nil {
		return a
	}
	if len(results) != 1 {
		a.broken = fmt.Errorf("call %d has %d verdicts", i, len(results))
		return a
	}
	a.broken = check(results[0], output)
	a.mixed = results[0].Status == sandbox.StatusOK && results[0].Stdout != output
	return a
}

// burstThrough sends all calls to the service at once.
func (b *benchmark) burstThrough(ctx context.Context) (err error) {
	s, err := b.serve(ctx, "")
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.await(ctx, b.call, b.output); err != nil { // from here on numpy and sympy are loaded
		return err
	}
	client, err := dial(s.address)
	if err != nil {
		return err
	}
	defer closeAfter(client, &err)
	peak := watch(s.command.Process.Pid)
	answers := make([]answer, b.burst)
	var wait sync.WaitGroup
	began := time.Now()
	for i := range answers {
		wait.Go(func() {
			answers[i] = b.askFor(ctx, client, i)
			answers[i].took = time.Since(began)
		})
	}
	wait.Wait()
	spent := time.Since(began)
	most, err := peak()
	if err != nil {
		return err
	}
	server, err := bench.PeakResident(s.command.Process.Pid)
	if err != nil {
		return err
	}
	b.result.Burst = tell(answers, spent)
	b.result.Burst.PeakMB, b.result.Burst.ServerMB = mebibytes(most), mebibytes(server)
	return ctx.Err()
}

// tell counts the results of the calls.
func tell(answers []answer, spent time.Duration) *burst {
	t := &burst{Calls: len(answers), Seconds: spent.Seconds()}
	var took []time.Duration
	for _, a := range answers {
		switch {
		case a.mixed:
			t.Mixed++
		case a.broken != nil:
			if t.FirstBroken == "" {
				t.FirstBroken = a.broken.Error()
			}
		default:
			t.Answered++
			took = append(took, a.took)
		}
	}
	t.CallsPerS = float64(t.Answered) / t.Seconds
	if len(took) > 0 {
		s := summary(took)
		t.P50, t.P99 = s.P50, s.P99
	}
	return t
}

// watch samples the memory of a process and all its children until the returned function is called, which returns the
// highest number of bytes.
func watch(pid int) func() (int64, error) {
	stop, done := make(chan struct{}), make(chan struct{})
	var most int64
	var fault error
	go func() {
		defer close(done)
		for tick := time.NewTicker(sampleEvery); ; {
			u, err := bench.Tree(pid)
			if err != nil {
				fault = err
				return
			}
			most = max(most, u.Root+u.Others)
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() (int64, error) {
		close(stop)
		<-done
		return most, fault
	}
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
)

// Respond lets the policy of the given version write the next response of every episode that awaits one. If a batch
// fails or panics, Respond tries it once more. If the batch fails again, Respond finds the failing rows by bisection
// and excludes each with its reason. The other rows keep their responses.
//
// An error means that no episode has changed and that no single row caused the failure: ctx has ended, the engine is
// lost, out of memory or without its model, or every row fails. If a batch of one row fails, the engine is to blame
// unless it can still continue the first prefix of another episode.
//
// Each row draws from its own stream. So a row's response does not depend on the exclusion of other rows, except where
// the engine's numbers depend on the composition of the batch. policytest requires equal tokens, and log-probs that are
// equal up to rounding.
func (l *Loop) Respond(ctx context.Context, sampler policy.Sampler, version string, episodes []*Episode) error {
	return l.RespondLeft(ctx, sampler, version, episodes, episodes, false)
}

// RespondLeft is Respond for the episodes that a flow has left without their turn, among all. If the flow has the turn
// of others, the engine is not to blame for the failure of every row.
func (l *Loop) RespondLeft(ctx context.Context, sampler policy.Sampler, version string, left, all []*Episode,
	works bool) error {
	request, rows := l.NextRequest(left)
	if len(rows) == 0 {
		return nil
	}
	r := newResponder(l, sampler, request)
	if err := r.all(ctx); err != nil {
		return fmt.Errorf("generate responses of %s and %d more: %w", left[rows[0]].TrajectoryID, len(rows)-1, err)
	}
	if !works {
		if err := r.blameEngine(ctx, all, left[rows[0]], len(rows)); err != nil {
			return err
		}
	}
	var whole []int
	var answers policy.Generated
	for j, i := range rows {
		if err := r.failed[j]; err != nil {
			e := left[i]
			slog.WarnContext(ctx, "exclude a trajectory: the engine broke on it", "trajectory", e.TrajectoryID, "error",
				err, "stack", rescue.Stack(err))
			e.excludeTurn(Reason("engine", err.Error()), version)
			continue
		}
		whole = append(whole, i)
		answers = appendRows(answers, r.out, j, j+1)
	}
	return l.Absorb(ctx, left, whole, answers, version)
}

// responder collects the responses and failures of one request.
type responder struct {
	loop    *Loop
	sampler policy.Sampler
	request policy.GenerateRequest
	out     policy.Generated // by row
	failed  []error          // by row; nil if out has a response
}

func newResponder(l *Loop, sampler policy.Sampler, request policy.GenerateRequest) *responder {
	n := len(request.Prefixes)
	return &responder{
		loop: l, sampler: sampler, request: request, failed: make([]error, n),
		out: policy.Generated{Tokens: make([][]int32, n), LogProbs: make([][]float32, n),
			Entropies: make([][]float32, n), Finish: make([]policy.Finish, n), Top: make([][][]float32, n)},
	}
}

// all fills out and failed for every row.
func (r *responder) all(ctx context.Context) error {
	n := len(r.request.Prefixes)
	err := r.attempt(ctx, 0, n)
	if err == nil || engineBroke(ctx, err) {
		return err
	}
	slog.WarnContext(ctx, "generate once more: the batch failed", "rows", n, "error", err, "stack", rescue.Stack(err))
	if err = r.attempt(ctx, 0, n); err == nil {
		return nil
	}
	return r.halve(ctx, 0, n, err)
}

// halve finds the failing rows among [from, to), which failed together with err.
func (r *responder) halve(ctx context.Context, from, to int, err error) error {
	if engineBroke(ctx, err) {
		return err
	}
	if to-from == 1 {
		r.failed[from] = err
		return nil
	}
	middle := (from + to) / 2
	for _, half := range [][2]int{{from, middle}, {middle, to}} {
		err := r.attempt(ctx, half[0], half[1])
		if err != nil {
			err = r.halve(ctx, half[0], half[1], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// attempt asks for the responses of the rows [from, to). It changes out only if all of them are complete.
func (r *responder) attempt(ctx context.Context, from, to int) error {
	request := part(r.request, from, to)
	got, err := generate(ctx, r.sampler, request)
	if err != nil {
		return err
	}
	if err := r.loop.checkAnswers(request, got); err != nil {
		return err
	}
	copy(r.out.Tokens[from:to], got.Tokens)
	copy(r.out.LogProbs[from:to], got.LogProbs) // nothing, if the sampler gives none
	copy(r.out.Entropies[from:to], got.Entropies)
	copy(r.out.Finish[from:to], got.Finish)
	copy(r.out.Top[from:to], got.Top) // nothing, if it was not asked for
	return nil
}

// generate calls the sampler and turns a panic into an error.
func generate(ctx context.Context, sampler policy.Sampler, req policy.GenerateRequest) (out policy.Generated,
	err error) {
	err = rescue.Do(func() (err error) {
		out, err = sampler.Generate(ctx, req)
		return err
	})
	return out, err
}

// engineBroke reports whether an error of a batch cannot be the fault of a row.
func engineBroke(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	for _, whole := range []error{policy.ErrLost, policy.ErrOutOfMemory, policy.ErrNotLoaded, policy.ErrWrongVersion,
		context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, whole) {
			return true
		}
	}
	return false
}

// blameEngine returns an error if every row has failed and the engine cannot be shown to work.
func (r *responder) blameEngine(ctx context.Context, episodes []*Episode, first *Episode, rows int) error {
	for _, err := range r.failed {
		if err == nil {
			return nil
		}
	}
	if rows > 1 || !r.canServe(ctx, episodes, first) {
		return fmt.Errorf("generate responses: each of %d rows fails: %w", rows, r.failed[0])
	}
	return nil
}

// canServe reports whether the sampler generates one token after the first prefix of an episode other than the failing
// one.
func (r *responder) canServe(ctx context.Context, episodes []*Episode, fault *Episode) bool {
	for _, e := range episodes {
		if e == fault || len(e.Turns) == 0 || len(e.Turns[0].Response) == 0 {
			continue
		}
		probe := r.request
		probe.Prefixes, probe.Streams, probe.MaxTokens = [][]int32{e.Turns[0].Context}, []uint64{1}, []int{1}
		got, err := generate(ctx, r.sampler, probe)
		return err == nil && r.loop.checkAnswers(probe, got) == nil
	}
	return false
}

// part returns the request for the rows [from, to).
func part(req policy.GenerateRequest, from, to int) policy.GenerateRequest {
	req.Prefixes, req.Streams, req.MaxTokens = req.Prefixes[from:to], req.Streams[from:to], req.MaxTokens[from:to]
	return req
}

// appendRows appends the rows [from, to) of g.
func appendRows(out, g policy.Generated, from, to int) policy.Generated {
	out.Tokens = append(out.Tokens, g.Tokens[from:to]...)
	out.LogProbs = append(out.LogProbs, g.LogProbs[from:to]...)
	out.Entropies = append(out.Entropies, g.Entropies[from:to]...)
	out.Finish = append(out.Finish, g.Finish[from:to]...)
	out.Top = append(out.Top, g.Top[from:to]...)
	return out
}

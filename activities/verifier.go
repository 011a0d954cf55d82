package activities

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
)

// verifier grades the answers of a shard's episodes, each when its episode ends, while others still generate. Its calls
// share the sandbox with the tool calls of these, at most as many at once as the sandbox has workers. It decides
// nothing: the stage grade takes the grades that are there and makes the others itself, so that an answer that the
// verifier fails on fails there, as in mode staged. A grade depends on its pair alone, so the rows are the same. What a
// lost worker had is made again.
//
// It holds at most one grade for each episode. A nil verifier does nothing and has nothing.
type verifier struct {
	grader *grading.Grader
	run    gradePairs
	ctx    context.Context // ends with the shard
	cancel context.CancelFunc
	slots  chan struct{} // bounds the calls in flight

	mu     sync.Mutex
	seen   map[string]bool // trajectories
	grades map[symbolic.Pair]*earlyGrade
	failed bool // a call had an error, which is not the pair's fault: no more begin
}

// earlyGrade is the grade of a pair, once done is closed.
type earlyGrade struct {
	symbolic.Graded
	began time.Time // zero: it has not
	made  bool      // whether there is a grade
	done  chan struct{}
}

// verifierKey is the context key of the verifier of a shard.
type verifierKey struct{}

// verifierOf returns the verifier of the shard whose stages run under ctx, or nil.
func verifierOf(ctx context.Context) *verifier {
	v, _ := ctx.Value(verifierKey{}).(*verifier)
	return v
}

// verifier makes the verifier of the shard; nil if no answers are to be graded, they are graded already, or this worker
// cannot grade them, which the stage says. The caller closes it.
func (s *shardRun) verifier(ctx context.Context, recipe *recipes.Recipe) (*verifier, error) {
	if !s.in.Grade || s.deps.Sandbox == nil || s.deps.isolates(recipe) != nil {
		return nil, nil
	}
	at := spec{scope: s.in.Scope, stage: api.StageGrade, turn: -1, shard: s.in.Shard}
	if _, _, committed, err := s.deps.Record.Lookup(ctx, at.place()); err != nil || committed {
		return nil, err
	}
	grader := grading.New(recipe, s.in.Step)
	run, _ := gradeBy(recipe, s.deps.Sandbox, grader.Tested())
	v := &verifier{grader: grader, run: run, slots: make(chan struct{}, s.deps.cellsAtOnce()), seen: map[string]bool{},
		grades: map[symbolic.Pair]*earlyGrade{}}
	attr := slog.String("stage", api.StageGrade)
	v.ctx, v.cancel = context.WithCancel(trace.With(logs.With(ctx, attr), attr))
	return v, nil
}

// close ends the calls that run.
func (v *verifier) close() {
	if v != nil {
		v.cancel()
	}
}

// ended begins to grade the answers of those of the episodes that have ended. It does not wait for them. Equal pairs
// are graded once.
func (v *verifier) ended(episodes ...*rollout.Episode) {
	if v == nil {
		return
	}
	v.mu.Lock() // to the end: who calls ended next finds that all of these have begun
	defer v.mu.Unlock()
	v.tell(rescue.Do(func() error {
		_, pairs := v.grader.Questions(v.unseen(episodes))
		for _, p := range pairs {
			if v.grades[p] == nil && !v.failed {
				g := &earlyGrade{done: make(chan struct{})}
				v.grades[p] = g
				go v.grade(p, g)
			}
		}
		return nil
	}))
}

// unseen returns the rows of the episodes that have ended since the last call. The caller holds the lock.
func (v *verifier) unseen(episodes []*rollout.Episode) (rows []schema.TrajectoryRow) {
	for _, e := range episodes {
		if e.Finish != "" && !v.seen[e.TrajectoryID] {
			v.seen[e.TrajectoryID] = true
			rows = append(rows, rollout.TrajectoryRow(e))
		}
	}
	return rows
}

// grade grades a pair in its turn. What fails here is left to the stage.
func (v *verifier) grade(p symbolic.Pair, g *earlyGrade) {
	defer close(g.done)
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-v.ctx.Done():
		return
	}
	if v.hasFailed() || v.ctx.Err() != nil {
		return
	}
	g.began = time.Now()
	err := rescue.Do(func() error {
		graded, err := v.run(v.ctx, []symbolic.Pair{p})
		if err == nil {
			g.Graded, g.made = graded[0], graded[0].Broken == nil
			v.tell(graded[0].Broken)
		}
		return err
	})
	if err != nil {
		v.tell(err)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.failed = true
	}
}

func (v *verifier) hasFailed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

// tell logs why an answer is left to the stage.
func (v *verifier) tell(err error) {
	if err != nil && v.ctx.Err() == nil {
		slog.DebugContext(v.ctx, "an answer waits for the stage that grades it", "error", err, "stack",
			rescue.Stack(err))
	}
}

// has waits for what the verifier has begun of some pairs, and returns the grades that it made, and when the first of
// their calls began.
func (v *verifier) has(ctx context.Context, pairs []symbolic.Pair) (made map[symbolic.Pair]symbolic.Graded,
	began time.Time, err error) {
	if v == nil {
		return nil, began, nil
	}
	made = map[symbolic.Pair]symbolic.Graded{}
	for _, p := range pairs {
		v.mu.Lock()
		g := v.grades[p]
		v.mu.Unlock()
		if g == nil {
			continue
		}
		select {
		case <-g.done:
		case <-ctx.Done():
			return nil, began, ctx.Err()
		}
		if g.made {
			made[p] = g.Graded
			if began.IsZero() || g.began.Before(began) {
				began = g.began
			}
		}
	}
	return made, began, nil
}

// Package early gets verdicts on the answers of a shard before the shard's stages ask for them.
package early

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/judge"
	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/schema"
)

// Verdicts gets verdicts on the answers of a shard's episodes, each when its episode ends, while others still generate.
// The sandbox grades them, with calls that share it with the tool calls of these, at most as many at once as the
// sandbox has workers; the recipe's judge is asked, or the user's reward function called. Early verdicts decide
// nothing: the stages grade, judge and function take those that are there and get the others themselves, so that an
// answer that fails here fails there, as in mode staged. A verdict depends on what is asked alone, so the rows are the
// same. What a lost worker had is asked again.
//
// There is at most one verdict of each kind for each episode. A nil *Verdicts is valid and holds none.
type Verdicts struct {
	grader *grading.Grader
	run    GradeFunc       // nil: nothing is graded
	slots  chan struct{}   // bounds the calls in flight
	judge  *judge.Judge    // nil: none is asked
	scorer *Scorer         // nil: no function is called
	ctx    context.Context // ends with the shard
	cancel context.CancelFunc

	mu     sync.Mutex
	seen   map[string]bool // trajectories
	grades map[symbolic.Pair]*earlyGrade
	failed bool // a call had an error, which is not the pair's fault: no more begin
}

// earlyGrade is the grade of a pair.
type earlyGrade struct {
	symbolic.Graded
	earlyCall
}

// earlyCall is a call for a verdict. Once done is closed, it has ended.
type earlyCall struct {
	began time.Time // zero: it has not
	made  bool      // whether there is a verdict
	done  chan struct{}
}

// wait waits until the call has ended. If it has made a verdict, began becomes the time at which it began, unless
// another call began before.
func (c *earlyCall) wait(ctx context.Context, began *time.Time) error {
	select {
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.made && (began.IsZero() || c.began.Before(*began)) {
		*began = c.began
	}
	return nil
}

// Sources are what a shard's verdicts come from.
type Sources struct {
	Grade    GradeFunc // nil: nothing is graded
	AtOnce   int       // bounds the gradings in flight
	Judge    *judge.Judge
	Function *Scorer
}

// New begins to get verdicts, until ctx ends; nil if no verdict comes from anywhere.
func New(ctx context.Context, g *grading.Grader, from Sources) *Verdicts {
	if from.Grade == nil && from.Judge == nil && from.Function == nil {
		return nil
	}
	v := &Verdicts{grader: g, run: from.Grade, slots: make(chan struct{}, from.AtOnce), judge: from.Judge,
		scorer: from.Function, seen: map[string]bool{}, grades: map[symbolic.Pair]*earlyGrade{}}
	v.ctx, v.cancel = context.WithCancel(ctx)
	return v
}

// Close ends what has begun.
func (v *Verdicts) Close() {
	if v == nil {
		return
	}
	v.mu.Lock()
	v.cancel() // so that nothing more begins
	v.mu.Unlock()
	if v.judge != nil {
		v.judge.Close()
	}
}

// AskedJudge returns the judge of the shard, who has been asked about some answers; nil if none has.
func (v *Verdicts) AskedJudge() *judge.Judge {
	if v == nil {
		return nil
	}
	return v.judge
}

// End begins to get the verdicts on the answers of those of the episodes that have ended. It does not wait for them.
// Equal answers to equal questions share one.
func (v *Verdicts) End(episodes ...*rollout.Episode) {
	if v == nil {
		return
	}
	v.mu.Lock() // to the end: who calls ended next finds that all of these have begun
	defer v.mu.Unlock()
	if v.ctx.Err() != nil {
		return
	}
	v.tell(v.ctx, rescue.Do(func() error {
		rows, problems := v.unseen(episodes)
		if v.run != nil {
			v.beginGrades(rows)
		}
		if v.judge != nil {
			if err := v.beginJudgements(rows, problems); err != nil {
				return err
			}
		}
		if v.scorer == nil {
			return nil
		}
		return v.beginScores(episodes, rows, problems)
	}))
}

// unseen returns the rows of the episodes that have ended since the last call, and their problems by group. The caller
// holds the lock.
func (v *Verdicts) unseen(episodes []*rollout.Episode) (rows []schema.TrajectoryRow, problems map[string]string) {
	problems = map[string]string{}
	for _, e := range episodes {
		if e.Finish != "" && !v.seen[e.TrajectoryID] {
			v.seen[e.TrajectoryID] = true
			rows = append(rows, rollout.TrajectoryRow(e))
			problems[e.GroupID] = e.Task.Text
		}
	}
	return rows, problems
}

// beginGrades begins to grade answers. The caller holds the lock.
func (v *Verdicts) beginGrades(rows []schema.TrajectoryRow) {
	_, pairs := v.grader.Questions(rows)
	for _, p := range pairs {
		if v.grades[p] == nil && !v.failed {
			g := &earlyGrade{earlyCall: earlyCall{done: make(chan struct{})}}
			v.grades[p] = g
			go v.grade(p, g)
		}
	}
}

// beginJudgements begins to ask the judge about answers.
func (v *Verdicts) beginJudgements(rows []schema.TrajectoryRow, problems map[string]string) error {
	if err := v.grader.Check(rows); err != nil {
		return err
	}
	_, queries, err := v.grader.Queries(rows, problems)
	if err != nil {
		return err
	}
	ctx := atStage(v.ctx, schema.StageJudge)
	for _, q := range queries {
		v.judge.Begin(ctx, q)
	}
	return nil
}

// grade grades a pair in its turn.
func (v *Verdicts) grade(p symbolic.Pair, g *earlyGrade) {
	defer close(g.done)
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-v.ctx.Done():
		return
	}
	v.get(schema.StageGrade, &g.earlyCall, func(ctx context.Context) error {
		graded, err := v.run(ctx, []symbolic.Pair{p})
		if err == nil {
			g.Graded, g.made = graded[0], graded[0].Broken == nil
			v.tell(ctx, graded[0].Broken)
		}
		return err
	})
}

// get makes a call of a stage, unless another has failed. What fails here is left to the stage, and no other call
// begins.
func (v *Verdicts) get(stage string, c *earlyCall, call func(ctx context.Context) error) {
	if v.hasFailed() || v.ctx.Err() != nil {
		return
	}
	c.began = time.Now()
	ctx := atStage(v.ctx, stage)
	if err := rescue.Do(func() error { return call(ctx) }); err != nil {
		v.tell(ctx, err)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.failed = true
	}
}

func (v *Verdicts) hasFailed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

// tell logs why an answer is left to its stage.
func (v *Verdicts) tell(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		slog.DebugContext(ctx, "an answer waits for the stage that gets its verdict", "error", err, "stack",
			rescue.Stack(err))
	}
}

// atStage returns a context whose log lines and spans are about a stage.
func atStage(ctx context.Context, stage string) context.Context {
	attr := slog.String("stage", stage)
	return trace.With(logs.With(ctx, attr), attr)
}

// Graded waits for the grades of some pairs that have begun, and returns those that were made, and when the first of
// their calls began.
func (v *Verdicts) Graded(ctx context.Context, pairs []symbolic.Pair) (made map[symbolic.Pair]symbolic.Graded,
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
		if err := g.wait(ctx, &began); err != nil {
			return nil, began, err
		}
		if g.made {
			made[p] = g.Graded
		}
	}
	return made, began, nil
}

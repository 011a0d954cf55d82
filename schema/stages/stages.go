// Package stages declares what a run consists of: every stage, in the order in which a step runs them, once.
//
// Glossary. A *stage* is a piece of work whose manifest commits it, or (commit, prune, timings, compare) one that is
// timed and shown like a stage. An *activity* does it, in one attempt or several. A stage is *pure* if it is a function
// of committed inputs and the recipe alone, so that a replay can make it again. A *need* is what a recipe asks of the
// stages that not every recipe has.
//
// These follow from the declarations: the activities' queues, time limits and retries (workflows/policies.go), the
// check that a worker registers all of them, what verify holds each manifest against, which stage makes a table, what
// replay takes and refuses, the order of stages in the report and in Temporal's UI, and the table of stages in
// DESIGN.md. The workflows call the stages themselves.
package stages

import (
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/schema"
)

// Task queues. Workflows run on CPU.
const (
	CPU     = "cpu"
	Rollout = "rollout"
	Sandbox = "sandbox"
	GPU     = "gpu"
)

// Stages that are timed and shown, and commit nothing that another stage reads.
const (
	Compare = "compare"
	Commit  = "commit"
	Timings = "timings"
	Prune   = "prune"
)

// Stage is one declaration.
type Stage struct {
	// Name is what manifests, search attributes and timings call it.
	Name string
	// Doc says in a line what it does.
	Doc string
	// Activities do it; the first one commits its manifests.
	Activities []Activity
	Phase      Phase
	Parts      Parts
	// Reads are the stages of the same step that it is made from, wherever the step has them: verify checks that each
	// is among its inputs.
	Reads []Read
	// Continues names the state that the stage takes from step to step: it is made from its own manifest of the step
	// before, wherever that has one. "" = it keeps none.
	Continues string
	// Also says what else it reads, for schema/README.md.
	Also string
	// Writes are the tables whose shards its manifests hold.
	Writes []schema.Table
	// Commits says what else its manifests hold, for schema/README.md.
	Commits string
	// Unread stages are timed and shown; no stage and no reader looks for manifests of theirs.
	Unread bool
	// When reports whether a recipe with such needs has the stage; nil = every recipe has it. If says so in words.
	When func(Needs) bool
	If   string
	// Pure stages can be made again from committed inputs.
	Pure bool
	// Recipe lists the parts of the recipe that a stage reads which a replay can run: a pure one, or the update, which
	// needs the engine.
	Recipe []string
	// Instead says why another stage cannot be replayed, and what to do instead.
	Instead string
	// Column is the column of a step's printed times that counts the stage; "" = other.
	Column string
	// Waiting is what a run's progress says while the stage runs; "" = its name.
	Waiting string
}

// Activity is what a worker executes.
type Activity struct {
	Name  string // as Temporal's UI shows it
	Doc   string // what it does in a line, where it belongs to no stage
	Queue string
	// Limit bounds one attempt, from its start to its end: several times what the largest one took.
	Limit time.Duration
	Retry Retry
	// Joint activities run several stages, which have the limits of their own activities.
	Joint bool
}

// Retry says which failures are worth another attempt.
type Retry int

// The classes of retries; workflows/policies.go holds their numbers.
const (
	Transient   Retry = iota // a lost server or worker, a full disk: six attempts
	WhileWanted              // as long as the workflow waits: another host or worker may be able to
)

// Phase is when a stage runs.
type Phase int

// The phases of a run.
const (
	Init      Phase = iota // before the first step
	Step                   // in every step; a head names its manifests
	Alongside              // next to steps, or after them; it counts without a head
	Again                  // of a replay
)

// Parts is how a stage is divided into activities.
type Parts int

// The divisions.
const (
	Whole  Parts = iota // one activity
	Shards              // an activity a shard
	Turns               // an activity for each turn of a shard
)

// Read is a stage that another one is made from, and which of its tables that reads; none where it is a checkpoint.
type Read struct {
	Stage  string
	Tables []schema.Table
	// Spared: a replay may be made without it, under a recipe that asks for less.
	Spared bool
}

// All returns the declarations, in the order in which a run meets them.
func All() []Stage { return slices.Clone(all) }

// Of returns a stage's declaration.
func Of(name string) (Stage, bool) {
	i := slices.IndexFunc(all, func(s Stage) bool { return s.Name == name })
	if i < 0 {
		return Stage{}, false
	}
	return all[i], true
}

// Runs reports whether a recipe with such needs has the stage.
func (s Stage) Runs(n Needs) bool { return s.When == nil || s.When(n) }

// ReadsOf reports whether the stage reads tables of another one.
func (s Stage) ReadsOf(stage string) bool {
	return slices.ContainsFunc(s.Reads, func(r Read) bool { return r.Stage == stage })
}

// ReadBy returns the names of the stages that one is made from, in the order in which it declares them.
func ReadBy(stage string) (names []string) {
	declared, _ := Of(stage)
	for _, r := range declared.Reads {
		names = append(names, r.Stage)
	}
	return names
}

// Optional reports whether only some recipes have the stage.
func (s Stage) Optional() bool { return s.When != nil }

// Named returns the names of the stages that are as wanted, in their order.
func Named(wanted func(Stage) bool) []string {
	var names []string
	for _, s := range all {
		if wanted(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// InStep returns the names of the stages of a step, commit among them, in their order.
func InStep() []string { return Named(func(s Stage) bool { return s.Phase == Step }) }

// Sharded returns the names of the stages that a shard goes through by itself up to its rewards, in their order.
func Sharded() []string {
	names := Named(func(s Stage) bool { return s.Phase == Step && s.Parts != Whole })
	return names[:slices.Index(names, schema.StageReward)+1]
}

// Verdicts returns the names of the stages that get verdicts on a shard's episodes between assemble and reward, as far
// as a recipe with such needs has them, in their order.
func Verdicts(n Needs) []string {
	sharded := Named(func(s Stage) bool { return s.Phase == Step && s.Parts == Shards && s.Runs(n) })
	return sharded[1:slices.Index(sharded, schema.StageReward)]
}

// Segments returns the stages between a step's rollout and its update that a recipe with such needs has, in their
// order. A segment is a stage with shards, or the stages that follow each other and have none.
func Segments(n Needs) (out [][]Stage) {
	first := slices.IndexFunc(all, func(s Stage) bool { return s.Name == Commit })
	last := slices.IndexFunc(all, func(s Stage) bool { return s.Name == schema.StageUpdate })
	for _, s := range all[first:last] {
		if !s.Runs(n) {
			continue
		}
		if k := len(out); k > 0 && s.Parts == Whole && out[k-1][0].Parts == Whole {
			out[k-1] = append(out[k-1], s)
		} else {
			out = append(out, []Stage{s})
		}
	}
	return out
}

// Pure returns the names of the stages that the record alone makes again, in their order.
func Pure() []string { return Named(func(s Stage) bool { return s.Pure }) }

// Replayable returns the names of the stages that a replay can run: the pure ones and the update, in their order.
func Replayable() []string { return Named(func(s Stage) bool { return len(s.Recipe) > 0 }) }

// Activities returns every activity that a worker registers.
func Activities() []Activity {
	var out []Activity
	for _, s := range all {
		out = append(out, s.Activities...)
	}
	return append(out, apart...)
}

// ActivityOf returns the declaration of an activity; the zero Activity if there is none.
func ActivityOf(name string) Activity {
	activities := Activities()
	if i := slices.IndexFunc(activities, func(a Activity) bool { return a.Name == name }); i >= 0 {
		return activities[i]
	}
	return Activity{}
}

// Maker returns the stage of a step's head that holds a table's rows; "" for tables that heads do not name. Of two
// stages that write a table the later one makes it: reward lists the trajectories that it excludes in the selection,
// and resample's selection has them too.
func Maker(table schema.Table) string {
	maker := ""
	for _, s := range all {
		if s.Phase == Step && slices.Contains(s.Writes, table) {
			maker = s.Name
		}
	}
	return maker
}

// on is an activity with the usual retries.
func on(queue, name string, limit time.Duration) Activity {
	return Activity{Name: name, Queue: queue, Limit: limit}
}

// joint is an activity that runs several stages.
func joint(queue, name string) Activity {
	return Activity{Name: name, Queue: queue, Limit: 7 * 24 * time.Hour, Joint: true}
}

// from is a stage that another is made from.
func from(stage string, tables ...schema.Table) Read { return Read{Stage: stage, Tables: tables} }

// Package step is the order of a step's stages: which runs after which, and on what. It is the only place that calls
// them. A *runner* runs them: as activities and child workflows, or in the process of one activity.
//
// Glossary. A *call* is one execution of a stage. A *group* is a function over calls that a runner may place as one
// activity or one child workflow: a shard, a batch, the end of a step. A *step* is prompts → rollout → sandbox →
// assemble → verdicts → reward → commit → resample → logprobs → advantage → buffer → update → publish; the stages that
// only some recipes have run where the recipe needs them.
//
// The functions here are deterministic: they know no context, time, randomness, goroutines or order of maps. They run
// within workflows, which Temporal replays, and within activities.
package step

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// At names a stage of a step, its shard and its turn; −1: it has none.
type At struct {
	Stage       string
	Shard, Turn int
}

// Whole names a stage without shards.
func Whole(stage string) At { return At{stage, -1, -1} }

// Call is one execution of a stage.
type Call struct {
	At
	Activity string
	In       any
	Note     string // for people: Temporal shows it next to the activity
}

// Unit is a call of a group of stages.
type Unit struct {
	At
	Group string // name of the group's activity
	In    api.Sender
	Out   api.Spender
	Note  string
	Body  func(Runner) error
}

// Runner runs stages. It holds the context, time limits, placement, display and clock.
type Runner interface {
	// Run executes a stage and sets out to its result. An error, which may come from a panic of the stage, says where
	// it occurred.
	Run(c Call, out api.Result) error
	// Unit runs a group as one activity, as a child workflow, or by u.Body here.
	Unit(u Unit) error
	// Each calls f for 0…n−1 and waits for all; a failure stops none of the others. Errors keep the order of i. Calls
	// may run side by side: f writes to its own element only.
	Each(n int, f func(r Runner, i int) error) error
	// Aside begins f, whose measured times are not the step's; wait returns its error.
	Aside(f func(r Runner) error) (wait func() error)
	// Spent takes the measured times since the last call.
	Spent() []api.Timing
}

// Group is a group of stages.
type Group[In api.Sender, Out api.Spender] struct {
	Name string
	Body func(r Runner, in In, out Out) error
}

// Do runs the group.
func (g Group[In, Out]) Do(r Runner, at At, note string, in In, out Out) error {
	return r.Unit(Unit{at, g.Name, in, out, note, func(r Runner) error { return g.Body(r, in, out) }})
}

// run runs a stage by the activity that commits its manifests.
func run(r Runner, at At, note string, in any, out api.Result) error {
	declared, _ := stages.Of(at.Stage)
	return r.Run(Call{at, declared.Activities[0].Name, in, note}, out)
}

// ofShard is the note of a call for one shard.
func ofShard(shard int) string { return fmt.Sprintf("shard %d", shard) }

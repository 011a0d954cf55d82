// Package tool defines what a policy can call during an episode: the contract of tools (Tool), their calls and
// verdicts, and how a turn's calls are run.
//
// Glossary. A *call* is a name with arguments that a policy wrote. A *verdict* is the Result of a call. Verdicts are
// data: a program that fails, a time-out and a bad argument are results with a Status. *Breakage* is an error and never
// a verdict: a server that cannot be reached, a sandbox that died. An *episode* is the trajectory that a call belongs
// to. A call's *key* is its place in its run; every attempt to run the call has the same key.
//
//	parsed calls of a turn ─▶ Toolbox.RunEach ─▶ by tool: Tool.Run ─▶ Outcome of each call
//	                                                 └─ Once: a Journal keeps calls that must not run twice
//
// Package tool/tools lists the tools that recipes can name, and internal/testing/tooltest is the conformance suite.
package tool

import (
	"context"
	"encoding/json"
	"slices"
)

// Tool runs the calls that policies make.
//
// Run runs a batch of calls and returns their results in the order of the calls. The batch may have any size; without
// calls there are no results and no error. How calls are divided into batches does not change a result. The calls of a
// batch are independent and may run concurrently, except that a stateful tool runs the calls of one episode in their
// order.
//
// A result is a verdict. Run rejects the arguments that Spec().Schema rejects, and no others: such a call gets the
// verdict StatusBadArguments, whose Stderr names the argument, and the other calls of the batch are run. A result
// depends only on the call and, for a stateful tool, on the episode's earlier calls. It enters the record, so it holds
// no times, hosts, addresses or temporary names outside of Timing.
//
// An error means breakage. If it contains CallErrors (errors.As), these say which calls have no verdict, and the
// results of the others are valid. After any other error no result of the batch is valid: the tool is broken, and no
// call is to blame. Run returns such an error if ctx ends, or if several different calls break and none gets a verdict
// (Once says how that differs for calls that must not run twice).
//
// Run itself tries a call again where that is harmless and may help. Callers do not repeat a call that broke. But a
// worker may die after a call has run and before its result is committed. Another attempt then makes the same call with
// the same key; Spec().Repeat says how that ends.
//
// Tools are safe for concurrent use. The owner of the resources that a tool uses closes them.
type Tool interface {
	// Spec describes the tool. It always returns the same value.
	Spec() Spec
	// Run runs a batch of calls.
	Run(ctx context.Context, calls []Call) ([]Result, error)
}

// Ender is implemented by stateful tools.
type Ender interface {
	// End releases what the tool holds for an episode that makes no further calls. An episode that the tool does not
	// know is no error. Without End the tool releases it when it has been idle for long.
	End(ctx context.Context, episode string) error
}

// Spec describes a tool.
type Spec struct {
	Name string // name in recipes; a policy may use it too
	// Aliases are further names that policies call the tool by, such as those of a published prompt format.
	Aliases []string
	Doc     string // what the tool does, in one line without a full stop
	// Schema is the JSON schema (2020-12) of the arguments. It describes an object; see SchemaOf.
	Schema json.RawMessage
	Repeat Repeat
	// Stateful means that the calls of an episode share state, such as an interpreter or a connection. Each call then
	// holds the episode's earlier calls (Call.Past). If the state is lost, a tool whose calls can be repeated restores
	// it by making these calls again, and the call breaks if one of them has another result than before. The calls of
	// other tools break.
	Stateful bool
	// Server names what tools with the same Server share: the state of an episode. The calls that an episode makes of
	// any of them run in order, Call.Past holds the earlier calls of all of them, and any of the tools runs the calls
	// of all. Such tools are stateful and have the same Repeat. "" is a state of the tool's own.
	Server string
	// Part is what the record calls the tool in the reason of an exclusion; "" is "tool NAME".
	Part string
}

// Repeat says whether a call can be run again, if an earlier attempt may have run it already.
type Repeat string

// The kinds of Repeat.
const (
	// Pure calls have no effect, and an equal call has an equal result. They are run again.
	Pure Repeat = "pure"
	// Sandboxed calls have no effect outside of what is discarded after them. They are run again. A call that draws
	// random numbers or reads a clock may have another result then.
	Sandboxed Repeat = "sandboxed"
	// Keyed calls have effects elsewhere. They are sent again with the same key, and the service recognises the
	// key and answers as before.
	Keyed Repeat = "keyed"
	// AtMostOnce calls have effects elsewhere that must not happen twice. They run under a Journal (Once): another
	// attempt reads the result that the journal holds. If a call was begun and no one knows whether it ran, it breaks
	// with ErrUnknownOutcome, which excludes its trajectory: a verdict would depend on the fate of a worker.
	AtMostOnce Repeat = "at_most_once"
)

// Repeats lists the kinds.
func Repeats() []Repeat { return []Repeat{Pure, Sandboxed, Keyed, AtMostOnce} }

// Shares reports whether calls of both tools change the same state of an episode. A tool shares its own.
func (s Spec) Shares(other Spec) bool {
	return s.Name == other.Name || s.Server != "" && s.Server == other.Server
}

// Answers reports whether a policy can call the tool by that name.
func (s Spec) Answers(name string) bool { return s.Name == name || slices.Contains(s.Aliases, name) }

// BlameOn returns what the record calls the tool in the reason of an exclusion.
func (s Spec) BlameOn() string {
	if s.Part != "" {
		return s.Part
	}
	return "tool " + s.Name
}

// Find returns the tool that a policy calls by a name. ok is false if none of them has that name.
func Find(specs []Spec, name string) (s Spec, ok bool) {
	i := slices.IndexFunc(specs, func(s Spec) bool { return s.Answers(name) })
	if i < 0 {
		return Spec{}, false
	}
	return specs[i], true
}

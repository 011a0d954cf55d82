// Package probe finds out which isolation a machine offers to the sandbox. Everything is tried, not guessed from a
// version, and nothing is changed permanently. Machine returns a Report: a line for each means of isolation, and for
// each tier whether a call has run in it.
package probe

import (
	"context"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// Line is one means of isolation, or one feature that improves speed.
type Line struct {
	What     string `json:"what"`
	Obtained bool   `json:"obtained"`
	Reason   string `json:"reason"`  // what was found, or why it is missing
	Without  string `json:"without"` // what is lost if it is missing
}

// TierLine says whether a tier has run a call.
type TierLine struct {
	Tier     sandbox.Tier `json:"tier"`
	Obtained bool         `json:"obtained"`
	Reason   string       `json:"reason"`
}

// Package is a library that calls can use.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"` // "" if it is not installed
}

// Report is what a machine offers.
type Report struct {
	Tier     sandbox.Tier `json:"tier"` // the strongest tier that has run a call; "" if none has
	Tiers    []TierLine   `json:"tiers"`
	Lines    []Line       `json:"lines"`
	Python   string       `json:"python"` // the interpreter's path and version; "" if there is none
	Version  string       `json:"python_version"`
	Packages []Package    `json:"packages"`
}

// Machine probes this machine. python is the interpreter to use; "" finds one.
func Machine(ctx context.Context, python string) Report {
	return machine(ctx, python, zygote.LandlockVersion)
}

// machine probes a machine whose kernel reports a version of Landlock.
func machine(ctx context.Context, python string, version func() (int, error)) Report {
	r := Report{Lines: lines(version)}
	for _, tier := range sandbox.Tiers() {
		r.Tiers = append(r.Tiers, r.try(ctx, zygote.Options{Python: python, Tier: tier, Workers: 1, Landlock: version}))
	}
	return r
}

// try opens a tier, which runs calls in it. In the strongest tier it also looks for libraries.
func (r *Report) try(ctx context.Context, o zygote.Options) TierLine {
	tier := o.Tier
	e, err := zygote.Open(o)
	if err != nil {
		return TierLine{Tier: tier, Reason: err.Error()}
	}
	defer e.Close()
	if r.Tier == "" {
		r.Tier = tier
		r.Python, r.Version = e.Python()
		r.Packages = packages(ctx, e)
	}
	return TierLine{Tier: tier, Obtained: true, Reason: "a call has run in it"}
}

// libraries are those that model-written code uses most.
var libraries = []string{"numpy", "sympy", "mpmath"}

// packages imports each library in a call, so that it reports what calls find.
func packages(ctx context.Context, e sandbox.Executor) []Package {
	out := make([]Package, len(libraries))
	for i, name := range libraries {
		out[i].Name = name
		limits := sandbox.Limits{CPU: sandbox.DefaultLimits.CPU * 5, MemoryBytes: 1 << 30}
		results, err := e.Run(ctx, []sandbox.Call{{Code: "import " + name + "\nprint(" + name + ".__version__, end='')",
			Limits: limits}})
		if err == nil && results[0].Status == sandbox.StatusOK {
			out[i].Version = results[0].Stdout
		}
	}
	return out
}

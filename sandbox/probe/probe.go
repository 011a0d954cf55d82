// Package probe finds out what a machine grants the sandbox: each line is something that was tried, not
// guessed from a version. It changes nothing that lasts.
package probe

import (
	"context"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// Line is one means of isolation, or one help to speed.
type Line struct {
	What     string `json:"what"`
	Obtained bool   `json:"obtained"`
	Reason   string `json:"reason"`  // what was found, or why it is not there
	Without  string `json:"without"` // what is lost where it is not there
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
	Version string `json:"version"` // "" if it is not there
}

// Report is what a machine grants.
type Report struct {
	Tier     sandbox.Tier `json:"tier"` // the strongest that has run a call; "" if none has
	Tiers    []TierLine   `json:"tiers"`
	Lines    []Line       `json:"lines"`
	Python   string       `json:"python"` // the interpreter's path and version; "" if there is none
	Version  string       `json:"python_version"`
	Packages []Package    `json:"packages"`
}

// Machine probes this one. python is the interpreter to use; "" finds one.
func Machine(ctx context.Context, python string) Report {
	r := Report{Lines: lines()}
	for _, tier := range sandbox.Tiers() {
		r.Tiers = append(r.Tiers, r.try(ctx, python, tier))
	}
	return r
}

// try opens a tier, which rehearses calls there, and asks the strongest one for its libraries.
func (r *Report) try(ctx context.Context, python string, tier sandbox.Tier) TierLine {
	e, err := zygote.Open(zygote.Options{Python: python, Tier: tier, Workers: 1})
	if err != nil {
		return TierLine{Tier: tier, Reason: err.Error()}
	}
	defer e.Close()
	if r.Tier == "" {
		r.Tier = tier
		r.Python, r.Version = e.Python()
		r.Packages = packages(ctx, e)
	}
	return TierLine{Tier: tier, Obtained: true, Reason: "a call has run there"}
}

// libraries are those that model-written code asks for most.
var libraries = []string{"numpy", "sympy", "mpmath"}

// packages asks a call for each library, so that what it tells is what calls find.
func packages(ctx context.Context, e sandbox.Executor) []Package {
	out := make([]Package, len(libraries))
	for i, name := range libraries {
		out[i].Name = name
		limits := sandbox.Limits{CPU: sandbox.DefaultLimits.CPU * 5, MemoryBytes: 1 << 30}
		results, err := e.Run(ctx, []sandbox.Call{{Code: "import " + name + "\nprint(" + name + ".__version__, end='')", Limits: limits}})
		if err == nil && results[0].Status == sandbox.StatusOK {
			out[i].Version = results[0].Stdout
		}
	}
	return out
}

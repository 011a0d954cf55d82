package zygote

import "slices"

// Start says how an executor starts an interpreter, for callers that need the same interpreter without the sandbox.
type Start struct {
	Python      string   // the real interpreter
	Flags       []string // put before the script
	Environment []string // the complete environment
	Path        []string // folders of installed packages
	WarmUp      string   // code that runs before the first call
}

// Start returns how the zygotes of a package set are started.
func (e *Executor) Start(packages string) (Start, error) {
	set, err := e.plan.sets.named(packages)
	if err != nil {
		return Start{}, err
	}
	p := e.plan.python
	return Start{Python: p.Executable, Flags: interpreterFlags(), Environment: slices.Clone(interpreterEnvironment),
		Path: slices.Clone(p.Path), WarmUp: set.Warm}, nil
}

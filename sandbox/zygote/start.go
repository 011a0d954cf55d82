package zygote

import "slices"

// Start is how an executor starts an interpreter, for whoever needs the same one without the sandbox around it.
type Start struct {
	Python      string   // the real interpreter
	Flags       []string // before the script
	Environment []string // all of it
	Path        []string // folders of installed packages
	WarmUp      string   // code that runs before the first call
}

// Start says how the zygotes of a package set are started.
func (e *Executor) Start(packages string) (Start, error) {
	set, err := e.plan.sets.named(packages)
	if err != nil {
		return Start{}, err
	}
	p := e.plan.python
	return Start{Python: p.Executable, Flags: interpreterFlags(), Environment: slices.Clone(interpreterEnvironment), Path: slices.Clone(p.Path), WarmUp: set.Warm}, nil
}

package zygote

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/sandbox"
)

// PackageSet is a group of libraries that zygotes have loaded, so that calls do not have to import them.
type PackageSet struct {
	Name    string
	Modules []string // code that mentions them uses the set; the set is available if all can be found
	Warm    string   // code that imports them and runs the paths that calls use
}

// defaultSets are the package sets used when Options names none, smallest first.
func defaultSets() []PackageSet {
	return []PackageSet{
		{Name: sandbox.PackagesBare},
		{Name: sandbox.PackagesNumpy, Modules: []string{"numpy"}, Warm: warmNumpy},
		{Name: sandbox.PackagesSympy, Modules: []string{"numpy", "sympy", "mpmath"}, Warm: warmNumpy + warmSympy},
	}
}

const warmNumpy = `
import numpy as np
np.random.seed(0)
for _ in range(2):
    int(np.arange(10).sum()), str(np.linspace(0, 1, 3)), np.linalg.inv(np.eye(2)).tolist()
np.random.seed(0)
`

// warmSympy fills what sympy fills lazily: its printers, its solvers, its cache.
const warmSympy = `
import sympy
for _ in range(2):
    x, y = sympy.symbols("x y")
    str(sympy.solve(x**2 - 2, x)), str(sympy.simplify(sympy.sin(x)**2 + sympy.cos(x)**2)), sympy.latex(x / 2)
    str(sympy.integrate(x * sympy.exp(x), x)), str(sympy.diff(x**3, x)), str(sympy.factor(x**2 - 1)), sympy.N(sympy.pi)
    sympy.parse_expr("2*x + 1").subs(x, sympy.Rational(1, 3))
`

// word matches a module's name. It also matches names in strings and comments, which only means a larger interpreter.
var word = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)

// sets are the package sets that the interpreter has, smallest first, and all that were requested.
type sets struct {
	available []PackageSet
	all       []PackageSet
}

// choose returns the set of a call: the one that it names, or the smallest that contains the modules its code mentions.
func (s sets) choose(call sandbox.Call) (PackageSet, error) {
	if call.Packages != "" {
		return s.named(call.Packages)
	}
	best := s.available[0]
	if call.Language != "" && call.Language != sandbox.Python || !s.mentioned(call.Code) {
		return best, nil
	}
	words := word.FindAllString(call.Code, -1)
	held := -1
	for _, set := range s.available {
		n := 0
		for _, module := range set.Modules {
			if slices.Contains(words, module) {
				n++
			}
		}
		if n > held {
			best, held = set, n
		}
	}
	return best, nil
}

// mentioned quickly reports whether the code can mention a module of any set.
func (s sets) mentioned(code string) bool {
	for _, set := range s.available {
		for _, module := range set.Modules {
			if strings.Contains(code, module) {
				return true
			}
		}
	}
	return false
}

// named returns the set with a name, if the interpreter has it.
func (s sets) named(name string) (PackageSet, error) {
	for _, set := range s.available {
		if set.Name == name {
			return set, nil
		}
	}
	for _, set := range s.all {
		if set.Name == name {
			return PackageSet{},
				fmt.Errorf("%w: packages %q need %s, which the interpreter has not (name one that has them)",
					sandbox.ErrBadCall, name, strings.Join(set.Modules, ", "))
		}
	}
	var names []string
	for _, set := range s.all {
		names = append(names, set.Name)
	}
	return PackageSet{}, fmt.Errorf("%w: packages %q is not one of %s", sandbox.ErrBadCall, name,
		strings.Join(names, ", "))
}

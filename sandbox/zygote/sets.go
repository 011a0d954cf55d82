package zygote

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/sandbox"
)

// PackageSet is a group of libraries that zygotes have loaded, so that calls need not import them.
type PackageSet struct {
	Name    string
	Modules []string // by whose names in the code the set is chosen; the set is there if all can be found
	Warm    string   // code that imports them and takes the paths that calls take
}

// DefaultSets are the sets of Options that name none, smallest first.
func DefaultSets() []PackageSet {
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

// What sympy fills lazily (its printers, its solvers, its cache) is filled here once.
const warmSympy = `
import sympy
for _ in range(2):
    x, y = sympy.symbols("x y")
    str(sympy.solve(x**2 - 2, x)), str(sympy.simplify(sympy.sin(x)**2 + sympy.cos(x)**2)), sympy.latex(x / 2)
    str(sympy.integrate(x * sympy.exp(x), x)), str(sympy.diff(x**3, x)), str(sympy.factor(x**2 - 1)), sympy.N(sympy.pi)
    sympy.parse_expr("2*x + 1").subs(x, sympy.Rational(1, 3))
`

// word matches a name of a module; what stands in a string or comment matches too, which costs nothing but
// a larger interpreter.
var word = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)

// sets are those that the interpreter has, smallest first, and all that were asked for.
type sets struct {
	there []PackageSet
	all   []PackageSet
}

// choose returns the set of a call: the one it names, or the smallest that holds what its code mentions.
func (s sets) choose(call sandbox.Call) (PackageSet, error) {
	if call.Packages != "" {
		return s.named(call.Packages)
	}
	best := s.there[0]
	if call.Language != "" && call.Language != sandbox.Python || !s.mentioned(call.Code) {
		return best, nil
	}
	words := word.FindAllString(call.Code, -1)
	held := -1
	for _, set := range s.there {
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

// mentioned is a quick look whether any set beyond the first can be meant.
func (s sets) mentioned(code string) bool {
	for _, set := range s.there {
		for _, module := range set.Modules {
			if strings.Contains(code, module) {
				return true
			}
		}
	}
	return false
}

func (s sets) named(name string) (PackageSet, error) {
	for _, set := range s.there {
		if set.Name == name {
			return set, nil
		}
	}
	for _, set := range s.all {
		if set.Name == name {
			return PackageSet{}, fmt.Errorf("%w: packages %q need %s, which the interpreter has not (name one that has them)",
				sandbox.ErrBadCall, name, strings.Join(set.Modules, ", "))
		}
	}
	var names []string
	for _, set := range s.all {
		names = append(names, set.Name)
	}
	return PackageSet{}, fmt.Errorf("%w: packages %q is not one of %s", sandbox.ErrBadCall, name, strings.Join(names, ", "))
}

package main

import (
	"cmp"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// measure is a figure of the tree.
type measure struct {
	name   string
	figure int
	from   []part // what it counts, the largest first
}

type part struct {
	n    int
	what string
}

// tally counts things by name.
type tally map[string]int

func (c tally) parts() (out []part) {
	for what, n := range c {
		out = append(out, part{n, what})
	}
	slices.SortFunc(out, func(a, b part) int { return cmp.Or(b.n-a.n, strings.Compare(a.what, b.what)) })
	return out
}

func sum(name string, c tally) measure {
	m := measure{name: name, from: c.parts()}
	for _, p := range m.from {
		m.figure += p.n
	}
	return m
}

func number(name string, c tally) measure { return measure{name, len(c), c.parts()} }

func largest(name string, c tally) measure { return quantile(name, c, 1) }

func quantile(name string, c tally, q float64) measure {
	m := measure{name: name, from: c.parts()}
	if n := len(m.from); n > 0 {
		m.figure = m.from[n-1-min(n-1, int(q*float64(n)))].n
	}
	return m
}

// per counts something in each file and leaves out files without it.
func per(files []*source, count func(*source) int) tally {
	out := tally{}
	for _, f := range files {
		if n := count(f); n > 0 {
			out[f.path] = n
		}
	}
	return out
}

func uses(names ...string) func(*source) int {
	return func(f *source) (n int) {
		for _, name := range names {
			n += f.uses[name]
		}
		return n
	}
}

func prose(pattern string) func(*source) int {
	p := regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`)
	return func(f *source) int { return len(p.FindAllString(f.prose, -1)) }
}

func filter(files []*source, keep func(*source) bool) []*source {
	return slices.DeleteFunc(slices.Clone(files), func(f *source) bool { return !keep(f) })
}

// measures takes every measure but the main path, in the order in which the table shows them.
func (t *tree) measures() ([]measure, error) {
	plain := filter(t.files, func(f *source) bool { return !f.test })
	tests := filter(t.files, func(f *source) bool { return f.test })
	product := filter(plain, func(f *source) bool { return t.product[f.folder] && !f.generated })
	out := append(t.sizes(plain, product), sum("test lines", per(tests, (*source).lines)))
	out = append(out, t.packageSizes(product)...)
	out = append(out, largest("reach of a type", t.reachOfTypes(product)))
	out = append(out, t.dependencies()...)
	out = append(out, sum("exported names", per(product, exported)), sum("product files that import testing",
		per(filter(plain, func(f *source) bool { return t.product[f.folder] }), importsTesting)))
	out = append(out, t.rooms()...)
	out = append(out, t.stages(product)...)
	out = append(out,
		sum("values in contexts", per(filter(plain, drives), uses("context.WithValue(", "workflow.WithValue("))),
		sum("calls of GetVersion", per(plain, uses("workflow.GetVersion("))),
		sum("uses of engine kinds", per(product, uses("engines.Torch", "engines.Tinker"))))
	out = append(out, lengths(product)...)
	commands := filter(product, func(f *source) bool { return t.programs[f.folder] })
	out = append(out,
		sum("long lines", per(slices.Concat(t.files, t.outside), func(f *source) int { return f.long })),
		sum("sleeps in tests", per(tests, uses("time.Sleep("))),
		// Each pattern is written so that it does not find itself.
		sum("words to avoid", per(plain,
			prose(`[a]new|[n]obody|[w]hoever|[b]eside|lets? (?:\w+ ){0,3}go|what [o]f`))),
		sum(`words "those_of"`, per(plain, prose(`those [o]f`))),
		sum(`words "so_many"`, per(plain, prose(`so [m]any`))),
		sum("commands", per(commands, uses("Use:"))))
	pages, err := t.pages()
	return append(out, pages...), err
}

// sizes counts lines of code without tests.
func (t *tree) sizes(plain, product []*source) []measure {
	out := []measure{sum("product lines", per(product, (*source).lines))}
	rooms := map[string][]*source{}
	for _, f := range product {
		rooms[top(f.folder)] = append(rooms[top(f.folder)], f)
	}
	for _, r := range slices.Sorted(maps.Keys(rooms)) {
		out = append(out, sum("product lines in "+r, per(rooms[r], (*source).lines)))
	}
	rest := filter(plain, func(f *source) bool { return !t.product[f.folder] && !f.generated })
	bench := filter(rest, func(f *source) bool { return t.bench[f.folder] })
	support := filter(rest, func(f *source) bool { return !t.bench[f.folder] })
	return append(out, sum("lines in other languages", t.other), sum("bench lines", per(bench, (*source).lines)),
		sum("support lines", per(support, (*source).lines)), sum("bench and support lines", per(rest, (*source).lines)))
}

// lengths counts lines of files and functions, with comments.
func lengths(product []*source) []measure {
	files, functions := per(product, func(f *source) int { return f.rawLines }), tally{}
	for _, f := range product {
		for _, fn := range f.functions {
			functions[f.path+": "+fn.name+" of "+fn.receiver] = fn.lines
		}
	}
	return []measure{quantile("lines of a file, p50", files, .5), quantile("lines of a file, p90", files, .9),
		quantile("lines of a function, p50", functions, .5), quantile("lines of a function, p90", functions, .9)}
}

func importsTesting(f *source) int {
	if slices.Contains(f.imports, "testing") {
		return 1
	}
	return 0
}

func exported(f *source) (n int) {
	for _, name := range f.declared {
		if ast.IsExported(name) {
			n++
		}
	}
	return n
}

// drives reports whether a file belongs to workflows, activities or the driver.
func drives(f *source) bool {
	return slices.ContainsFunc(strings.Split(f.folder, "/"), func(folder string) bool {
		return slices.Contains([]string{"activities", "workflows", "step", "stage"}, folder)
	})
}

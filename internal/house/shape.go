package main

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// packageSizes counts the product's packages. Programs have many files and lines by their nature.
func (t *tree) packageSizes(product []*source) []measure {
	lines, files, large := tally{}, tally{}, tally{}
	for _, f := range product {
		if !t.programs[f.folder] {
			lines[f.folder] += f.lines()
			files[f.folder]++
		}
	}
	for p, n := range lines {
		if n > 4500 || files[p] > 45 {
			large[p] = n
		}
	}
	return []measure{{"product packages", len(t.product), lines.parts()}, largest("lines of a package", lines),
		largest("files of a package", files), number("packages over 4,500 lines or 45 files", large)}
}

// reachOfTypes counts, for each type with methods, its methods, those of types of its package that it embeds, and
// functions of its package that take it first: turning methods into functions does not hide them.
func (t *tree) reachOfTypes(product []*source) tally {
	methods, more, out := tally{}, tally{}, tally{}
	for _, f := range product {
		for _, fn := range f.functions {
			if fn.receiver != "" {
				methods[f.folder+"."+fn.receiver]++
			} else {
				more[f.folder+"."+fn.takes]++
			}
		}
	}
	for _, f := range product {
		for name, embedded := range f.embeds {
			for _, e := range embedded {
				more[f.folder+"."+name] += methods[f.folder+"."+e]
			}
		}
		if t.programs[f.folder] {
			maps.DeleteFunc(methods, func(name string, _ int) bool { return strings.HasPrefix(name, f.folder+".") })
		}
	}
	for name, n := range methods {
		out[name] = n + more[name]
	}
	return out
}

// dependencies counts what packages of the product import of the module, and those with one importer: each is a part of
// that package with a fence.
func (t *tree) dependencies() []measure {
	imports, alone, importers := tally{}, tally{}, map[string][]string{}
	for p := range t.product {
		if !t.programs[p] {
			imports[p] = len(t.imports[p])
		}
		for q := range t.imports[p] {
			importers[q] = append(importers[q], p)
		}
	}
	for q, from := range importers {
		if len(from) == 1 {
			alone[q+", imported by "+from[0]] = 1
		}
	}
	return []measure{largest("imports of a package", imports), number("packages with one importer", alone)}
}

// top is the top-level folder of a package.
func top(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

// room is a top-level folder, or one directly below internal.
func room(p string) string {
	if rest, ok := strings.CutPrefix(p, "internal/"); ok {
		return "internal/" + top(rest)
	}
	return top(p)
}

// rooms counts imports between rooms. A room's order is the median of its packages' levels.
func (t *tree) rooms() []measure {
	levels, order, edges := map[string][]int{}, tally{}, map[string]set{}
	for p := range t.packages {
		levels[room(p)] = append(levels[room(p)], t.level(p))
	}
	for r, l := range levels {
		slices.Sort(l)
		order[r] = l[(len(l)-1)/2] + l[len(l)/2] // twice the median
		edges[r] = set{}
	}
	for p, imports := range t.imports {
		for q := range imports {
			if t.product[p] { // benchmarks and what tests share import what they measure and test
				edges[room(p)][room(q)] = true
			}
		}
	}
	mutual, upward, tangle := tally{}, tally{}, tally{}
	for a := range edges {
		for b := range edges[a] {
			if a < b && edges[b][a] {
				mutual[a+" and "+b] = 1
			}
			if order[b] > order[a] {
				upward[a+" imports "+b] = 1
			}
		}
		ring := tally{}
		for b := range reach([]string{a}, edges) {
			if reach([]string{b}, edges)[a] {
				ring[b] = 1
			}
		}
		if len(ring) > len(tangle) {
			tangle = ring
		}
	}
	return []measure{number("rooms that import each other", mutual), number("rooms in the largest tangle", tangle),
		number("rooms that import a higher one", upward)}
}

var stageName = regexp.MustCompile(`^Stage[A-Z]\w+$`)

// stages counts in how many files a stage's name occurs, and the files that call one of six stages of a step.
func (t *tree) stages(product []*source) []measure {
	files, callers := tally{}, tally{}
	for _, f := range t.packages["schema"] {
		for _, name := range f.declared {
			if stageName.MatchString(name) {
				files[name] = len(per(product, uses(name)))
			}
		}
	}
	calling := filter(product, func(f *source) bool { return !strings.HasSuffix(f.path, "register.go") })
	for _, s := range []string{"GenerateRollouts", "ScoreRewards", "AssembleTrajectories", "Resample",
		"ComputeAdvantages", "UpdatePolicy"} {
		callers[s] = len(per(calling, uses("api."+s, "stages."+s, "step."+s, s+"{")))
	}
	return []measure{quantile("files of a stage, p50", files, .5), largest("files of a stage, max", files),
		largest("files that call a stage", callers)}
}

// pages counts the words of the design and of the user's pages, without generated ones.
func (t *tree) pages() ([]measure, error) {
	words, lines := tally{}, tally{}
	pages, err := fs.Glob(t.root, "docs/*.md")
	for _, page := range append(pages, "DESIGN.md") {
		text, err := fs.ReadFile(t.root, page)
		if err != nil {
			return nil, err
		}
		name := path.Base(page)
		if !strings.Contains(string(text[:min(len(text), 400)]), "<!-- Made from") {
			words[name] = len(strings.Fields(string(text)))
		}
		if name == "DESIGN.md" {
			lines[name] = strings.Count(string(text), "\n")
		}
	}
	return []measure{sum("words of DESIGN.md and docs", words), sum("lines of DESIGN.md", lines)}, err
}

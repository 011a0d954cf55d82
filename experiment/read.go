package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/recipes"
)

// reader reads the YAML of an experiment. It collects every fault with its line.
type reader struct {
	file     *File
	recipe   string   // of arms that name none
	set      []string // of all arms
	problems recipes.Problems
}

// entries are the fields of a mapping, each with what reads its value.
type entries map[string]func(path string, value *yaml.Node)

func (r *reader) fail(n *yaml.Node, path, format string, args ...any) {
	p := recipes.Problem{File: r.file.file, Line: 1, Path: path, Message: fmt.Sprintf(format, args...)}
	if n != nil && n.Line > 0 {
		p.Line, p.Column = n.Line, n.Column
	}
	r.problems = append(r.problems, p)
}

// failAt is fail for an entry that was read before.
func (r *reader) failAt(path, format string, args ...any) {
	line := r.file.line[path]
	for at := path; line == 0 && at != ""; line = r.file.line[at] {
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	r.fail(&yaml.Node{Line: line}, path, format, args...)
}

func (r *reader) document(text []byte) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		r.fail(nil, "", "%s", badinput.YAML(err.Error()))
		return
	}
	if len(doc.Content) == 0 {
		r.fail(nil, "", "the file is empty")
		return
	}
	f := r.file
	var arms *yaml.Node
	r.mapping("", doc.Content[0], entries{
		"name": r.into(&f.Name), "question": r.into(&f.Question), "recipe": r.into(&r.recipe),
		"set":  func(path string, n *yaml.Node) { r.set = r.settings(path, n) },
		"arms": func(_ string, n *yaml.Node) { arms = n }, "grid": r.grid, "seeds": r.seeds,
		"outcomes": r.each(r.outcome), "comparisons": r.each(r.comparison), "parallel": r.into(&f.Parallel),
		"program": r.program, "stop": r.stop,
		"budget": func(path string, n *yaml.Node) {
			r.mapping(path, n, entries{"axis": r.into(&f.Budget.Axis), "amount": r.into(&f.Budget.Amount)})
		},
	})
	r.arms(arms)
}

// mapping reads the entries of a mapping, and refuses others.
func (r *reader) mapping(path string, n *yaml.Node, known entries) {
	r.pairs(path, n, func(at string, key, value *yaml.Node) {
		read, ok := known[key.Value]
		if ok {
			read(at, value)
			return
		}
		names := slices.Sorted(maps.Keys(known))
		if near := spelling.AllNearest(key.Value, names); len(near) > 0 {
			names = near
		}
		r.fail(key, at, "is no field here; did you mean %s?", spelling.OrList(names))
	})
}

// pairs calls each with the pairs of a mapping, in their order.
func (r *reader) pairs(path string, n *yaml.Node, each func(at string, key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, path, "must be a mapping")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := key.Value
		if path != "" {
			at = path + "." + at
		}
		if seen[key.Value] {
			r.fail(key, at, "is there twice")
			continue
		}
		seen[key.Value], r.file.line[at] = true, key.Line
		each(at, key, value)
	}
}

// into reads a value of the kind of what to points to.
func (r *reader) into(to any) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		if err := n.Decode(to); err != nil {
			text := badinput.YAML(err.Error())
			if _, rest, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(text, "line ") {
				text = rest
			}
			r.fail(n, path, "%s", text)
		}
	}
}

// each reads the elements of a list.
func (r *reader) each(element func(path string, n *yaml.Node)) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			r.fail(n, path, "must be a list")
			return
		}
		for i, c := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			r.file.line[at] = c.Line
			element(at, c)
		}
	}
}

// settings reads a mapping of recipe fields as path=value, in the form that recipes take.
func (r *reader) settings(path string, n *yaml.Node) (set []string) {
	r.pairs(path, n, func(at string, key, value *yaml.Node) {
		set = append(set, r.setting(at, key, value))
	})
	return set
}

func (r *reader) setting(path string, key, value *yaml.Node) string {
	flow(value)
	text, err := yaml.Marshal(value)
	if err != nil {
		r.fail(value, path, "%s", badinput.YAML(err.Error()))
	}
	return key.Value + "=" + strings.TrimSpace(string(text))
}

// flow has a node written on one line, without its comments.
func flow(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	switch {
	case n.Kind != yaml.ScalarNode:
		n.Style = yaml.FlowStyle
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		flow(c)
	}
}

// arms reads the arms. Without any, the file's recipe is the only one.
func (r *reader) arms(n *yaml.Node) {
	if n == nil {
		if r.recipe == "" {
			r.fail(nil, "arms", "name the recipes to compare")
			return
		}
		r.file.Arms = []Arm{{Name: r.recipe, Recipe: r.recipe, Set: r.set}}
		return
	}
	r.pairs("arms", n, func(at string, key, value *yaml.Node) {
		a := Arm{Name: key.Value, Recipe: r.recipe}
		var set []string
		if value.ShortTag() != "!!null" { // the recipe as it is
			r.mapping(at, value, entries{"recipe": r.into(&a.Recipe),
				"set": func(path string, n *yaml.Node) { set = r.settings(path, n) }})
		}
		a.Set = slices.Concat(r.set, set)
		r.file.Arms = append(r.file.Arms, a)
	})
}

// grid reads lists of values by recipe field, and multiplies them.
func (r *reader) grid(path string, n *yaml.Node) {
	points := []point{{}}
	r.pairs(path, n, func(at string, key, value *yaml.Node) {
		if value.Kind != yaml.SequenceNode || len(value.Content) == 0 {
			r.fail(value, at, "must be a list of values")
			return
		}
		var more []point
		for _, p := range points {
			for _, c := range value.Content {
				set := r.setting(at, key, c)
				more = append(more, point{Name: strings.TrimSpace(p.Name + " " + set),
					Set: append(slices.Clone(p.Set), set)})
			}
		}
		points = more
	})
	r.file.Points = points
}

// seeds reads a list of seeds, or how many there are from 1 on.
func (r *reader) seeds(path string, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		r.into(&r.file.Seeds)(path, n)
		return
	}
	count := 0
	r.into(&count)(path, n)
	for i := range count {
		r.file.Seeds = append(r.file.Seeds, uint64(i+1))
	}
}

func (r *reader) outcome(path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		o, ok := builtin(n.Value)
		if !ok {
			r.fail(n, path, "there is no outcome %s; there are %s, and {name, sql, reduce}", n.Value,
				strings.Join(outcomeNames(), ", "))
			return
		}
		r.file.Outcomes = append(r.file.Outcomes, o)
		return
	}
	var o Outcome
	from := ""
	r.mapping(path, n, entries{"name": r.into(&o.Name), "sql": r.into(&o.SQL), "of": r.into(&from),
		"reduce": r.into(&o.Reduce), "below": r.into(&o.Below), "share": r.into(&o.Share), "doc": r.into(&o.Doc)})
	if from != "" {
		base, ok := builtin(from)
		if !ok {
			r.fail(n, path+".of", "there is no outcome %s; there are %s", from, strings.Join(outcomeNames(), ", "))
		}
		o = o.over(base)
	}
	r.file.Outcomes = append(r.file.Outcomes, o)
}

func (r *reader) comparison(path string, n *yaml.Node) {
	var c comparison
	r.mapping(path, n, entries{"arm": r.into(&c.Arm), "against": r.into(&c.Against),
		"outcomes": r.into(&c.Outcomes)})
	r.file.Comparisons = append(r.file.Comparisons, c)
}

func (r *reader) program(path string, n *yaml.Node) {
	which := ""
	r.into(&which)(path, n)
	if r.file.Program = which == "this"; !r.file.Program && which != "any" {
		r.fail(n, path, "must be any or this, got %s", n.Value)
	}
}

func (r *reader) stop(path string, n *yaml.Node) {
	s := &r.file.Stop
	r.mapping(path, n, entries{"at": r.into(&s.At),
		"halve": func(at string, n *yaml.Node) {
			r.mapping(at, n, entries{"by": r.into(&s.By), "keep": r.into(&s.Keep)})
		},
		"collapse": func(at string, n *yaml.Node) {
			r.mapping(at, n, entries{"of": r.into(&s.Collapse), "below": r.into(&s.Below)})
		}})
}

package recipes

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// A rule is a condition on several fields, a row of a table. It is asked only if none of the fields that it reads has a
// fault of its own, and if the recipe has a place for the field to blame: a section that is off breaks no rule.
type rule struct {
	at     string // the field to blame
	reads  string // the other fields that it reads, with spaces between them
	only   string // environment, or class of them; "" = all
	set    bool   // asked only where the field to blame is set
	remote bool   // asked only of a recipe whose engine is a Tinker server

	// One of these is the condition.
	ok     func(*Recipe) bool
	atMost string               // the field is at most this other one
	is     string               // the field has this value
	check  func(*Recipe) string // says what is wrong, or returns ""

	doc string // the rule in words, for the reference page; atMost and is have words of their own
	why string // with is: why no other value will do
	// fault says what is wrong if ok does not hold. A path in braces stands for the value of the field. "" = the field
	// must be what doc says.
	fault string
}

// rules holds the rules about the settings around the method, then the rules of the method.
var rules = slices.Concat(taskRules, runRules, evaluationRules, tinkerRules, ofMethod())

// inWords returns the rule for the reference page.
func (c rule) inWords() string {
	words := c.doc
	switch {
	case c.atMost != "":
		words = "at most " + c.atMost
	case c.is != "" && c.why != "":
		words = c.is + ": " + c.why
	}
	if c.remote {
		words = "with kind tinker: " + words
	}
	return words
}

// readsOf lists the fields that the rule reads.
func (c rule) readsOf() []string {
	paths := append([]string{c.at}, strings.Fields(c.reads)...)
	if c.atMost != "" {
		paths = append(paths, c.atMost)
	}
	if c.remote {
		paths = append(paths, "engine.kind")
	}
	return paths
}

// applies reports whether the rule is asked of a recipe.
func (c rule) applies(r *Recipe, s scope) bool {
	if c.only != "" && !slices.Contains(members([]string{c.only}), s.environment) || !s.places(c.at) ||
		c.atMost != "" && !s.places(c.atMost) || c.remote && !r.Engine.Declaration().Remote {
		return false
	}
	v, on := r.value(c.at)
	return on && !(c.set && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0))
}

// broken says how the recipe breaks the rule, or returns "".
func (c rule) broken(r *Recipe) string {
	fault := ""
	switch {
	case c.check != nil:
		fault = c.check(r)
	case c.atMost != "":
		low, _ := r.value(c.at)
		high, _ := r.value(c.atMost)
		fault = unless(low.Int() <= high.Int(), "must be ≤ %s (%d), got %d", c.atMost, high.Int(), low.Int())
	case c.is != "":
		if got := r.shown(c.at); got != c.is {
			fault = "must be " + c.is + ", got " + got + ": " + c.why
		}
	case c.ok(r):
	case c.fault != "":
		fault = inBraces.ReplaceAllStringFunc(c.fault,
			func(path string) string { return r.shown(strings.Trim(path, "{}")) })
	default:
		fault = "must be " + c.doc + ", got " + r.shown(c.at)
	}
	if fault != "" && c.remote {
		return "with engine.kind tinker: " + fault
	}
	return fault
}

// inBraces matches a path in a fault.
var inBraces = regexp.MustCompile(`\{[a-z0-9_.]+\}`)

// value returns the value of a field; on is false inside a section that is off.
func (r *Recipe) value(path string) (v reflect.Value, on bool) {
	f, v := root(), reflect.ValueOf(r).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if v = reflect.Indirect(v); !v.IsValid() {
			return v, false
		}
		f = f.child(name)
		v = f.in(v)
	}
	return v, true
}

// shown returns the value of a field as messages show it. The protocol is the environment's own if none is named.
func (r *Recipe) shown(path string) string {
	if path == "rollout.protocol" {
		p, _ := r.Protocol()
		return protocolName(p)
	}
	v, on := r.value(path)
	switch {
	case !on:
		return ""
	case v.Kind() == reflect.Float64:
		return short(v.Float())
	}
	return fmt.Sprint(v.Interface())
}

// combinations checks the rules whose fields have no fault.
func (d *decoder) combinations(r *Recipe) {
	if d.scope.environment == "" {
		return
	}
	faulty := slices.Clone(d.problems)
	for _, c := range rules {
		if !sound(faulty, c.readsOf()) || !c.applies(r, d.scope) {
			continue
		}
		if fault := c.broken(r); fault != "" {
			d.fail(d.blame(c.at), c.at, "%s", fault)
		}
	}
}

// places reports whether the recipe has a place for a field and for the sections that contain the field.
func (s scope) places(path string) bool {
	f := root()
	for name := range strings.SplitSeq(path, ".") {
		if f = f.child(name); f == nil {
			return true
		}
		if !f.belongs(s) {
			return false
		}
	}
	return true
}

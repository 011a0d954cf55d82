package jinja

import "errors"

func (n textNode) run(r *renderer, _ *scope) error {
	r.write(n.text)
	return nil
}

func (n outputNode) run(r *renderer, s *scope) error {
	r.line = n.line
	r.write(r.text(r.value(n.of, s)))
	return nil
}

func (n ifNode) run(r *renderer, s *scope) error {
	for i, c := range n.conditions {
		if truth(r.value(c, s)) {
			return r.run(n.bodies[i], s)
		}
	}
	return r.run(n.otherwise, s)
}

func (n blockNode) run(r *renderer, s *scope) error { return r.run(n.body, s.inner()) }

func (n breakNode) run(*renderer, *scope) error {
	if n.again {
		return errContinue
	}
	return errBreak
}

func (n forNode) run(r *renderer, s *scope) error {
	r.line = n.line
	items := r.elements(r.value(n.over, s))
	if n.condition != nil {
		items = n.chosen(r, s, items)
	}
	if len(items) == 0 {
		return r.run(n.otherwise, s.inner())
	}
	for i, item := range items {
		r.visit(iterationCost)
		inner := s.inner()
		inner.names["loop"] = loop{items, i}
		r.line = n.line
		r.assign(inner, n.names, item)
		if errors.Is(r.run(n.body, inner), errBreak) {
			break
		}
	}
	return nil
}

// chosen returns the items that fulfil the loop's condition.
func (n forNode) chosen(r *renderer, s *scope, items []any) (out []any) {
	for _, item := range items {
		inner := s.inner()
		r.visit(iterationCost)
		r.assign(inner, n.names, item)
		if truth(r.value(n.condition, inner)) {
			out = append(out, item)
		}
	}
	return out
}

// loop is the object loop of an iteration.
type loop struct {
	items []any
	at    int
}

// get returns an attribute.
func (l loop) get(name string) any {
	n := len(l.items)
	switch name {
	case "index":
		return l.at + 1
	case "index0":
		return l.at
	case "first":
		return l.at == 0
	case "last":
		return l.at == n-1
	case "length":
		return n
	case "revindex":
		return n - l.at
	case "revindex0":
		return n - l.at - 1
	case "depth":
		return 1
	case "depth0":
		return 0
	case "cycle":
		return function(l.cycle)
	}
	if name == "previtem" && l.at > 0 {
		return l.items[l.at-1]
	}
	if name == "nextitem" && l.at+1 < n {
		return l.items[l.at+1]
	}
	return undefined{name}
}

func (l loop) cycle(r *renderer, args []any, _ *Dict) any {
	if len(args) == 0 {
		panic(r.failure("cycle wants values"))
	}
	return args[l.at%len(args)]
}

// assign sets one name, or several from the parts of a value.
func (r *renderer) assign(s *scope, names []string, v any) {
	if len(names) == 1 {
		s.names[names[0]] = v
		return
	}
	parts := r.elements(v)
	if len(parts) != len(names) {
		panic(r.failure("%d values for %d names", len(parts), len(names)))
	}
	for i, name := range names {
		s.names[name] = parts[i]
	}
}

func (n setNode) run(r *renderer, s *scope) error {
	r.line = n.line
	var v any
	var leaves error
	if n.of != nil {
		v = r.marked(n.of, s)
	} else if v, leaves = r.capture(n.body, s.inner()); leaves != nil {
		return leaves
	}
	r.line = n.line
	if n.object == "" {
		r.assign(s, n.names, v)
		return nil
	}
	of, _ := s.find(n.object)
	ns, ok := of.(*namespace)
	if !ok {
		panic(r.failure("%s is no namespace, so %s.%s cannot be set", n.object, n.object, n.attribute))
	}
	ns.Set(n.attribute, v)
	return nil
}

func (n macroNode) run(_ *renderer, s *scope) error {
	s.names[n.name] = function(func(r *renderer, args []any, named *Dict) any {
		defer r.deeper("macros call each other")()
		inner := s.inner()
		if len(args) > len(n.names) {
			panic(r.failure("%s takes %d arguments, got %d", n.name, len(n.names), len(args)))
		}
		for i, name := range n.names {
			v, given := named.Get(name)
			switch e := n.defaults[name]; {
			case i < len(args):
				v = args[i]
			case given:
			case e != nil:
				v = r.value(e, inner)
			default:
				v = undefined{name}
			}
			inner.names[name] = v
		}
		text, leaves := r.capture(n.body, inner)
		if leaves != nil {
			panic(failure{leaves})
		}
		return text
	})
	return nil
}

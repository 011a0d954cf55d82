package jinja

import (
	"errors"
	"fmt"
)

func (n textNode) run(r *renderer, _ *scope) error {
	r.write(n.text)
	return nil
}

func (n outputNode) run(r *renderer, s *scope) error {
	r.line = n.line
	v, err := r.value(n.of, s)
	if err == nil {
		r.write(r.text(v))
	}
	return at(n.line, err)
}

func (n ifNode) run(r *renderer, s *scope) error {
	for i, c := range n.conditions {
		v, err := r.value(c, s)
		if err != nil {
			return err
		}
		if truth(v) {
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
	over, err := r.value(n.over, s)
	if err != nil {
		return at(n.line, err)
	}
	items, err := r.elements(over)
	if err != nil {
		return at(n.line, err)
	}
	if n.condition != nil {
		if items, err = n.chosen(r, s, items); err != nil {
			return at(n.line, err)
		}
	}
	if len(items) == 0 {
		return r.run(n.otherwise, s.inner())
	}
	for i, item := range items {
		r.visit(iterationCost)
		inner := s.inner()
		inner.names["loop"] = loop{items, i}
		if err := r.assign(inner, n.names, item); err != nil {
			return at(n.line, err)
		}
		err := r.run(n.body, inner)
		if errors.Is(err, errBreak) {
			break
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// chosen returns the items that fulfil the loop's condition.
func (n forNode) chosen(r *renderer, s *scope, items []any) (out []any, err error) {
	for _, item := range items {
		inner := s.inner()
		r.visit(iterationCost)
		if err := r.assign(inner, n.names, item); err != nil {
			return nil, err
		}
		v, err := r.value(n.condition, inner)
		if err != nil {
			return nil, err
		}
		if truth(v) {
			out = append(out, item)
		}
	}
	return out, nil
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

func (l loop) cycle(_ *renderer, args []any, _ *Dict) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("cycle wants values")
	}
	return args[l.at%len(args)], nil
}

// assign sets one name, or several from the parts of a value.
func (r *renderer) assign(s *scope, names []string, v any) error {
	if len(names) == 1 {
		s.names[names[0]] = v
		return nil
	}
	parts, err := r.elements(v)
	if err != nil {
		return err
	}
	if len(parts) != len(names) {
		return fmt.Errorf("%d values for %d names", len(parts), len(names))
	}
	for i, name := range names {
		s.names[name] = parts[i]
	}
	return nil
}

func (n setNode) run(r *renderer, s *scope) error {
	r.line = n.line
	var v any
	var err error
	if n.of != nil {
		v, err = r.marked(n.of, s)
	} else {
		v, err = r.capture(n.body, s.inner())
	}
	if err != nil {
		return at(n.line, err)
	}
	if n.object == "" {
		return at(n.line, r.assign(s, n.names, v))
	}
	of, _ := s.find(n.object)
	ns, ok := of.(*namespace)
	if !ok {
		return at(n.line, fmt.Errorf("%s is no namespace, so %s.%s cannot be set", n.object, n.object, n.attribute))
	}
	ns.Set(n.attribute, v)
	return nil
}

func (n macroNode) run(_ *renderer, s *scope) error {
	s.names[n.name] = function(func(r *renderer, args []any, named *Dict) (any, error) {
		defer r.deeper("macros call each other")()
		inner := s.inner()
		if len(args) > len(n.names) {
			return nil, fmt.Errorf("%s takes %d arguments, got %d", n.name, len(n.names), len(args))
		}
		for i, name := range n.names {
			v, given := named.Get(name)
			switch e := n.defaults[name]; {
			case i < len(args):
				v = args[i]
			case given:
			case e != nil:
				var err error
				if v, err = r.value(e, inner); err != nil {
					return nil, err
				}
			default:
				v = undefined{name}
			}
			inner.names[name] = v
		}
		return r.capture(n.body, inner)
	})
	return nil
}

package jinja

import (
	"errors"
	"fmt"
)

func (n textNode) run(r *renderer, _ *scope) error { return r.write(n.text) }

func (n outputNode) run(r *renderer, s *scope) error {
	v, err := n.of.value(r, s)
	if err == nil {
		err = r.write(text(v))
	}
	return at(n.line, err)
}

func (n ifNode) run(r *renderer, s *scope) error {
	for i, c := range n.conditions {
		v, err := c.value(r, s)
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
	over, err := n.over.value(r, s)
	if err != nil {
		return at(n.line, err)
	}
	items, err := elements(over)
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
		if err := r.step(); err != nil {
			return err
		}
		inner := s.inner()
		inner.names["loop"] = loopOf(items, i)
		if err := assign(inner, n.names, item); err != nil {
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
		if err := assign(inner, n.names, item); err != nil {
			return nil, err
		}
		v, err := n.condition.value(r, inner)
		if err != nil {
			return nil, err
		}
		if truth(v) {
			out = append(out, item)
		}
	}
	return out, r.step()
}

// loopOf returns the object loop of an iteration.
func loopOf(items []any, i int) *Dict {
	d := NewDict("index", i+1, "index0", i, "first", i == 0, "last", i == len(items)-1, "length", len(items),
		"revindex", len(items)-i, "revindex0", len(items)-i-1, "depth", 1, "depth0", 0)
	if i > 0 {
		d.Set("previtem", items[i-1])
	}
	if i+1 < len(items) {
		d.Set("nextitem", items[i+1])
	}
	d.Set("cycle", function(func(_ *renderer, args []any, _ *Dict) (any, error) {
		if len(args) == 0 {
			return nil, errors.New("cycle wants values")
		}
		return args[i%len(args)], nil
	}))
	return d
}

// assign sets one name, or several from the parts of a value.
func assign(s *scope, names []string, v any) error {
	if len(names) == 1 {
		s.names[names[0]] = v
		return nil
	}
	parts, err := elements(v)
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
	var v any
	var err error
	if n.of != nil {
		v, err = n.of.value(r, s)
	} else {
		v, err = r.text(n.body, s.inner())
	}
	if err != nil {
		return at(n.line, err)
	}
	if n.object == "" {
		return at(n.line, assign(s, n.names, v))
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
		if r.depth++; r.depth > mostDepth {
			return nil, errors.New("macros call each other too deeply")
		}
		defer func() { r.depth-- }()
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
				if v, err = e.value(r, inner); err != nil {
					return nil, err
				}
			default:
				v = undefined{name}
			}
			inner.names[name] = v
		}
		return r.text(n.body, inner)
	})
	return nil
}

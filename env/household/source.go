package household

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// source is a problem in PDDL: its facts and what its goal demands, in lower case.
type source struct {
	facts    map[string]map[string][]string // by predicate and first argument: the second arguments
	declared map[string]bool                // objects
	used     map[string]bool                // objects of facts
	goal     []string                       // "isclean ?o", sorted
}

// is reports whether a predicate is true of an object.
func (s source) is(predicate, id string) bool {
	_, ok := s.facts[predicate][id]
	return ok
}

// predicates are what a game of ALFWorld may begin with, with the number of their arguments.
var predicates = func() map[string]int {
	arguments := map[string]int{}
	for _, name := range names("opened openable isReceptacleObject isClean cleanable isHot heatable isCool coolable " +
		"pickupable toggleable isToggled isOn sliceable isSliced moveable checked examined") {
		arguments[strings.ToLower(name)] = 1
	}
	for _, name := range names("atLocation receptacleAtLocation objectAtLocation inReceptacle inReceptacleObject " +
		"receptacleType objectType canContain") {
		arguments[strings.ToLower(name)] = 2
	}
	return arguments
}()

// expression is a list of PDDL. Its items are words (string) and lists.
type expression []any

func (e expression) head() string {
	if len(e) == 0 {
		return ""
	}
	word, _ := e[0].(string)
	return word
}

// words returns the items of a list without lists in it.
func (e expression) words() (out []string, ok bool) {
	for _, item := range e {
		word, ok := item.(string)
		if !ok {
			return nil, false
		}
		out = append(out, word)
	}
	return out, true
}

// parse reads the only list of a text.
func parse(text string) (expression, error) {
	text = comment.ReplaceAllString(strings.ToLower(text), "")
	open := []expression{nil}
	for word := range strings.FieldsSeq(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)) {
		top := len(open) - 1
		switch {
		case word == "(":
			open = append(open, nil)
		case word == ")" && top == 0:
			return nil, errors.New("closes a list that is not open")
		case word == ")":
			open[top-1], open = append(open[top-1], open[top]), open[:top]
		default:
			open[top] = append(open[top], word)
		}
	}
	if len(open) > 1 || len(open[0]) != 1 {
		return nil, fmt.Errorf("is cut: %d lists are open at its end", len(open)-1)
	}
	root, _ := open[0][0].(expression)
	return root, nil
}

func readSource(text string) (s source, err error) {
	root, err := parse(text)
	if err != nil {
		return s, err
	}
	if root.head() != "define" {
		return s, fmt.Errorf("begins with %q, want define", root.head())
	}
	s = source{facts: map[string]map[string][]string{}, declared: map[string]bool{}, used: map[string]bool{}}
	for _, item := range root[1:] {
		part, _ := item.(expression)
		switch part.head() {
		case "problem", ":domain", ":metric":
		case ":objects":
			err = s.declare(part[1:])
		case ":init":
			err = s.readFacts(part[1:])
		case ":goal":
			err = s.demand(part[1:])
			slices.Sort(s.goal)
			s.goal = slices.Compact(s.goal)
		default:
			err = fmt.Errorf("has a part %q", part.head())
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// declare reads "NAME … - TYPE …".
func (s source) declare(objects expression) error {
	words, ok := objects.words()
	if !ok {
		return errors.New("lists more than names as its objects")
	}
	for _, word := range words {
		s.declared[word] = true // with the types, which no fact names
	}
	return nil
}

func (s source) readFacts(facts expression) error {
	for _, item := range facts {
		fact, _ := item.(expression)
		if fact.head() == "=" {
			continue // costs
		}
		words, ok := fact.words()
		if !ok || predicates[fact.head()] == 0 || len(words) != predicates[fact.head()]+1 {
			return fmt.Errorf("has the fact %v, which no game begins with", item)
		}
		for _, id := range words[1:] {
			if !s.declared[id] {
				return fmt.Errorf("the fact %s names %s, which is not declared", strings.Join(words, " "), id)
			}
			s.used[id] = true
		}
		of := s.facts[words[0]]
		if of == nil {
			of = map[string][]string{}
			s.facts[words[0]] = of
		}
		if more := words[2:]; !slices.Contains(of[words[1]], strings.Join(more, "")) {
			of[words[1]] = append(of[words[1]], more...)
		}
	}
	return nil
}

// demand lists the conditions of a goal that is made of and, exists and not.
func (s *source) demand(goal expression) error {
	for _, item := range goal {
		e, ok := item.(expression)
		switch {
		case !ok:
			return fmt.Errorf("has %v in its goal", item)
		case e.head() == "and":
			e = e[1:]
		case e.head() == "exists" && len(e) == 3:
			e = e[2:]
		default:
			s.goal = append(s.goal, strings.NewReplacer("[", "", "]", "").Replace(fmt.Sprint(e)))
			continue
		}
		if err := s.demand(e); err != nil {
			return err
		}
	}
	return nil
}

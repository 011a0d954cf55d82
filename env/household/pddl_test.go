package household

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// problemOf writes a task as a problem in PDDL for the domain of ALFWorld's Python package. Identifiers are chosen so
// that the package gives places and things the names that they have here.
func problemOf(task env.Task) (string, error) {
	w, err := new(Household).readTask(task)
	if err != nil {
		return "", err
	}
	p := problem{world: w}
	p.declare()
	p.state()
	return fmt.Sprintf("(define (problem household)\n (:domain alfred)\n (:objects\n%s )\n (:init\n%s )\n"+
		" (:goal\n%s )\n (:metric minimize (total-cost))\n)\n", p.objects.String(), p.init.String(), w.Goal.pddl()), nil
}

// problem collects the objects and the facts of a problem.
type problem struct {
	*world
	objects, init strings.Builder
}

func (p *problem) object(kind string, names ...string) {
	for _, name := range names {
		fmt.Fprintf(&p.objects, "  %s - %s\n", name, kind)
	}
}

func (p *problem) fact(words ...string) { fmt.Fprintf(&p.init, "  (%s)\n", strings.Join(words, " ")) }

// identifier names the thing or place with a number out of a class with so many. ALFWorld numbers the identifiers of a
// class backwards, and adds "basin" to the class where the rest of the identifier contains it.
func identifier(class string, number, of int) string {
	short, basin := strings.CutSuffix(class, "basin")
	id := fmt.Sprintf("%s_bar_%03d", short, of-number)
	if basin {
		id += "_basin"
	}
	return id
}

func (p *problem) placeID(i int) string {
	of := 0
	for _, other := range p.Places {
		if other.class == p.Places[i].class {
			of = max(of, other.number)
		}
	}
	return identifier(p.Places[i].class, p.Places[i].number, of)
}

func (p *problem) thingID(i int) string {
	of := 0
	for _, other := range p.Things {
		if other.class == p.Things[i].class {
			of = max(of, other.number)
		}
	}
	return identifier(p.Things[i].class, p.Things[i].number, of)
}

// middle is the location in the middle of the room.
const middle = "loc_bar_middle"

func location(place int) string { return fmt.Sprintf("loc_bar_%d", place) }

func (p *problem) declare() {
	p.object("agent", "agent1")
	p.object("location", middle)
	places, things := slices.Clone(domainTypes.places), slices.Clone(domainTypes.things)
	things = append(things, p.Goal.Thing)
	if p.Goal.kind().count == 0 {
		things = append(things, p.Goal.Where)
	} else {
		places = append(places, p.Goal.Where)
	}
	for i, at := range p.Places {
		p.object("receptacle", p.placeID(i))
		p.object("location", location(i))
		places = append(places, at.class)
	}
	for i, t := range p.Things {
		p.object("object", p.thingID(i))
		things = append(things, t.class)
	}
	slices.Sort(places)
	slices.Sort(things)
	for _, class := range slices.Compact(places) {
		p.object("rtype", class+"Type")
	}
	for _, class := range slices.Compact(things) {
		p.object("otype", class+"Type")
		for _, in := range slices.Compact(slices.Clone(places)) {
			if holds(in, class) {
				p.fact("canContain", in+"Type", class+"Type")
			}
		}
	}
}

func (p *problem) state() {
	p.fact("= (total-cost) 0")
	p.fact("atLocation agent1", middle)
	for i, at := range p.Places {
		id := p.placeID(i)
		p.fact("receptacleAtLocation", id, location(i))
		p.fact("receptacleType", id, at.class+"Type")
		if at.door != noDoor {
			p.fact("openable", id)
		}
		if at.door == opened {
			p.fact("opened", id)
		}
	}
	for i, t := range p.Things {
		id := p.thingID(i)
		p.fact("objectType", id, t.class+"Type")
		p.fact("inReceptacle", id, p.placeID(t.at[0]))
		p.fact("objectAtLocation", id, location(t.at[0]))
		if t.can&fixed == 0 {
			p.fact("pickupable", id)
		}
		for _, a := range abilities {
			if t.can&a.mark != 0 {
				p.fact(a.name, id)
			}
		}
	}
}

// variables are the variables of goals, with their types.
const variables = "?o - object ?o1 - object ?o2 - object ?ot - object ?r - receptacle ?a - agent ?l - location"

// pddl writes the goal with the conditions of ALFWorld's problems.
func (g goal) pddl() string {
	text := fmt.Sprintf(g.kind().conditions, g.Thing+"Type", g.Where+"Type")
	text = "(" + strings.ReplaceAll(text, ", ", ") (") + ")"
	text = strings.ReplaceAll(text, "(not = ?o1 ?o2)", "(not (= ?o1 ?o2))")
	var used []string
	for _, v := range strings.SplitAfter(variables, " ?") {
		name, kind, _ := strings.Cut(strings.Trim(v, " ?"), " ")
		if strings.Contains(text+" ", "?"+name+" ") || strings.Contains(text, "?"+name+")") {
			used = append(used, "?"+name+" "+kind)
		}
	}
	return "  (exists (" + strings.Join(used, " ") + ") (and " + text + "))\n"
}

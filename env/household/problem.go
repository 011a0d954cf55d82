package household

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// readProblem reads a room and its goal from a problem in PDDL, as the game files hold it. Identifiers are in any case.
func readProblem(text string) (*game, error) {
	s, err := readSource(text)
	if err != nil {
		return nil, err
	}
	r := reading{source: s, names: s.number(), at: map[string]int{},
		game: &game{start: &world{Limit: 1}, holds: map[[2]string]bool{}, inside: map[int][]string{}}}
	r.start.game = r.game
	for _, read := range []func() error{r.readPlaces, r.readThings, r.readGoal} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	for place, things := range s.facts["cancontain"] {
		for _, thing := range things {
			r.holds[[2]string{strings.TrimSuffix(place, "type"), strings.TrimSuffix(thing, "type")}] = true
		}
	}
	return r.game, nil
}

// reading is a game that is being read.
type reading struct {
	source
	*game
	names map[string]named
	at    map[string]int // index of each place
}

// number names objects as ALFWorld does: the class is what precedes the first bar, and the numbers of a class fall in
// the order of the identifiers.
func (s source) number() map[string]named {
	classes, count := map[string]string{}, map[string]int{}
	for id := range s.used {
		if class, _, ok := strings.Cut(id, "_bar_"); ok {
			if strings.Contains(id, "basin") {
				class += "basin"
			}
			classes[id] = class
			count[class]++
		}
	}
	out := map[string]named{}
	for _, id := range slices.Sorted(maps.Keys(classes)) {
		out[id] = named{classes[id], count[classes[id]]}
		count[classes[id]]--
	}
	return out
}

// typed lists the identifiers that a predicate gives a type, by class and number. Each has one type, that of its class.
func (r reading) typed(predicate string) ([]string, error) {
	ids := slices.Collect(maps.Keys(r.facts[predicate]))
	for _, id := range ids {
		types, n := r.facts[predicate][id], r.names[id]
		if len(types) != 1 || types[0] != n.class+"type" {
			return nil, fmt.Errorf("%s has the types %s, want one, of its class", id, strings.Join(types, ", "))
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.names[a].class, r.names[b].class), r.names[a].number-r.names[b].number)
	})
	return ids, nil
}

func (r reading) readPlaces() error {
	ids, err := r.typed("receptacletype")
	if err != nil {
		return err
	}
	for i, id := range ids {
		where := r.facts["receptacleatlocation"][id]
		if len(where) != 1 {
			return fmt.Errorf("%s is at %d locations, want one", id, len(where))
		}
		p := place{class: r.names[id].class, number: r.names[id].number, door: noDoor}
		if r.is("openable", id) {
			p.door = closed
			if r.is("opened", id) {
				p.door = opened
			}
		}
		r.at[id] = i
		r.start.Places, r.locations = append(r.start.Places, p), append(r.locations, r.names[where[0]].number)
	}
	agents := slices.Concat(slices.Collect(maps.Values(r.facts["atlocation"]))...)
	if len(ids) == 0 || len(agents) != 1 {
		return fmt.Errorf("has %d places, and the agent is at %d locations, want one", len(ids), len(agents))
	}
	r.start.You = r.names[agents[0]].number
	return nil
}

// readThings reads the things that a command or a text can be about.
func (r reading) readThings() error {
	ids, err := r.typed("objecttype")
	if err != nil {
		return err
	}
	for id := range r.facts["inreceptacle"] {
		if !r.is("objecttype", id) {
			return fmt.Errorf("%s lies in a place and has no type", id)
		}
	}
	for _, id := range ids {
		t := thing{class: r.names[id].class, number: r.names[id].number}
		for _, in := range r.facts["inreceptacle"][id] {
			at, ok := r.at[in]
			if !ok {
				return fmt.Errorf("%s is in %s, which is nowhere", id, in)
			}
			t.at = t.at.with(at)
		}
		for _, where := range r.facts["objectatlocation"][id] {
			t.near = t.near.with(r.names[where].number)
		}
		t.can, t.is = r.marks(id, t.class)
		if len(t.at) == 0 && t.can&slice == 0 {
			continue
		}
		var inside []named
		for inner, outer := range r.facts["inreceptacleobject"] {
			if inner != id && slices.Contains(outer, id) {
				inside = append(inside, r.names[inner])
			}
		}
		r.inside[len(r.start.Things)] = sorted(inside)
		r.start.Things = append(r.start.Things, t)
	}
	return nil
}

// marks is what can be done with a thing, and what has been done.
func (r reading) marks(id, class string) (can, is marks) {
	for _, a := range abilities {
		if r.is(strings.ToLower(a.name), id) {
			can |= a.mark
		}
		if r.is(strings.ToLower(a.done), id) {
			is |= a.mark
		}
	}
	if slices.Contains(domainTypes.things, class) {
		can |= cuts
	}
	if !r.is("pickupable", id) {
		can |= fixed
	}
	return can, is
}

// domainTypes are the types that the domain's actions name.
var domainTypes = struct{ places, things []string }{[]string{"sinkbasin", "microwave", "fridge"},
	[]string{"knife", "butterknife"}}

// abilities are the predicates of what can be done with a thing, and of what has been done.
var abilities = []struct {
	mark       marks
	name, done string
}{{clean, "cleanable", "isClean"}, {heat, "heatable", "isHot"}, {cool, "coolable", "isCool"},
	{slice, "sliceable", "isSliced"}, {toggle, "toggleable", "isToggled"}, {vessel, "isReceptacleObject", ""}}

// readGoal finds the task type whose goal has the problem's conditions.
func (r reading) readGoal() error {
	var g goal
	for _, c := range r.goal {
		words := strings.Fields(c)
		switch class := strings.TrimSuffix(words[len(words)-1], "type"); {
		case words[0] == "receptacletype", words[0] == "objecttype" && words[1] == "?ot":
			g.Where = class
		case words[0] == "objecttype":
			g.Thing = class
		}
	}
	i := slices.IndexFunc(taskTypes, func(t taskType) bool { return slices.Equal(r.goal, t.conditionsOf(g)) })
	if i < 0 {
		return fmt.Errorf("no task type has the goal %s", strings.Join(r.goal, ", "))
	}
	t := taskTypes[i]
	g.Type = t.name
	things, places := 0, 0
	for _, x := range r.start.Things {
		switch {
		case len(x.at) == 0:
		case x.class == g.Thing && x.can&(fixed|t.need) == t.need:
			things++
		case t.count == 0 && x.class == g.Where && x.can&toggle != 0:
			places++
		}
	}
	for _, p := range r.start.Places {
		if t.count > 0 && p.class == g.Where {
			places++
		}
	}
	if things < max(t.count, 1) || places == 0 {
		return fmt.Errorf("the goal of type %s needs %d %s and a %s, and the room has %d and %d", t.name,
			max(t.count, 1), g.Thing, g.Where, things, places)
	}
	r.start.Goal = g
	return nil
}

// conditionsOf lists the conditions of a goal of the type, sorted, in lower case.
func (t taskType) conditionsOf(g goal) []string {
	text := fmt.Sprintf(t.conditions, g.Thing+"Type", g.Where+"Type")
	return slices.Sorted(strings.SplitSeq(strings.ToLower(text), ", "))
}

package household

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/env"
)

// Solve returns commands that reach the goal within the remaining turns, or env.ErrUnsolved.
//
// The expert searches the room as one who sees only what is shown and remembers nothing: from its place it goes on to
// the next place, in the order of their names, that can hold what it looks for, opens it and takes the thing. So its
// next command follows from the present observation and a policy can learn to imitate it. Only if the turns do not
// suffice for that, the expert goes straight to where the thing lies.
func (e *Household) Solve(_ context.Context, at env.State) ([]string, error) {
	w, err := e.readState(at)
	if err != nil {
		return nil, err
	}
	if w.Ended {
		return nil, fmt.Errorf("solve a household task at turn %d: %w", w.Turn, env.ErrEnded)
	}
	plan := e.plan(w, false)
	if plan == nil {
		plan = e.plan(w, true)
	}
	if plan == nil {
		return nil, fmt.Errorf("%w: %d turns are left", env.ErrUnsolved, w.Limit-w.Turn)
	}
	return plan, nil
}

// plan returns the expert's commands, or nil if they do not fit into the remaining turns. informed means that the
// expert knows where everything is.
func (e *Household) plan(from *world, informed bool) (out []string) {
	w := from.clone()
	x := expert{world: w, informed: informed, words: e.words(w)}
	for w.Turn < w.Limit {
		c := x.next()
		c.text = x.text(c)
		out = append(out, c.text)
		w.do(c)
		w.Turn++
		if w.reached() {
			return out
		}
	}
	return nil
}

// expert chooses one command after the other.
type expert struct {
	*world
	informed bool
	words    words
}

// next returns the next command towards the goal.
func (x expert) next() command {
	t, held := x.Goal.kind(), x.held()
	switch {
	case held < 0:
		return x.fetch()
	case x.Things[held].class != x.Goal.Thing:
		return x.drop(held)
	case t.count == 0:
		return x.light()
	case t.need != 0 && x.Things[held].is&t.need == 0:
		return x.prepare(t, held)
	}
	target := x.target()
	if c, there := x.reach(target); !there {
		return c
	}
	return command{verb: verbMove, thing: held, place: target}
}

// target is the place that the things are brought to: the one that holds the most of them, then the first.
func (x expert) target() int {
	best, most := -1, -1
	for i, p := range x.Places {
		if n := x.placed(i); p.class == x.Goal.Where && n > most {
			best, most = i, n
		}
	}
	return best
}

// reach goes to a place and opens it. there means that both are done.
func (x expert) reach(place int) (c command, there bool) {
	switch {
	case x.You != x.location(place):
		return command{verb: verbGo, place: place}, false
	case x.Places[place].door == closed:
		return command{verb: verbOpen, place: place}, false
	}
	return c, true
}

// fetch looks for a thing that the goal needs and takes it.
func (x expert) fetch() command {
	at, wanted := x.wanted()
	for _, here := range x.here() {
		i := slices.IndexFunc(x.Things, func(t thing) bool { return wanted(t) && t.at.has(here) })
		if i >= 0 && x.Places[here].shows() {
			return command{verb: verbTake, thing: i, place: here}
		}
	}
	if x.informed && at >= 0 {
		c, _ := x.reach(at)
		return c
	}
	return x.search(func(p place) bool { return x.holds(p.class, x.Goal.Thing) })
}

// wanted returns a place with a thing that has still to be brought to the target, and the test for such things. The
// location where the agent is comes first.
func (x expert) wanted() (place int, is func(thing) bool) {
	target, need, here := x.target(), x.Goal.kind().need, x.here()
	is = func(t thing) bool {
		done := t.at.has(target) && target >= 0 && t.is&need == need
		return t.class == x.Goal.Thing && t.can&(fixed|need) == need && !done
	}
	place = -1
	for _, t := range x.Things {
		for _, at := range t.at {
			if is(t) && (place < 0 || here.has(at)) {
				place = at
			}
		}
	}
	return place, is
}

// search opens a closed place at the agent's location that may hold what is looked for. Without one, it goes to the
// next location with such a place: the locations in the order of their first such places.
func (x expert) search(may func(place) bool) command {
	first := map[int]int{} // by location: its first place that may hold it
	for i, p := range x.Places {
		if _, known := first[x.location(i)]; may(p) && !known {
			first[x.location(i)] = i
		}
	}
	here := x.here()
	for _, at := range here {
		if may(x.Places[at]) && x.Places[at].door == closed {
			return command{verb: verbOpen, place: at}
		}
	}
	from, known := first[x.You]
	if !known {
		from = append(here, -1)[0]
	}
	for i := range x.Places {
		at := (from + 1 + i) % len(x.Places)
		if candidate, ok := first[x.location(at)]; ok && candidate == at && x.location(at) != x.You {
			return command{verb: verbGo, place: at}
		}
	}
	return command{verb: verbLook}
}

// light brings the carried thing to a lamp and switches the lamp on.
func (x expert) light() command {
	here := x.here()
	lamps := func(is func(spots) bool) int {
		return slices.IndexFunc(x.Things, func(t thing) bool {
			return t.class == x.Goal.Where && t.can&toggle != 0 && is(t.at)
		})
	}
	if i := lamps(func(at spots) bool { return slices.ContainsFunc(at, here.has) }); i >= 0 {
		return command{verb: verbUse, thing: i}
	}
	if i := lamps(func(at spots) bool { return len(at) > 0 }); x.informed && i >= 0 {
		return command{verb: verbGo, place: x.Things[i].at[0]}
	}
	return x.search(func(p place) bool { return x.holds(p.class, lamp) || x.game != nil && p.door == noDoor })
}

// prepare brings the carried thing to the appliance and uses it.
func (x expert) prepare(t taskType, held int) command {
	is := func(p place) bool { return p.class == t.appliance }
	for _, at := range x.here() {
		for _, a := range appliances {
			if is(x.Places[at]) && a.class == t.appliance {
				return command{verb: a.verb, thing: held, place: at}
			}
		}
	}
	return command{verb: verbGo, place: slices.IndexFunc(x.Places, is)}
}

// drop puts a carried thing that is not needed into the nearest place that can hold it.
func (x expert) drop(held int) command {
	may := func(p place) bool { return x.holds(p.class, x.Things[held].class) }
	for _, at := range x.here() {
		if may(x.Places[at]) {
			c, there := x.reach(at)
			if there {
				c = command{verb: verbMove, thing: held, place: at}
			}
			return c
		}
	}
	return x.search(may)
}

// text is the text of a command that the expert has chosen.
func (x expert) text(c command) string {
	var t, p string
	if len(x.Things) > 0 {
		t = x.Things[c.thing].name()
	}
	p = x.Places[c.place].name()
	switch c.verb {
	case verbGo:
		return "go to " + p
	case verbOpen:
		return "open " + p
	case verbTake:
		return "take " + t + " from " + p
	case verbMove:
		return x.words.move(t, p)
	case verbUse:
		return "use " + t
	case verbClean, verbHeat, verbCool:
		for _, a := range appliances {
			if a.verb == c.verb {
				return a.word + " " + t + " with " + p
			}
		}
	}
	return "look"
}

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
	w, err := readState(at)
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
	x := expert{world: w, informed: informed, put: e.settings.Put}
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
	put      bool
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
	case x.You != place:
		return command{verb: verbGo, place: place}, false
	case x.Places[place].door == closed:
		return command{verb: verbOpen, place: place}, false
	}
	return c, true
}

// fetch looks for a thing that the goal needs and takes it.
func (x expert) fetch() command {
	at, wanted := x.wanted()
	if x.You >= 0 && x.Places[x.You].shows() {
		if i := slices.IndexFunc(x.Things, func(t thing) bool { return wanted(t) && t.at == x.You }); i >= 0 {
			return command{verb: verbTake, thing: i, place: x.You}
		}
	}
	if x.informed {
		c, _ := x.reach(at)
		return c
	}
	return x.search(func(p place) bool { return holds(p.class, x.Goal.Thing) })
}

// wanted returns a place with a thing that has still to be brought to the target, and the test for such things. The
// place where the agent is comes first.
func (x expert) wanted() (place int, is func(thing) bool) {
	target, need := x.target(), x.Goal.kind().need
	is = func(t thing) bool {
		done := t.at == target && target >= 0 && t.is&need == need
		return t.class == x.Goal.Thing && !done
	}
	place = -1
	for _, t := range x.Things {
		if is(t) && (place < 0 || t.at == x.You) {
			place = t.at
		}
	}
	return place, is
}

// search opens the place where the agent is, if it may hold what is looked for and is closed, and else goes to the next
// such place.
func (x expert) search(may func(place) bool) command {
	if x.You >= 0 && may(x.Places[x.You]) && x.Places[x.You].door == closed {
		return command{verb: verbOpen, place: x.You}
	}
	for i := range x.Places {
		at := (max(x.You, -1) + 1 + i) % len(x.Places)
		if may(x.Places[at]) && at != x.You {
			return command{verb: verbGo, place: at}
		}
	}
	return command{verb: verbLook}
}

// light brings the carried thing to a lamp and switches the lamp on.
func (x expert) light() command {
	i := slices.IndexFunc(x.Things, func(t thing) bool { return t.class == x.Goal.Where && t.at == x.You })
	switch {
	case i >= 0:
		return command{verb: verbUse, thing: i}
	case x.informed:
		i = slices.IndexFunc(x.Things, func(t thing) bool { return t.class == x.Goal.Where })
		return command{verb: verbGo, place: x.Things[i].at}
	}
	return x.search(func(p place) bool { return holds(p.class, lamp) })
}

// prepare brings the carried thing to the appliance and uses it.
func (x expert) prepare(t taskType, held int) command {
	at := x.You
	if at < 0 || x.Places[at].class != t.appliance {
		at = slices.IndexFunc(x.Places, func(p place) bool { return p.class == t.appliance })
		return command{verb: verbGo, place: at}
	}
	for _, a := range appliances {
		if a.class == t.appliance {
			return command{verb: a.verb, thing: held, place: at}
		}
	}
	return command{verb: verbLook}
}

// drop puts a carried thing that is not needed into the nearest place that can hold it.
func (x expert) drop(held int) command {
	may := func(p place) bool { return holds(p.class, x.Things[held].class) }
	if x.You >= 0 && may(x.Places[x.You]) {
		c, there := x.reach(x.You)
		if there {
			c = command{verb: verbMove, thing: held, place: x.You}
		}
		return c
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
		if x.put {
			return "put " + t + " in/on " + p
		}
		return "move " + t + " to " + p
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

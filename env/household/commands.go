package household

import (
	"slices"
	"strings"
)

// verb is the kind of a command.
type verb int

const (
	verbHelp verb = iota
	verbInventory
	verbLook
	verbGo
	verbOpen
	verbClose
	verbTake
	verbMove
	verbExamine      // the carried thing
	verbExaminePlace // the place where the agent is
	verbUse
	verbClean
	verbHeat
	verbCool
	verbSlice
)

// command is one command that the world accepts in its present state.
type command struct {
	text  string
	verb  verb
	thing int // index of the thing that it is about
	place int // index of the place that it is about
}

// essential reports whether the command can bring the agent nearer to a goal.
func (c command) essential() bool {
	switch c.verb {
	case verbHelp, verbInventory, verbLook, verbClose, verbExamine, verbExaminePlace, verbSlice:
		return false
	}
	return true
}

// commands lists the accepted commands, sorted by their text as TextWorld sorts them. Each follows from the
// precondition of an action in ALFWorld's domain. Only the carried thing can be examined: the domain means those in
// sight as well, but a comma in its list of variables makes that condition false.
func (e *Household) commands(w *world) []command {
	l := make([]command, 0, len(w.Places)+16)
	add := func(v verb, thing, place int, words ...string) {
		if c := (command{verb: v, thing: thing, place: place}); !e.settings.Essential || c.essential() {
			c.text = strings.Join(words, " ")
			l = append(l, c)
		}
	}
	if e.words(w).help != "" {
		add(verbHelp, 0, 0, "help")
	}
	add(verbInventory, 0, 0, "inventory")
	add(verbLook, 0, 0, "look")
	for i, p := range w.Places {
		if w.location(i) != w.You {
			add(verbGo, 0, i, "go to", p.name())
		}
	}
	held := w.held()
	if held >= 0 {
		add(verbExamine, held, 0, "examine", w.Things[held].name())
	}
	for _, at := range w.here() {
		e.commandsAt(w, at, held, add)
	}
	slices.SortFunc(l, func(a, b command) int { return strings.Compare(a.text, b.text) })
	return slices.CompactFunc(l, func(a, b command) bool { return a.text == b.text })
}

// commandsAt adds the commands about a place at the agent's location.
func (e *Household) commandsAt(w *world, at, held int, add func(v verb, thing, place int, words ...string)) {
	here := w.Places[at]
	add(verbExaminePlace, 0, at, "examine", here.name())
	switch here.door {
	case closed:
		add(verbOpen, 0, at, "open", here.name())
	case opened:
		add(verbClose, 0, at, "close", here.name())
	}
	for i, t := range w.Things {
		lies := t.at.has(at)
		if lies && here.shows() && held < 0 && t.can&fixed == 0 {
			add(verbTake, i, at, "take", t.name(), "from", here.name())
		}
		if lies && t.can&toggle != 0 {
			add(verbUse, i, 0, "use", t.name())
		}
		if held >= 0 && w.Things[held].can&cuts != 0 && t.can&slice != 0 && w.isNear(t) {
			add(verbSlice, i, held, "slice", t.name(), "with", w.Things[held].name())
		}
	}
	if held >= 0 {
		e.commandsHeld(w, at, held, add)
	}
}

// appliances are the verbs of what is done with a thing at a place of a class.
var appliances = []struct {
	class string
	verb  verb
	word  string
	mark  marks
}{{"sinkbasin", verbClean, "clean", clean}, {"microwave", verbHeat, "heat", heat}, {"fridge", verbCool, "cool", cool}}

// commandsHeld adds what can be done at the place with the carried thing.
func (e *Household) commandsHeld(w *world, at, held int, add func(v verb, thing, place int, words ...string)) {
	here, t := w.Places[at], w.Things[held]
	if here.shows() && w.holds(here.class, t.class) {
		add(verbMove, held, at, e.words(w).move(t.name(), here.name()))
	}
	for _, a := range appliances {
		if here.class == a.class && t.can&a.mark != 0 {
			add(a.verb, held, at, a.word, t.name(), "with", here.name())
		}
	}
}

// find returns the accepted command with that text, in any case and with any space around it.
func (e *Household) find(w *world, action string) (command, bool) {
	text := strings.ToLower(strings.TrimSpace(action))
	l := e.commands(w)
	i := slices.IndexFunc(l, func(c command) bool { return c.text == text })
	if i < 0 {
		return command{}, false
	}
	return l[i], true
}

// do applies a command.
func (w *world) do(c command) {
	switch c.verb {
	case verbGo:
		w.You = w.location(c.place)
	case verbOpen:
		w.Places[c.place].door = opened
	case verbClose:
		w.Places[c.place].door = closed
	case verbTake:
		w.take(c.thing, c.place)
	case verbMove:
		w.put(c.thing, c.place)
	case verbUse:
		w.Things[c.thing].is |= toggle
	case verbClean:
		w.Things[c.thing].is |= clean
	case verbHeat:
		w.Things[c.thing].is = w.Things[c.thing].is&^cool | heat
	case verbCool:
		w.Things[c.thing].is = w.Things[c.thing].is&^heat | cool
	case verbSlice:
		w.Things[c.thing].is |= slice
	}
}

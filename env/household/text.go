package household

import (
	"slices"
	"strings"
)

// nothing is the answer to an action that the world does not accept.
const nothing = "Nothing happens."

// list joins names as ALFWorld does: "a pen 2, a pen 1, and a mug 1". The article is always "a".
func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = "a " + n
	}
	return join(all)
}

// join joins the items of a list that is not empty.
func join(items []string) string {
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + ", and " + items[last]
}

const inMiddle = "You are in the middle of a room. Looking quickly around you, you see "

// middle is the first view, from the middle of the room: the places by class, the highest number first.
func (w *world) middle() string {
	all := make(spots, len(w.Places))
	for i := range all {
		all[i] = i
	}
	return inMiddle + list(w.placesAt(all)) + "."
}

// placesAt names places, by class, the highest number first.
func (w *world) placesAt(places spots) []string {
	names := make([]named, len(places))
	for i, at := range places {
		names[i] = named{w.Places[at].class, w.Places[at].number}
	}
	return sorted(names)
}

// look is the view of the agent's location. Things are next to a place if the agent has moved them from it to another
// place at the same location.
func (w *world) look() string {
	here := w.here()
	if len(here) == 0 { // so in ALFWorld: its list is of the places at the agent's location
		return inMiddle + list(nil) + "."
	}
	var beside []named
	for _, t := range w.Things {
		for _, at := range here {
			if w.isNear(t) && t.left.has(at) {
				beside = append(beside, named{t.class, t.number})
			}
		}
	}
	return "You are facing the " + join(w.placesAt(here)) + ". Next to it, you see " + list(sorted(beside)) + "."
}

// contents is the view of a place: its things by class, the highest number first.
func (w *world) contents(place int) string {
	p := w.Places[place]
	var things []named
	for _, t := range w.Things {
		if t.at.has(place) {
			things = append(things, named{t.class, t.number})
		}
	}
	switch p.door {
	case closed:
		return "The " + p.name() + " is closed."
	case opened:
		return "The " + p.name() + " is open. In it, you see " + list(sorted(things)) + "."
	}
	return "On the " + p.name() + ", you see " + list(sorted(things)) + "."
}

// named is a class and a number.
type named struct {
	class  string
	number int
}

func sorted(all []named) []string {
	slices.SortStableFunc(all, func(a, b named) int {
		if c := strings.Compare(a.class, b.class); c != 0 {
			return c
		}
		return b.number - a.number
	})
	out := make([]string, len(all))
	for i, n := range all {
		out[i] = place{class: n.class, number: n.number}.name()
	}
	return out
}

// answer is the text that follows a command. The command has been applied.
func (e *Household) answer(w *world, c command) string {
	var t thing
	if len(w.Things) > 0 {
		t = w.Things[c.thing]
	}
	switch c.verb {
	case verbHelp:
		return e.words(w).help
	case verbInventory:
		return w.inventory()
	case verbLook:
		return w.look()
	case verbExamine:
		return describe(t, w.inside(c.thing))
	case verbUse:
		return "You turn on the " + t.name() + "."
	case verbSlice:
		return "You sliced the " + t.name() + " with the " + w.Things[c.place].name() + "."
	}
	return e.answerAt(w, c, t, w.Places[c.place].name())
}

// answerAt is the text of a command about a place.
func (e *Household) answerAt(w *world, c command, t thing, name string) string {
	switch c.verb {
	case verbGo:
		return e.words(w).arrival(name, w.You) + w.contents(c.place)
	case verbExaminePlace:
		return w.contents(c.place)
	case verbOpen:
		return "You open the " + name + ". " + w.contents(c.place)
	case verbClose:
		return "You close the " + name + "."
	case verbTake:
		return "You pick up the " + t.name() + " from the " + name + "."
	case verbMove:
		return "You " + e.words(w).move("the "+t.name(), "the "+name) + "."
	}
	for _, a := range appliances {
		if a.verb == c.verb {
			return "You " + a.word + " the " + t.name() + " using the " + name + "."
		}
	}
	return nothing
}

func (w *world) inventory() string {
	if held := w.held(); held >= 0 {
		return "You are carrying: " + list([]string{w.Things[held].name()}) + "."
	}
	return "You are not carrying anything."
}

// describe is what the examination of a thing shows, in the order of the conditions of ALFWorld's grammar. inside are
// the names of what lies in it.
func describe(t thing, inside []string) string {
	words := ""
	switch {
	case t.can&vessel != 0:
		return "This is a normal " + t.name() + ". In it, you see " + list(inside) + "."
	case t.is&(clean|heat) == clean|heat:
		words = "hot and clean"
	case t.is&(clean|cool) == clean|cool:
		words = "cool and clean"
	case t.is&heat != 0:
		words = "hot"
	case t.is&clean != 0:
		words = "clean"
	case t.is&cool != 0:
		words = "cold"
		if t.is&slice != 0 {
			words = "cool"
		}
	case t.is&toggle != 0:
		return "This " + t.name() + " is on."
	case t.is&slice != 0:
		return "This is a sliced " + t.name() + "."
	default:
		return "There's nothing special about " + t.name() + "."
	}
	if t.is&slice != 0 {
		words += " sliced"
	}
	return "This is a " + words + " " + t.name() + "."
}

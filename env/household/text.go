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
	var b strings.Builder
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(", and ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString("a " + n)
	}
	return b.String()
}

const inMiddle = "You are in the middle of a room. Looking quickly around you, you see "

// middle is the first view, from the middle of the room: the places by class, the highest number first.
func (w *world) middle() string {
	named := make([]named, len(w.Places))
	for i, p := range w.Places {
		named[i].class, named[i].number = p.class, p.number
	}
	return inMiddle + list(sorted(named)) + "."
}

// contents is the view of a place: its things by class, the highest number first.
func (w *world) contents(place int) string {
	p := w.Places[place]
	var things []named
	for _, t := range w.Things {
		if t.at == place {
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

// helpText lists the commands. The words are not ALFWorld's.
const helpText = "Commands: look; inventory; go to PLACE; open PLACE; close PLACE; take THING from PLACE; " +
	"move THING to PLACE; examine PLACE or THING; use THING; clean THING with PLACE; heat THING with PLACE; " +
	"cool THING with PLACE; slice THING with THING."

// answer is the text that follows a command. The command has been applied.
func (e *Household) answer(w *world, c command) string {
	var t thing
	if len(w.Things) > 0 {
		t = w.Things[c.thing]
	}
	switch c.verb {
	case verbHelp:
		return helpText
	case verbInventory:
		return w.inventory()
	case verbLook:
		if w.You < 0 { // so in ALFWorld: its list is of the places at the agent's location
			return inMiddle + list(nil) + "."
		}
		return "You are facing the " + w.Places[w.You].name() + ". Next to it, you see nothing."
	case verbExamine:
		return describe(t)
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
		if e.settings.Put {
			return w.contents(c.place)
		}
		return "You arrive at " + name + ". " + w.contents(c.place)
	case verbExaminePlace:
		return w.contents(c.place)
	case verbOpen:
		return "You open the " + name + ". " + w.contents(c.place)
	case verbClose:
		return "You close the " + name + "."
	case verbTake:
		return "You pick up the " + t.name() + " from the " + name + "."
	case verbMove:
		if e.settings.Put {
			return "You put the " + t.name() + " in/on the " + name + "."
		}
		return "You move the " + t.name() + " to the " + name + "."
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

// describe is what the examination of a thing shows, in the order of the conditions of ALFWorld's grammar.
func describe(t thing) string {
	words := ""
	switch {
	case t.can&vessel != 0:
		return "This is a normal " + t.name() + ". In it, you see nothing."
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

package household

import (
	"fmt"
	"slices"
)

// taskType is one of ALFWorld's six.
type taskType struct {
	name      string
	need      marks  // what has to be done with the thing before it is put down
	appliance string // class of the place where that is done
	count     int    // things that must lie in one place; 0 if the thing is looked at
	wording   [2]string
	// conditions make up a game's goal in PDDL, with the types of the thing (1) and of the place or lamp (2).
	conditions string
}

var taskTypes = []taskType{
	{"pick", 0, "", 1, [2]string{"put a %s in %s", "put some %s on %s"}, lies},
	{"look", 0, "", 0, [2]string{"look at %s under the %s", "examine the %s with the %s"},
		"objectType ?o %[1]s, holds ?a ?o, objectType ?ot %[2]s, toggleable ?ot, isToggled ?ot, inReceptacle ?ot ?r, " +
			"receptacleAtLocation ?r ?l, atLocation ?a ?l"},
	{"clean", clean, "sinkbasin", 1, [2]string{"put a clean %s in %s", "clean some %s and put it in %s"},
		lies + ", cleanable ?o, isClean ?o"},
	{"heat", heat, "microwave", 1, [2]string{"put a hot %s in %s", "heat some %s and put it in %s"},
		lies + ", heatable ?o, isHot ?o"},
	{"cool", cool, "fridge", 1, [2]string{"put a cool %s in %s", "cool some %s and put it in %s"},
		lies + ", coolable ?o, isCool ?o"},
	{"two", 0, "", 2, [2]string{"put two %s in %s", "find two %s and put them in %s"},
		"objectType ?o1 %[1]s, objectType ?o2 %[1]s, receptacleType ?r %[2]s, inReceptacle ?o1 ?r, " +
			"inReceptacle ?o2 ?r, not = ?o1 ?o2"},
}

// lies are the conditions that a thing lies in a place.
const lies = "objectType ?o %[1]s, receptacleType ?r %[2]s, inReceptacle ?o ?r"

// lamp is the class of things that light others.
const lamp = "desklamp"

// goal is what a task asks for.
type goal struct {
	Type    string `json:"type"`
	Thing   string `json:"thing"`             // class of things
	Where   string `json:"where"`             // class of places, or of the lamp
	Wording int    `json:"wording,omitempty"` // which of the type's two wordings
	Text    string `json:"text,omitempty"`    // the words of a game's file, instead of a wording
}

func typeNamed(name string) (taskType, bool) {
	i := slices.IndexFunc(taskTypes, func(t taskType) bool { return t.name == name })
	if i < 0 {
		return taskType{}, false
	}
	return taskTypes[i], true
}

func (g goal) kind() taskType {
	t, _ := typeNamed(g.Type)
	return t
}

// String returns the goal in ALFWorld's words.
func (g goal) String() string {
	if g.Text != "" {
		return g.Text
	}
	return fmt.Sprintf(g.kind().wording[g.Wording&1], g.Thing, g.Where)
}

// check refuses a goal that no episode could have.
func (g goal) check() error {
	t, ok := typeNamed(g.Type)
	_, known := kindNamed(g.Thing)
	place := slices.Contains(placeClasses, g.Where)
	if t.count == 0 {
		place = g.Where == lamp
	}
	if !ok || !known || !place || g.Wording < 0 || g.Wording > 1 || g.Text != "" {
		return fmt.Errorf("the goal is %+v", g)
	}
	return nil
}

// reached reports whether the world is as the goal asks.
func (w *world) reached() bool {
	t := w.Goal.kind()
	if t.count == 0 {
		held, here := w.held(), w.here()
		return held >= 0 && w.Things[held].class == w.Goal.Thing && slices.ContainsFunc(w.Things, func(x thing) bool {
			return x.class == w.Goal.Where && x.is&toggle != 0 && slices.ContainsFunc(here, x.at.has)
		})
	}
	for p := range w.Places {
		if w.Places[p].class == w.Goal.Where && w.placed(p) >= t.count {
			return true
		}
	}
	return false
}

// placed counts the things in a place that are as the goal wants them.
func (w *world) placed(place int) (n int) {
	need := w.Goal.kind().need
	for _, x := range w.Things {
		if x.at.has(place) && x.class == w.Goal.Thing && x.is&x.can&need == need {
			n++
		}
	}
	return n
}

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
}

var taskTypes = []taskType{
	{"pick", 0, "", 1, [2]string{"put a %s in %s", "put some %s on %s"}},
	{"look", 0, "", 0, [2]string{"look at %s under the %s", "examine the %s with the %s"}},
	{"clean", clean, "sinkbasin", 1, [2]string{"put a clean %s in %s", "clean some %s and put it in %s"}},
	{"heat", heat, "microwave", 1, [2]string{"put a hot %s in %s", "heat some %s and put it in %s"}},
	{"cool", cool, "fridge", 1, [2]string{"put a cool %s in %s", "cool some %s and put it in %s"}},
	{"two", 0, "", 2, [2]string{"put two %s in %s", "find two %s and put them in %s"}},
}

// lamp is the class of things that light others.
const lamp = "desklamp"

// goal is what a task asks for.
type goal struct {
	Type    string `json:"type"`
	Thing   string `json:"thing"`             // class of things
	Where   string `json:"where"`             // class of places, or of the lamp
	Wording int    `json:"wording,omitempty"` // which of the type's two wordings
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
func (g goal) String() string { return fmt.Sprintf(g.kind().wording[g.Wording&1], g.Thing, g.Where) }

// check refuses a goal that no episode could have.
func (g goal) check() error {
	t, ok := typeNamed(g.Type)
	_, known := kindNamed(g.Thing)
	place := slices.Contains(placeClasses, g.Where)
	if t.count == 0 {
		place = g.Where == lamp
	}
	if !ok || !known || !place || g.Wording < 0 || g.Wording > 1 {
		return fmt.Errorf("the goal is %+v", g)
	}
	return nil
}

// reached reports whether the world is as the goal asks.
func (w *world) reached() bool {
	t := w.Goal.kind()
	if t.count == 0 {
		held := w.held()
		return held >= 0 && w.Things[held].class == w.Goal.Thing && slices.ContainsFunc(w.Things, func(x thing) bool {
			return x.class == w.Goal.Where && x.is&toggle != 0 && x.at == w.You && w.You >= 0
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
		if x.at == place && x.class == w.Goal.Thing && x.is&need == need {
			n++
		}
	}
	return n
}

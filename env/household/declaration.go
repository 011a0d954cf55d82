package household

import (
	"slices"

	"github.com/ropewalk/ropewalk/env"
)

// Declaration declares the environment.
var Declaration = env.Declaration{
	Name: "alfworld", Doc: "household tasks in text", Source: "ALFWorld (Shridhar et al. 2021); ARLArena Table S1",
	Interactive: true, Demonstrated: true, Protocol: "think_action",
	Rewards:  []string{"arlarena", "spear", "spear_agent"},
	Strings:  fixed,
	Lay:      lay,
	Settings: env.SettingsOf[fields](),
	Open:     open,
}

// fields are the settings in a recipe. Their defaults describe ALFWorld's rooms.
type fields struct {
	Rooms     string `json:"rooms" quiet:"true" doc:"kinds of rooms, separated by commas: kitchen, livingroom, bedroom, bathroom; empty = all" default:"\"\""`
	Types     string `json:"types" quiet:"true" doc:"task types, separated by commas: pick, look, clean, heat, cool, two; empty = all" default:"\"\""`
	Layouts   int    `json:"layouts" quiet:"true" doc:"layouts of each kind of room, of which a sixth is unseen; 0 = 30" default:"0" min:"0" max:"1000"`
	Places    int    `json:"places" quiet:"true" doc:"receptacles of a room, at least 3; 0 = as many as the layout has" default:"0" min:"0" max:"60"`
	Things    int    `json:"things" quiet:"true" doc:"objects of a room, or as many as the goal needs if these are more; 0 = one to two for each receptacle" default:"0" min:"0" max:"100"`
	Sparse    bool   `json:"sparse" quiet:"true" doc:"no more objects of the goal's class than the goal needs" default:"false"`
	Essential bool   `json:"essential" quiet:"true" doc:"only the commands that can bring the agent nearer to a goal: go to, open, take, move, use, clean, heat and cool" default:"false"`
	Seen      bool   `json:"seen" quiet:"true" doc:"held-out tasks come from layouts that training shows, instead of layouts that it never shows" default:"false"`
	Put       bool   `json:"put" quiet:"true" doc:"the words of ALFWorld's first releases: put mug 1 in/on desk 1, instead of move mug 1 to desk 1" default:"false"`
}

func open(o env.Options) (env.Environment, error) {
	f, err := env.Read[fields](o.Settings)
	if err != nil {
		return nil, err
	}
	e, err := New(Settings{MaxTurns: o.MaxTurns, Rooms: env.Names(f.Rooms), Types: env.Names(f.Types),
		Layouts: f.Layouts, Places: f.Places, Things: f.Things, Sparse: f.Sparse, Essential: f.Essential, Seen: f.Seen,
		Put: f.Put})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// fixed lists the strings that become one token each: names, and the words around them.
func fixed() []string {
	out := []string{
		instruction, "Your task is to: ", inMiddle,
		"You arrive at ", "You open the ", "You pick up the ", "You move the ", "You turn on the ", "You clean the ",
		"You heat the ", "You cool the ", " using the ", " from the ", " to the ", ". The ", ". On the ",
		" is closed.", " is open. In it, you see ", ", you see ", "nothing.", nothing, ", and a ", ", a ", "a ",
		"go to ", "open ", "close ", "take ", " from ", "move ", " to ", "examine ", "use ", "clean ", "heat ", "cool ",
		" with ", "slice ", "inventory", "look", "help",
		"put a clean ", "put a hot ", "put a cool ", "put a ", "put some ", "put two ", "find two ", "clean some ",
		"heat some ", "cool some ", " and put it in ", " and put them in ", " in ", " on ", "look at ", " under the ",
		"examine the ", " with the ",
	}
	for _, k := range kinds {
		out = append(out, k.name+" ", k.name)
	}
	for _, p := range placeClasses {
		out = append(out, p+" ", p)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

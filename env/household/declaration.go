package household

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/env"
)

// Declaration declares the environment.
var Declaration = env.Declaration{
	Name: "alfworld", Doc: "household tasks in text", Source: "ALFWorld (Shridhar et al. 2021); ARLArena Table S1",
	Interactive: true, Demonstrated: true, Protocol: "think_action",
	Rewards:  []string{"arlarena", "spear", "spear_agent"},
	Strings:  fixedTexts,
	Lay:      lay,
	Settings: env.SettingsOf[fields](),
	Pin:      pin,
	World:    describeWorld,
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
	Seen      bool   `json:"seen" quiet:"true" doc:"held-out tasks come from layouts that training shows, instead of layouts that it never shows; with games, from valid_seen instead of valid_unseen" default:"false"`
	Put       bool   `json:"put" quiet:"true" doc:"the words of ALFWorld's first releases: put mug 1 in/on desk 1, instead of move mug 1 to desk 1" default:"false"`
	Games     string `json:"games" quiet:"true" doc:"folder of ALFWorld's own games, an absolute path: train, and valid_seen or valid_unseen, with a game.tw-pddl for each trial. The command and every worker read it; empty = generated rooms" default:"\"\""`
	Digest    string `json:"games_sha256" quiet:"true" doc:"SHA-256 of a line with name and SHA-256 for each game in the folder. A run records it; a recipe that gives it refuses other games" default:"\"\""`
	Count     int    `json:"games_count" quiet:"true" doc:"number of training games. A run records it" default:"0" min:"0"`
}

func (f fields) settings(maxTurns int) Settings {
	return Settings{MaxTurns: maxTurns, Rooms: env.Names(f.Rooms), Types: env.Names(f.Types), Layouts: f.Layouts,
		Places: f.Places, Things: f.Things, Sparse: f.Sparse, Essential: f.Essential, Seen: f.Seen, Put: f.Put,
		Games: f.Games, Digest: f.Digest}
}

// pin reads the games and notes their number and their digest.
func pin(s env.Settings) error {
	f, err := env.Read[fields](s)
	switch {
	case err != nil:
		return err
	case f.Games == "" && (f.Digest != "" || f.Count != 0):
		return fmt.Errorf("games: names no folder that games_sha256 and games_count could describe")
	case f.Games == "":
		return nil
	}
	of := f.settings(PaperTurns)
	if err := of.Validate(); err != nil {
		return err
	}
	tasks, err := of.read()
	if err != nil {
		return fmt.Errorf("games: %w", err)
	}
	if n := len(tasks.Train); f.Count != 0 && f.Count != n {
		return fmt.Errorf("games: %s holds %d training games, and the recipe wants %d", f.Games, n, f.Count)
	}
	s["games_sha256"], s["games_count"] = tasks.digest, len(tasks.Train)
	return nil
}

// describeWorld says whether the tasks are ALFWorld's games or stand in for them.
func describeWorld(s env.Settings) string {
	f, err := env.Read[fields](s)
	switch {
	case err != nil:
		return ""
	case f.Games == "":
		return "generated rooms, which stand in for ALFWorld's games (settings.games names a folder of them)"
	}
	thousands, rest := f.Count/1000, fmt.Sprint(f.Count%1000)
	if thousands > 0 {
		rest = fmt.Sprintf("%d,%03d", thousands, f.Count%1000)
	}
	return fmt.Sprintf("ALFWorld, %s games, digest %.12s", rest, f.Digest)
}

func open(o env.Options) (env.Environment, error) {
	f, err := env.Read[fields](o.Settings)
	if err != nil {
		return nil, err
	}
	e, err := New(f.settings(o.MaxTurns))
	if err != nil {
		return nil, err
	}
	return e, nil
}

// fixedTexts lists the strings that become one token each: names, and the words around them.
func fixedTexts() []string {
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

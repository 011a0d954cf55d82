package sokoban

import (
	"fmt"

	"github.com/ropewalk/ropewalk/env"
)

// Declaration declares the environment.
var Declaration = env.Declaration{
	Name: "sokoban", Doc: "pushing boxes onto targets", Source: "gym-sokoban (Schrader 2018); ARLArena Table S1",
	Interactive: true, Demonstrated: true, Protocol: "think_action",
	Rewards:  []string{"arlarena", "spear", "spear_agent"},
	Strings:  func() []string { return append([]string{instruction, "still"}, admissible...) },
	More:     more,
	Lay:      lay,
	Settings: env.SettingsOf[fields](),
	Pin:      pin,
	Open:     open,
}

// fields are the settings in a recipe. Their defaults describe the papers' rooms.
type fields struct {
	Size     int    `json:"size" doc:"rows and columns of a generated room, its wall included" default:"6" min:"5" max:"10"`
	Boxes    int    `json:"boxes" doc:"boxes of a generated room" default:"1" min:"1" max:"4"`
	MinMoves int    `json:"min_moves" doc:"least moves of a room's shortest solution" default:"2" min:"1" max:"1000"`
	MaxMoves int    `json:"max_moves" doc:"most moves of a room's shortest solution; at most rollout.max_turns" default:"12" min:"1" max:"1000"`
	Pays     string `json:"pays" doc:"gym: gym-sokoban's reward at each turn; goal: 10 for the turn that solves the room and nothing else" default:"gym" enum:"gym|goal"`
	Open     bool   `json:"open" quiet:"true" doc:"generated rooms have no walls inside" default:"false"`
	List     bool   `json:"list" quiet:"true" doc:"a policy is shown a list of cells (P b3 is the player in the second row and third column) instead of a drawing" default:"false"`
	Levels   string `json:"levels" quiet:"true" doc:"absolute path of a file of levels in Boxoban's form, or of a folder whose *.txt files hold levels. They replace the generated rooms, so size, boxes, min_moves and max_moves have no effect. The command and every worker read the path" default:"\"\""`
	Digest   string `json:"levels_sha256" quiet:"true" doc:"digest of the names and bytes of those files. A run records it; a recipe that gives it refuses other files" default:"\"\""`
}

// open makes the environment with a recipe's settings. Files of levels are read when the first task is drawn, so a
// stage or a reader that draws none needs no files.
func open(o env.Options) (env.Environment, error) {
	f, err := env.Read[fields](o.Settings)
	if err != nil {
		return nil, err
	}
	s := Settings{MaxTurns: o.MaxTurns, Size: f.Size, Boxes: f.Boxes, MinMoves: f.MinMoves, MaxMoves: f.MaxMoves,
		Open: f.Open, List: f.List, GoalOnly: f.Pays == "goal"}
	if f.Levels != "" {
		s.Levels = func() ([]Level, error) { return f.levels() }
	}
	return New(s)
}

// more lists the fixed texts of rooms that are shown as lists.
func more(s env.Settings) []string {
	f, err := env.Read[fields](s)
	switch {
	case err != nil || !f.List:
		return nil // open reports the error
	case f.Levels != "": // of any size
		return []string{listed}
	}
	return append([]string{listed}, linesOf(f.Size)...)
}

// pin reads the files of levels and sets their digest.
func pin(s env.Settings) error {
	f, err := env.Read[fields](s)
	switch {
	case err != nil:
		return err
	case f.Levels == "" && f.Digest != "":
		return fmt.Errorf("levels_sha256: there are no levels that it could be the digest of")
	case f.Levels == "":
		return nil
	}
	_, digest, err := read(f.Levels)
	if err == nil {
		err = f.matches(digest)
	}
	if err == nil {
		s["levels_sha256"] = digest
	}
	return err
}

// levels reads the files that a recipe was pinned to.
func (f fields) levels() ([]Level, error) {
	levels, digest, err := read(f.Levels)
	if err == nil {
		err = f.matches(digest)
	}
	return levels, err
}

// matches refuses files other than those that the recipe names by their digest.
func (f fields) matches(digest string) error {
	if f.Digest != "" && f.Digest != digest {
		return fmt.Errorf("levels: the files at %s have the digest %s, and levels_sha256 is %s", f.Levels, digest,
			f.Digest)
	}
	return nil
}

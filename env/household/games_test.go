package household

import (
	"archive/zip"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/realdata"
)

// released returns the folder with games.zip and transcripts.jsonl.gz.
func released(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("ROPEWALK_ALFWORLD_TRANSCRIPTS"); folder != "" {
		return folder
	}
	return filepath.Dir(realdata.Path(t, "alfworld", "games.zip"))
}

// unpacked unpacks the games into a folder.
func unpacked(t *testing.T) string {
	t.Helper()
	files, err := zip.OpenReader(filepath.Join(released(t), "games.zip"))
	require.NoError(t, err)
	defer files.Close()
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, files))
	return folder
}

// episode is one game as TextWorld plays it.
type episode struct {
	Game       string   `json:"game"`
	Player     string   `json:"player"`
	First      string   `json:"first"`
	Admissible []string `json:"admissible"`
	Turns      []struct {
		Action      string   `json:"action"`
		Observation string   `json:"observation"`
		Admissible  []string `json:"admissible"`
		Done        bool     `json:"done"`
		Won         bool     `json:"won"`
	} `json:"turns"`
}

// TextWorld's transcripts of ALFWorld's games agree at every turn: the observation to the byte, the admissible commands
// and the end.
func TestGamesAgreeWithTranscripts(t *testing.T) {
	file, err := os.Open(filepath.Join(released(t), "transcripts.jsonl.gz"))
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<24)
	byFolder := map[bool]*Household{}
	folder := unpacked(t)
	for _, seen := range []bool{false, true} {
		byFolder[seen] = newHousehold(t, Settings{Games: folder, Seen: seen})
	}
	games, turns, won, verbs := map[string]bool{}, 0, 0, map[string]int{}
	for lines.Scan() {
		var x episode
		require.NoError(t, json.Unmarshal(lines.Bytes(), &x))
		e := byFolder[!strings.HasPrefix(x.Game, unseenFolder)]
		g, err := e.games.named(x.Game)
		require.NoError(t, err)
		w := g.start.clone()
		w.Limit = PaperTurns
		state, seen, err := e.Reset(t.Context(), env.Task{ID: g.digest, Spec: string(w.encode())})
		require.NoError(t, err)
		text, _ := seen.Text()
		require.Equal(t, x.First, text, x.Game)
		require.Equal(t, set(x.Admissible), set(seen.Admissible), x.Game)
		for i, want := range x.Turns {
			next, step, err := e.Step(t.Context(), state, want.Action)
			require.NoError(t, err)
			at := []any{"%s, turn %d of %s: %q", x.Game, i, x.Player, want.Action}
			text, _ := step.Observation.Text()
			require.Equal(t, want.Observation, text, at...)
			require.Equal(t, want.Won, step.Success, at...)
			require.Equal(t, want.Done || i == PaperTurns-1, step.Done, at...)
			require.Equal(t, want.Observation != nothing, step.Valid, at...)
			if !step.Done {
				require.Equal(t, set(want.Admissible), set(step.Observation.Admissible), at...)
			}
			verbs[strings.Fields(want.Action)[0]]++
			state = next
			turns++
			if step.Success {
				won++
			}
		}
		games[x.Game] = true
	}
	require.NoError(t, lines.Err())
	require.Positive(t, won)
	for _, verb := range strings.Fields("go open close take put examine look inventory use clean heat cool slice") {
		require.Positive(t, verbs[verb], "no transcript has %s", verb)
	}
	t.Logf("%d games, %d turns, %d won: %v", len(games), turns, won, verbs)
}

// set sorts commands.
func set(commands []string) []string { return slices.Sorted(slices.Values(commands)) }

// ALFWorld's games conform to the contract of environments, and the expert solves nearly all of them.
func TestGamesConform(t *testing.T) {
	folder := unpacked(t)
	for _, seen := range []bool{false, true} {
		envtest.Run(t, newHousehold(t, Settings{Games: folder, Seen: seen}), envtest.Case{Tasks: 20, Turns: 60,
			Solved: 0.95, Nonsense: []string{"", "sing", "go to attic 1"}})
	}
}

// An epoch plays every game of the types once, and the recipe notes which games these are.
func TestGamesOfARecipe(t *testing.T) {
	s := env.Settings{"games": unpacked(t), "types": "clean,look"}
	require.NoError(t, Declaration.Pin(s))
	count := s["games_count"].(int)
	require.Contains(t, Declaration.World(s), "ALFWorld, "+strconv.Itoa(count)+" games, digest ")
	require.NoError(t, Declaration.Pin(s), "a pinned recipe is accepted")
	e, err := Declaration.Open(env.Options{Settings: s, MaxTurns: PaperTurns})
	require.NoError(t, err)
	ids, types := map[string]bool{}, map[string]bool{}
	for i := range count {
		task, err := e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, Index: i, PerStep: count})
		require.NoError(t, err)
		ids[task.ID], types[task.Type] = true, true
	}
	require.Len(t, ids, count)
	require.Equal(t, map[string]bool{"clean": true, "look": true}, types)
	s["seen"] = true
	require.NoError(t, Declaration.Pin(s), "a pinned recipe can be evaluated on the other split")
}

// A folder or a file that is not as ALFWorld's are is refused with the name of what is wrong.
func TestBadGamesAreRefused(t *testing.T) {
	folder := unpacked(t)
	paths, err := filepath.Glob(filepath.Join(folder, trainFolder, "*", "*", gameFile))
	require.NoError(t, err)
	for _, other := range paths[5:] { // fewer are read faster
		require.NoError(t, os.Remove(other))
	}
	path := paths[3]
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	pinned := env.Settings{"games": folder}
	require.NoError(t, Declaration.Pin(pinned))
	for want, change := range map[string][2]string{
		path + ": is no game file: unexpected end of JSON input": {`"solvable": true`, ""},
		path + ": pddl_domain: is not the domain of ALFWorld's":  {"(holdsAny ?a)", "(holdsMany ?a)"},
		path + ": grammar: is none of ALFWorld's grammars":       {"You open the", "You unlock the"},
		path + ": grammar: has 0 plain sentences":                {"Your task is to: ", "Your job is to: "},
		path + ": grammar: its command and its answer for putting": {"You put the {o.name} in/on the",
			"You move the {o.name} to the"},
		path + ": pddl_problem: has the fact [broken agent1]": {"(:init", "(:init (broken agent1)"},
		folder + " have the digest ":                          {`Type)`, `Type) `},
	} {
		bad := strings.Replace(string(text), change[0], change[1], 1)
		require.NotEqual(t, string(text), bad, want)
		if change[1] == "" {
			bad = bad[:len(bad)-2]
		}
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		require.ErrorContains(t, Declaration.Pin(pinned), want)
		e, err := Declaration.Open(env.Options{Settings: pinned, MaxTurns: PaperTurns})
		require.NoError(t, err)
		_, err = e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1})
		require.ErrorContains(t, err, "environment.settings.games: ")
		require.ErrorContains(t, err, want)
	}
	unsolvable := strings.Replace(string(text), `"solvable": true`, `"solvable": false`, 1)
	require.NoError(t, os.WriteFile(path, []byte(unsolvable), 0o600))
	fewer := env.Settings{"games": folder}
	require.NoError(t, Declaration.Pin(fewer))
	require.Equal(t, pinned["games_count"].(int)-1, fewer["games_count"], "the package does not play it")
	require.NoError(t, os.RemoveAll(filepath.Join(folder, unseenFolder)))
	require.ErrorContains(t, Declaration.Pin(fewer), filepath.Join(folder, unseenFolder)+": no such file or directory")
	require.NoError(t, os.Mkdir(filepath.Join(folder, unseenFolder), 0o700))
	require.ErrorContains(t, Declaration.Pin(fewer), filepath.Join(folder, unseenFolder)+" holds no TASK/TRIAL/game")
}

func TestBadSettingsOfGames(t *testing.T) {
	for want, s := range map[string]env.Settings{
		"games: names no folder that games_sha256": {"games_sha256": strings.Repeat("0", 64)},
		"games: must be an absolute path":          {"games": "games"},
		"games: rooms, layouts, places, things":    {"games": t.TempDir(), "places": 4},
		`types: there is no "sing"`:                {"games": t.TempDir(), "types": "sing"},
		"train: no such file or directory":         {"games": t.TempDir()},
	} {
		require.ErrorContains(t, Declaration.Pin(s), want)
	}
	require.Contains(t, Declaration.World(env.Settings{}), "generated rooms, which stand in for ALFWorld's games")
	require.Equal(t, "ALFWorld, 3,053 games, digest 0123456789ab", Declaration.World(env.Settings{"games": "/games",
		"games_count": 3053, "games_sha256": "0123456789abcdef"}))
}

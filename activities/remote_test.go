package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// Training in environments outside the program. The world is a walk along a line: it begins at 3, and ends with success
// at 0 or 5 moves after it began.

// walker is an engine that goes left or right, as a row's stream says.
type walker struct {
	policy.Engine
	tok *tokenizer.Tokenizer
}

func (w walker) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for _, stream := range req.Streams {
		text, ok := protocol.ThinkAction{}.Write(env.Move{Action: []string{"left", "left", "right"}[stream>>9%3]})
		if !ok {
			return g, errors.New("the protocol cannot write the action")
		}
		ids := w.tok.Encode(text)
		g.Tokens, g.Finish = append(g.Tokens, ids), append(g.Finish, policy.FinishStop)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
	}
	return g, nil
}

// walkBench is a worker whose engine is the walker.
func walkBench(t *testing.T, objects store.Store) *bench {
	t.Helper()
	tok, err := rollout.TokenizerOf(protocol.ThinkAction{}, remote.Python)
	require.NoError(t, err)
	deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{
		Rollout: func(e policy.Engine) policy.Engine { return walker{e, tok} }})
	return &bench{store: objects, record: commit.New(objects), deps: deps}
}

const walkRecipe = `version: 1
name: walk
steps: 2
environment: {name: %s, settings: %s}
engine: {kind: cpu}
policy: {layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, max_positions: 512}
rollout: {mode: %s, prompts: 2, samples_per_prompt: 4, max_turns: 5, max_turn_tokens: 64, max_tokens: 512, shard_groups: 1}
layout: turns
reward: %s
advantage: {name: gigpo, std: true, gamma: 0.95, omega: 1, anchors: exact, invalid_penalty: 0.1}
loss: {name: ppo_clip, clip_low: 0.2, clip_high: 0.2, aggregation: token-mean}
optimizer: {lr: 0.0001, minibatches: 1}
evaluation: {problems: 2, samples: 2, greedy: false}
checkpoint: {every: 0, keep_last: 1}
`

// walkOf is a recipe of the walk. Nothing demonstrates it.
func walkOf(environment, settings, mode, reward string) string {
	text := fmt.Sprintf(walkRecipe, environment, settings, mode, reward)
	if environment == "python" {
		text += "warm_start: {steps: 0}\n"
	}
	return text
}

// walkModule is the walk in Python. It notes resets, and ends its process once, at the third step of all, if a file
// says so. score is a reward function.
const walkModule = `import os

class Walk:
    def __init__(self, log, fuse):
        self.log, self.fuse = log, fuse

    def note(self, text):
        with open(self.log, "a") as f:
            f.write(text + "\n")

    def reset(self, seed=None):
        self.note("reset")
        self.place, self.moves = 3, 0
        return f"seed {seed}: 3", {}

    def step(self, action):
        self.note("step")
        if os.path.exists(self.fuse) and open(self.log).read().count("step") == 3:
            os.remove(self.fuse)
            os._exit(1)
        self.place, self.moves = self.place + (-1, 1)[action], self.moves + 1
        done = self.place == 0 or self.moves == 5
        return f"at {self.place}", float(self.place == 0), done, False, {"success": self.place == 0}


class Told(Walk):
    def reset(self, seed=None):
        seen, _ = super().reset(seed)
        return seen, {"admissible": ["left", "right"], "type": ["even", "odd"][seed % 2], "level": 3}

    def step(self, action):
        *seen, info = super().step(action)
        return *seen, {**info, "admissible": ["left"], "score": float(info["success"])}


def score(trajectory, scale=1, fault=""):
    held_out = int(trajectory["question"].split()[1][:-1]) >= 1000
    if fault and trajectory["environment_success"] and not held_out:
        if fault == "raise":
            raise ValueError("no such trajectory")
        return {"nan": float("nan"), "text": "1", "pair": (1, 2)}[fault]
    return scale * trajectory["turns"], trajectory["environment_success"]
`

// pythonWalk returns the settings of the walk in Python, and the paths of its log and its fuse.
func pythonWalk(t *testing.T) (settings, log, fuse, path string) {
	t.Helper()
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	path = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "walking.py"), []byte(walkModule), 0o600))
	log, fuse = filepath.Join(path, "log"), filepath.Join(path, "fuse")
	kwargs, err := json.Marshal(map[string]string{"log": log, "fuse": fuse})
	require.NoError(t, err)
	return fmt.Sprintf(`{module: "walking:Walk", path: %q, actions: "left,right", kwargs: '%s', processes: 1}`, path,
		kwargs), log, fuse, path
}

// walkServer serves the walk over OpenEnv's protocol.
type walkServer struct {
	mu            sync.Mutex
	resets, steps int
	burning       bool // it dies at the third step of all, and takes no sessions for a moment
	away          time.Time
	open          map[*websocket.Conn]bool
}

func (s *walkServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	away := time.Now().Before(s.away)
	s.mu.Unlock()
	if r.URL.Path != "/ws" || away {
		http.Error(w, "not here", map[bool]int{true: 503, false: 404}[away])
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	s.mu.Lock()
	s.open[c] = true
	s.mu.Unlock()
	place, moves, seed := 3, 0, 0
	for {
		_, text, err := c.Read(r.Context())
		if err != nil {
			return
		}
		var m struct {
			Type string
			Data struct{ Seed, Move int }
		}
		if json.Unmarshal(text, &m) != nil || m.Type == "close" {
			return
		}
		shown, reward := "", 0
		if m.Type == "reset" {
			s.count(&s.resets)
			place, moves, seed = 3, 0, m.Data.Seed
			shown = fmt.Sprintf("seed %d: 3", seed)
		} else {
			if s.count(&s.steps) == 3 && s.dies() {
				return
			}
			place, moves = place+2*m.Data.Move-1, moves+1
			shown = fmt.Sprintf("at %d", place)
		}
		if place == 0 {
			reward = 1
		}
		text = fmt.Appendf(nil, `{"type":"observation","data":{"observation":{"text":%q,"reached":%t},"reward":%d,`+
			`"done":%t}}`, shown, place == 0, reward, place == 0 || moves == 5)
		if c.Write(r.Context(), websocket.MessageText, text) != nil {
			return
		}
	}
}

func (s *walkServer) count(n *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
	return *n
}

// dies closes all sessions, once.
func (s *walkServer) dies() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.burning {
		return false
	}
	s.burning, s.away = false, time.Now().Add(300*time.Millisecond)
	for c := range s.open {
		_ = c.CloseNow()
	}
	return true
}

// The other side dies in the middle of an episode, or the worker cannot commit a turn and does it again. In both modes
// the episodes go on, with the rows and the policy of an undisturbed run.
func TestRemoteEpisodesGoOn(t *testing.T) {
	t.Run("python", func(t *testing.T) {
		testGoesOn(t, "python", "interleaved", func(t *testing.T, dies bool) (string, func() int) {
			settings, log, fuse, _ := pythonWalk(t)
			if dies {
				require.NoError(t, os.WriteFile(fuse, nil, 0o600))
			}
			return settings, func() int {
				text, err := os.ReadFile(log)
				require.NoError(t, err)
				require.NoFileExists(t, fuse)
				return strings.Count(string(text), "reset")
			}
		})
	})
	t.Run("openenv", func(t *testing.T) {
		testGoesOn(t, "openenv", "staged", func(t *testing.T, dies bool) (string, func() int) {
			world := &walkServer{burning: dies, open: map[*websocket.Conn]bool{}}
			server := httptest.NewServer(world)
			t.Cleanup(server.Close)
			return fmt.Sprintf(
					`{url: %q, actions: "left,right", action: '{"move": "{index}"}', observation: text, `+
						`success: reached}`,
					server.URL,
				), func() int {
					require.False(t, world.burning)
					return world.resets
				}
		})
	})
}

func testGoesOn(t *testing.T, name, mode string,
	other func(t *testing.T, dies bool) (settings string, resets func() int)) {
	run := func(t *testing.T, dies bool, objects store.Store) ([]schema.TransitionRow, int) {
		settings, resets := other(t, dies)
		b := walkBench(t, objects)
		_, err := b.train(t, workflows.TrainRunInput{Run: "r",
			RecipeYAML: walkOf(name, settings, mode, "{name: arlarena}")})
		require.NoError(t, err)
		noFaults(t, b)
		checked(t, b.store, "r")
		return stepRows[schema.TransitionRow](t, b.store, "r", 1, schema.StageSandbox), resets()
	}
	undisturbed := faults.New(mem.New())
	want, plain := run(t, false, undisturbed)
	valid := 0
	for _, r := range want {
		require.Nil(t, r.Excluded)
		if r.Valid {
			valid++
		}
	}
	require.Greater(t, valid, 20)
	got, resets := run(t, true, mem.New())
	require.Equal(t, want, got)
	require.Greater(t, resets, plain, "no episode was repeated")
	const turn = "manifests/step=1/sandbox/turn=1"
	failing := faults.New(mem.New(), faults.Rule{Op: faults.PutIfAbsent, Key: turn, Nth: 1})
	got, resets = run(t, false, failing)
	require.Equal(t, want, got)
	require.Greater(t, failing.Count(faults.PutIfAbsent, turn), undisturbed.Count(faults.PutIfAbsent, turn),
		"no turn was committed again")
	if mode == "staged" {
		require.Greater(t, resets, plain, "no episode was repeated")
		return
	}
	// The transitions that a flow had before the failure are kept in a segment, and not made again.
	require.GreaterOrEqual(t, resets, plain)
}

// What a Python environment tells is in the record: the level of a task, its type with which evaluations are summed up,
// scores, and which actions were admissible.
func TestWhatPythonTellsIsRecorded(t *testing.T) {
	settings, _, _, _ := pythonWalk(t)
	settings = strings.Replace(settings, "Walk", "Told", 1)
	b := walkBench(t, mem.New())
	_, err := b.train(t, workflows.TrainRunInput{Run: "r",
		RecipeYAML: walkOf("python", settings, "interleaved", "{name: arlarena}")})
	require.NoError(t, err)
	for _, row := range stepRows[schema.PromptRow](t, b.store, "r", 1, schema.StagePrompts) {
		require.EqualValues(t, 3, row.Level)
	}
	invalid := 0
	for _, row := range stepRows[schema.TransitionRow](t, b.store, "r", 1, schema.StageSandbox) {
		require.Equal(t, map[bool]string{true: `[]`, false: `["left"]`}[row.Done], *row.Admissible)
		require.Equal(t, row.Turn == 0 || row.Action == "left", row.Valid)
		if !row.Valid {
			invalid++
		}
	}
	require.Positive(t, invalid)
	types := map[string]bool{}
	for _, row := range evaluationRows(t, b) {
		types[*row.TaskType] = true
		require.Equal(t, row.Success, *row.Score == 1)
	}
	require.Len(t, types, 2)
}

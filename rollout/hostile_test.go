package rollout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/env/mix"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// Text from an environment, a task or a tool is never a protocol's tag or special token, whatever it holds. RStar2 is
// left out: it has no marks, because it renders text as its release does (its comment says so).

// saying is an interactive environment that shows one text everywhere.
type saying struct{ text string }

func (s saying) seen() env.Observation {
	return env.Observation{Parts: []env.Part{{Kind: env.PartText, Text: s.text}}, Admissible: []string{s.text, s.text}}
}

func (s saying) Name() string { return "saying" }

func (s saying) Task(context.Context, env.Draw) (env.Task, error) {
	return env.Task{ID: "t", Level: 1, Spec: "t"}, nil
}

func (s saying) Instruction(env.Task) (string, error) { return s.text, nil }

func (s saying) Reset(context.Context, env.Task) (env.State, env.Observation, error) {
	return env.State("s"), s.seen(), nil
}

func (s saying) Step(_ context.Context, state env.State, _ string) (env.State, env.Transition, error) {
	return state, env.Transition{Observation: s.seen(), Valid: true}, nil
}

func (s saying) Situation(env.State) (string, error) { return s.text, nil }

// mixed puts the environment into a mix.
func (s saying) mixed(t *testing.T) env.Environment {
	d := env.Declaration{Name: "saying", Interactive: true, Rewards: []string{"arlarena"},
		Open: func(env.Options) (env.Environment, error) { return s, nil }}
	of, fault := mix.Combine([]mix.Part{{Label: "a", Weight: 1, Declaration: d},
		{Label: "b", Weight: 1, Declaration: d}})
	require.Empty(t, fault)
	e, err := of.Open(env.Options{})
	require.NoError(t, err)
	return e
}

// hostileText is made of a protocol's own strings and beginnings of them.
func hostileText(rng *rand.Rand, p protocol.Protocol) string {
	spec := p.Spec()
	pieces := slices.Concat(spec.Marks, spec.Stops, p.Added(), []string{spec.EndOfTurn, "<|im_start|>", "<", "|", ">",
		"`", "\n", " ", "\\", "x", "漢", tokenizer.EndOfTurn})
	for _, tag := range spec.Tags {
		pieces = append(pieces, "<"+tag+">", "</"+tag+">")
	}
	text := "."
	for range rng.IntN(6) {
		piece := pieces[rng.IntN(len(pieces))]
		if rng.IntN(4) == 0 {
			piece = piece[:rng.IntN(len(piece)+1)]
		}
		text += piece
	}
	return strings.ToValidUTF8(text, "") + "."
}

// marked counts a protocol's marks in a text, and the tokens that hold one.
func marked(p protocol.Protocol, tok tokenizer.Codec, text string) (counts []int) {
	tokens := 0
	for _, m := range p.Spec().Marks {
		counts = append(counts, strings.Count(text, m))
	}
	for _, id := range tok.Encode(text) {
		piece := tok.Decode([]int32{id})
		if slices.ContainsFunc(p.Spec().Marks, func(m string) bool { return strings.Contains(piece, m) }) {
			tokens++
		}
	}
	return append(counts, tokens)
}

// played plays a few turns and returns all contexts.
func played(t *testing.T, l *Loop, p protocol.Protocol, action string) (text string) {
	t.Helper()
	task, err := l.settings.Environment.Task(t.Context(), env.Draw{Split: env.Train})
	require.NoError(t, err)
	e, err := l.Begin(t.Context(), Identity{Label: LabelSample, Step: 1}, task)
	require.NoError(t, err)
	text = l.tok.Decode(e.Context)
	for range 3 {
		l.absorb(t.Context(), e, l.scripted("<think></think><action>"+action+"</action>"+p.Spec().EndOfTurn))
		require.NoError(t, l.Step(t.Context(), []*Episode{e}))
		require.Empty(t, e.Excluded)
		text += l.tok.Decode(e.Context)
	}
	return text
}

func TestTextOfWorldsIsNeverTaken(t *testing.T) {
	n := 0
	for _, p := range protocol.All {
		if !p.Spec().Acts {
			continue
		}
		tok, err := TokenizerOf(p, env.Declaration{Name: "saying"})
		require.NoError(t, err)
		for _, mixed := range []bool{false, true} {
			play := func(text string) []int {
				var world env.Environment = saying{text}
				if mixed {
					world = saying{text}.mixed(t)
				}
				l, err := NewLoop(Settings{MaxTurns: 6, MaxTurnTokens: 4096, MaxTokens: 1 << 20, Temperature: 1,
					Protocol: p, Environment: world, PastTurns: 2}, tok, 1)
				require.NoError(t, err)
				return marked(p, tok, played(t, l, p, "go"))
			}
			want := play("plain")
			rng := rand.New(rand.NewPCG(4, 4))
			for range 150 {
				hostile := hostileText(rng, p)
				require.Equal(t, want, play(hostile), "%s: %q", p.Spec().Name, hostile)
				n++
			}
		}
	}
	require.Positive(t, n)
}

// The task and everything that tools print are text of others too, within every budget of calls and text. What the
// policy's own programs print may enter as it is.
func TestTextOfTasksAndToolsIsNeverTaken(t *testing.T) {
	calling(t, Budgets{TurnCalls: 1, Calls: 3, ToolTextBytes: 400}, func(t *testing.T, p protocol.Protocol, l *Loop) {
		if len(p.Spec().Marks) == 0 {
			t.Skip("the protocol has no marks")
		}
		play := func(text string) []int {
			e := l.Start(Identity{Label: LabelSample, Step: 1}, env.Task{Text: text})
			read := l.tok.Decode(e.Context)
			printed := text
			if p.Spec().RawPrograms {
				printed = "plain"
			}
			for range 4 {
				answerAll(t, l, e, several(t, p, 2), printed)
				read += l.tok.Decode(e.Context)
			}
			return marked(p, l.tok, read)
		}
		want := play("plain")
		rng := rand.New(rand.NewPCG(5, 5))
		for range 150 {
			hostile := hostileText(rng, p)
			require.Equal(t, want, play(hostile), "%q", hostile)
		}
	})
}

// The texts of the environments' own tasks hold no mark of the protocols that they are used with, and none of the
// strings that an environment makes a token of holds one.
func TestTextsOfEnvironmentsHoldNoMarks(t *testing.T) {
	opened := 0
	for _, d := range environments.All {
		if d.Protocol == "" {
			continue
		}
		p, err := protocol.Named(d.Protocol)
		require.NoError(t, err)
		if d.Strings != nil && len(p.Spec().Marks) > 0 {
			for _, s := range d.Strings() {
				for _, m := range p.Spec().Marks {
					require.NotContains(t, s, m, "%s makes a token of a mark", d.Name)
				}
			}
		}
		if d.Open == nil || d.Wants != nil {
			continue // its tasks are a user's own
		}
		world, err := d.Open(env.Options{Settings: smallSettings(d), MaxTurns: 15,
			LevelShares: map[string]float64{"2": 1}})
		require.NoError(t, err, d.Name)
		opened++
		for i := range 5 {
			task, err := world.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, Index: i, PerStep: 5})
			require.NoError(t, err)
			text := task.Text
			if d.Interactive {
				_, seen, err := world.Reset(t.Context(), task)
				require.NoError(t, err)
				shown, ok := seen.Text()
				require.True(t, ok)
				text = shown + strings.Join(seen.Admissible, "\n")
			}
			for _, m := range p.Spec().Marks {
				require.NotContains(t, text, m, fmt.Sprintf("%s, task %d", d.Name, i))
			}
		}
	}
	require.GreaterOrEqual(t, opened, 6)
}

// smallSettings are an environment's defaults, with a small library.
func smallSettings(d env.Declaration) env.Settings {
	out := env.Settings{}
	for _, s := range d.Settings {
		if s.Name == "documents" {
			out[s.Name] = 200
		}
	}
	switch d.Name {
	case "sums":
		return env.Settings{"operators": "+-", "lowest": 2, "highest": 99, "factor": 12}
	case "sokoban":
		return env.Settings{"size": 5, "boxes": 1, "min_moves": 1, "max_moves": 6, "pays": "gym"}
	}
	return out
}

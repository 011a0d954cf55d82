package rollout

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// twisted draws the tasks of a teacher with other texts and golds.
type twisted struct{ env.Teacher }

func (t twisted) Draw(rng *rand.Rand, l env.Lesson) (env.Task, error) {
	task, err := t.Teacher.Draw(rng, l)
	task.Text, task.Answer = "Spell "+task.Text, task.Answer+"1"
	return task, err
}

// Demonstrations of the form have the form of every protocol that calls programs: each response is well formed under
// the protocol's own parser, each call decodes and runs, and the last response answers. They are the same every time,
// and the same whatever a task asks for and whatever its gold is. What they answer is right by chance alone.
func TestDemonstrationsOfTheForm(t *testing.T) {
	const n = 400
	for _, p := range protocol.All {
		spec := p.Spec()
		if _, writes := p.Write(env.Move{Code: "print(1)"}); !spec.Tools || !writes {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			tok, err := TokenizerOf(p, calc.Declaration)
			require.NoError(t, err)
			with := settings
			with.Protocol, with.MaxTokens, with.MaxTurns = p, 384, 3
			l, err := NewLoop(with, tok, 5)
			require.NoError(t, err)
			show := func(teacher env.Teacher, from, n int) []Demonstration {
				script := Script{Teacher: env.FormTeacher{Teacher: teacher}, Lesson: env.Lesson{Levels: []int{2, 3}}}
				all, err := demonstrated(t, l, box(&python{}), script, from, n)
				require.NoError(t, err)
				return all
			}
			all := show(&calc.Environment{}, 0, n)
			right, programs := 0, map[string]bool{}
			for i, d := range all {
				require.Equal(t, FinishAnswered, d.Episode.Finish, "demonstration %d: %s", i, d.Episode.Text())
				require.Greater(t, len(d.Episode.Turns), 1)
				for k, turn := range d.Episode.Turns {
					parsed := p.Parse(turn.Text, nil)
					require.True(t, parsed.WellFormed, turn.Text)
					last := k == len(d.Episode.Turns)-1
					require.Equal(t, last, parsed.HasAnswer, turn.Text)
					require.Equal(t, map[bool]int{false: 1}[last], len(parsed.Calls), turn.Text)
					require.Zero(t, parsed.OpenCalls)
					for at, c := range parsed.Calls {
						require.Empty(t, c.Error, turn.Text)
						require.False(t, turn.Results[at].Failed())
						programs[c.Code] = true
					}
				}
				if d.Right {
					right++
				}
			}
			require.Greater(t, len(programs), n/2)
			require.Less(t, right, n/20, "the answers have nothing to do with the tasks")
			require.Equal(t, all[100:150], show(&calc.Environment{}, 100, 50), "equal draws give equal demonstrations")
			for i, d := range show(twisted{&calc.Environment{}}, 0, 50) {
				require.NotEqual(t, all[i].Episode.Task.Answer, d.Episode.Task.Answer)
				require.Len(t, d.Episode.Turns, len(all[i].Episode.Turns))
				for k, turn := range d.Episode.Turns {
					require.Equal(t, all[i].Episode.Turns[k].Text, turn.Text)
				}
			}
		})
	}
}

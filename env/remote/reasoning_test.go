package remote

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
)

// families are task families of reasoning-gym.
var families = []string{
	"chain_sum", "basic_arithmetic", "decimal_chain_sum", "gcd", "lcm", "leg_counting", "prime_factorization",
	"products", "time_intervals", "simple_equations", "letter_counting", "base_conversion", "binary_matrix",
	"caesar_cipher", "count_primes", "word_sorting", "spell_backward", "string_manipulation", "number_sorting",
	"sentence_reordering", "number_filtering", "calendar_arithmetic", "family_relationships", "propositional_logic",
}

// raising are families whose own score raises on a text that is not of the answer's form. That is an error, so the
// trajectory is excluded.
var raising = map[string]string{"prime_factorization": "the Python code raised ValueError"}

// Families of reasoning-gym evaluate: the right answer succeeds, and a wrong one does not.
func TestRealReasoningGym(t *testing.T) {
	if named := os.Getenv("ROPEWALK_REASONING_PYTHON"); named != "" {
		t.Setenv(python.Variable, named)
	}
	interpreter := pythontest.Need(t, "REASONING", "reasoning_gym")
	t.Setenv("ROPEWALK_REASONING_INTERPRETER", interpreter)
	answers := answersOf(t, interpreter)
	right := 0
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			e := opened(t, "reasoning_gym:create_dataset", map[string]any{"name": family, "seed": 7, "size": 20},
				env.Settings{"kind": "question", "tasks": 10, "held_out": 10,
					"interpreter": "ROPEWALK_REASONING_INTERPRETER"})
			for i := range 3 {
				task, err := e.Task(t.Context(), env.Draw{Split: env.HeldOut, Index: i})
				require.NoError(t, err)
				state, seen, err := e.Reset(t.Context(), task)
				require.NoError(t, err)
				text, _ := seen.Text()
				require.NotEmpty(t, text)
				_, wrong, err := e.Step(t.Context(), state, "no answer of any family")
				if want := raising[family]; want != "" {
					require.ErrorContains(t, err, want)
					continue
				}
				require.NoError(t, err)
				require.True(t, wrong.Done && !wrong.Success, "seed %s: %v", task.Spec, wrong)
				answer := answers[family][i]
				if answer == "" {
					continue // the family has no single right answer
				}
				_, got, err := e.Step(t.Context(), state, answer)
				require.NoError(t, err)
				require.True(t, got.Done && got.Success, "seed %s: %q has the reward %g", task.Spec, answer, got.Reward)
				right++
			}
		})
	}
	require.GreaterOrEqual(t, right, 60)
	t.Logf("%d right answers of %d families", right, len(families))
}

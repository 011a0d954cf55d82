package household

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
)

// A person sees one line for each class of a list; other texts stay as they are.
func TestLay(t *testing.T) {
	for text, want := range map[string]string{
		"You arrive at desk 1. On the desk 1, you see a pen 2, a pen 1, and a mug 1.": "You arrive at desk 1.\n" +
			"On the desk 1, you see\n  pen 2, 1\n  mug 1",
		"You are in the middle of a room. Looking around, you see a bed 1.\n\nYour task is to: put a pen in bed.": "" +
			"You are in the middle of a room.\nLooking around, you see\n  bed 1\n\nYour task is to: put a pen in bed.",
		"On the desk 1, you see nothing.":            "On the desk 1, you see nothing.",
		"You are facing it. Next to it, you see <b>": "You are facing it. Next to it, you see <b>",
		nothing: nothing,
		"":      "",
	} {
		require.Equal(t, want, lay("", text))
	}
}

// name is a name in an observation, and named is what a line that was laid out lists.
var name = regexp.MustCompile(`\ba ([a-z]+ [0-9]+)\b`)

// Laying out loses no name, whatever the expert sees.
func TestLayLosesNothing(t *testing.T) {
	e := newHousehold(t, Settings{})
	for _, task := range envtest.Take(t, e, env.HeldOut, 1, 30) {
		state, seen, err := e.Reset(t.Context(), task)
		require.NoError(t, err)
		plan, err := e.Solve(t.Context(), state)
		require.NoError(t, err)
		for _, action := range append(plan, "") {
			text, _ := seen.Text()
			var want []string
			for _, found := range name.FindAllStringSubmatch(text, -1) {
				want = append(want, found[1])
			}
			require.Equal(t, want, listed(lay("", text)), text)
			if action == "" {
				break
			}
			next, step, err := e.Step(t.Context(), state, action)
			require.NoError(t, err)
			state, seen = next, step.Observation
		}
	}
}

// listed returns the names that the indented lines list.
func listed(text string) (out []string) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "  ")
		if !ok {
			continue
		}
		class, numbers, _ := strings.Cut(rest, " ")
		for n := range strings.SplitSeq(numbers, ", ") {
			out = append(out, class+" "+n)
		}
	}
	return slices.Clip(out)
}

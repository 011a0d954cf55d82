package reward

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Where answers need no box, the text of the last answer block is the answer, unless it holds a box.
func TestGradePlain(t *testing.T) {
	o := Options{Plain: true, Literal: true}
	for text, want := range map[string]Outcome{
		"<answer> 18\n</answer>":                 {1, Exact, "18"},
		"<answer>17</answer>":                    {0, Wrong, "17"},
		"<answer>18</answer><answer>17</answer>": {0, Wrong, "17"},
		`<answer>so \boxed{18}</answer>`:         {1, Exact, "18"},
		"18":                                     {0, NoAnswer, ""},
		"<answer>18":                             {0, NoAnswer, ""},
	} {
		require.Equal(t, want, Grade(text, "18", o), "%q", text)
	}
}

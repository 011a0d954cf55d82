package searchqa

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A person sees numbered results, and a page in lines; other texts stay as they are.
func TestLay(t *testing.T) {
	long := strings.Repeat("word ", 30) + "end"
	for _, c := range []struct{ tool, text, want string }{
		{"search", "Ada Bell: Born in Rye.\nRye: A city: it lies on the Ouse.",
			"1. Ada Bell\n   Born in Rye.\n2. Rye\n   A city: it lies on the Ouse."},
		{"wiki_search", "Ada Bell: Born in Rye.", "1. Ada Bell\n   Born in Rye."},
		{"search", "No document has these words.", "No document has these words."},
		{"browse", "Rye\n" + long, "Rye\n───\n" + strings.Repeat("word ", 19) + "word\n" +
			strings.Repeat("word ", 10) + "end"},
		{"browse", "no document has the title", "no document has the title"},
		{"python", "a: b", "a: b"},
		{"", "Which city: Rye or Ouse?", "Which city: Rye or Ouse?"},
	} {
		require.Equal(t, c.want, lay(c.tool, c.text), c.text)
	}
}

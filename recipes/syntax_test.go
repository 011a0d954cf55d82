package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A text that is not YAML is refused with the right line and what to do about it.
func TestSyntaxFaults(t *testing.T) {
	const tab = "is not YAML: the line is indented with a tab; indent it with spaces"
	for _, c := range []struct{ text, want string }{
		{"version: 1\n\tname: x\n", "f:2: " + tab},
		{"version: 1\nrollout:\n\tprompts: 4\n", "f:3: " + tab},
		{"version: 1\nrollout:\n  prompts: 4\n\tsamples: 3\n", "f:4: " + tab},
		{"a: 1\nb: [\n\t1]\nc: @x\n", "f:4: is not YAML: found character that cannot start any token: a text that " +
			"begins with @ or ` needs quotes"},
		{"version: 1\nname: a: b\n", "f:2: is not YAML: mapping values are not allowed in this context: the line is " +
			"indented deeper than the one above, or a text that holds a colon needs quotes"},
		{"version: 1\nname:x\nsteps: 3\n", "f:2: is not YAML: could not find expected ':': an entry is NAME: VALUE, " +
			"with a space after the colon"},
		{"version: 1\nrollout:\n  prompts: 4\n samples: 3\n", "f:4: is not YAML: did not find expected key: entries " +
			"of a section begin in the same column"},
		{"version: 1\nname: \"abc\nsteps: 3\n", "f:2: is not YAML: found unexpected end of stream: a quote is " +
			"not closed"},
		{"version: 1\nname: caf\xe9\n", "f:2: is not YAML: the line is not UTF-8; save the file as UTF-8"},
		{"\x1f\x8b\x08\x00\x00\x00", "f:1: is compressed with gzip; unpack it first (gunzip)"},
		{"a\x01b: 1\n", "f:1: is not YAML: control characters are not allowed: a recipe is plain text"},
	} {
		_, err := Parse("f", []byte(c.text))
		require.EqualError(t, err, c.want, c.text)
	}
}

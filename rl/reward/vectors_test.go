package reward

import (
	"testing"

	"github.com/ropewalk/ropewalk/rl/internal/vectors"
)

func TestVectors(t *testing.T) {
	vectors.Run(t, map[string]func(*testing.T, vectors.Case){"reward/last_boxed": testLastBoxed})
}

func testLastBoxed(t *testing.T, c vectors.Case) {
	var in []string
	var want []*string
	c.Decode(t, &in, &want)
	for i, text := range in {
		got, ok := LastBoxed(text)
		if ok != (want[i] != nil) || ok && got != *want[i] {
			t.Errorf("last box of %q: %q, %v", text, got, ok)
		}
	}
}

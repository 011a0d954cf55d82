package pythontest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
)

// verdict is a test that records how it ends and does not continue.
type verdict struct {
	testing.TB
	said string
}

func (v *verdict) Skip(args ...any) { v.end("skipped: " + fmt.Sprint(args...)) }

func (v *verdict) Fatalf(format string, args ...any) {
	v.end("failed: " + fmt.Sprintf(format, args...))
}

func (v *verdict) end(said string) {
	v.said = said
	panic(v)
}

func TestNeed(t *testing.T) {
	for _, c := range []struct{ name, required, want string }{
		{"wanted", "", "skipped: /no/such/python cannot import json: "},
		{"required", "1", "failed: ROPEWALK_REQUIRE_SAMPLE is set, but /no/such/python cannot import json: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(python.Variable, "/no/such/python")
			t.Setenv("ROPEWALK_REQUIRE_SAMPLE", c.required)
			v := &verdict{TB: t}
			require.PanicsWithValue(t, v, func() { Need(v, "SAMPLE", "json") })
			require.Contains(t, v.said, c.want)
		})
	}
}

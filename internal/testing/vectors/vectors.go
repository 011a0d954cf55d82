// Package vectors reads the test vectors of the algorithms (rl/testdata/vectors.json) and hands
// each case to the test that understands its kind.
//
// Glossary. A *case* is one input with the output that an independent implementation gave for
// it. A case's *kind* is the first component of its id followed by its `inputs.kind` where there
// is one ("loss/ppo"), else the id's first two components ("adv/vspo"); the aggregation cases are
// told apart by their fields alone, so their kind is "agg". Parameters are read from the inputs,
// never from the id. The environment variable ROPEWALK_VECTORS names another file of the same form.
package vectors

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/servertest"
)

// Tolerance is the agreement asked of every number, absolute or relative.
const Tolerance = 1e-6

// Case is one vector.
type Case struct {
	ID      string          `json:"id"`
	Section string          `json:"section"`
	Inputs  json.RawMessage `json:"inputs"`
	Outputs json.RawMessage `json:"outputs"`
	Note    string          `json:"note"`
}

// Kind names what the case tests.
func (c Case) Kind() string {
	parts := strings.Split(c.ID, "/")
	var named struct {
		Kind string `json:"kind"`
	}
	// Inputs that are a list have no kind; the error says just that.
	if err := json.Unmarshal(c.Inputs, &named); err == nil && named.Kind != "" {
		return parts[0] + "/" + named.Kind
	}
	if parts[0] == "agg" || len(parts) < 2 {
		return parts[0]
	}
	return parts[0] + "/" + parts[1]
}

// Decode reads the case's inputs and outputs.
func (c Case) Decode(t *testing.T, inputs, outputs any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(c.Inputs, inputs), c.ID)
	require.NoError(t, json.Unmarshal(c.Outputs, outputs), c.ID)
}

// Has reports whether the inputs are an object with the given field.
func (c Case) Has(field string) bool {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(c.Inputs, &fields); err != nil {
		return false
	}
	raw, ok := fields[field]
	return ok && !bytes.Equal(raw, []byte("null"))
}

// Load reads every case of the file.
func Load(t *testing.T) []Case {
	t.Helper()
	path := os.Getenv("ROPEWALK_VECTORS")
	if path == "" {
		path = servertest.Path(t, "rl", "testdata", "vectors.json")
	}
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct {
		Cases []Case `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(raw, &file), path)
	return file.Cases
}

// Kinds holds the function that checks a case of each kind.
type Kinds map[string]func(*testing.T, Case)

// Run hands every case to the function of its kind, and fails at a kind that has none.
func Run(t *testing.T, kinds Kinds) {
	t.Helper()
	all := Load(t)
	for _, c := range all {
		t.Run(c.ID, func(t *testing.T) {
			require.Contains(t, kinds, c.Kind(), "no function checks vectors of this kind")
			kinds[c.Kind()](t, c)
		})
	}
	t.Logf("vectors: %d cases", len(all))
}

// Near reports whether got is within Tolerance of want.
func Near(got, want float64) bool {
	d := math.Abs(got - want)
	return d <= Tolerance || d <= Tolerance*math.Abs(want)
}

// Equal fails unless got is near want in every entry. Both are lists of float64, or of rows.
func Equal[T any](t *testing.T, name string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(Tolerance, Tolerance), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s: -want +got:\n%s", name, d)
	}
}

package recipes

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOutputs(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want Outputs
	}{
		{nil, Outputs{}},
		{[]string{"optimizer.minibatch_rows=8", "loss.entropy=0.01"}, Outputs{}},
		{[]string{"loss.old_log_probs=recompute"}, Outputs{OldLogProbs: true}},
		{[]string{"loss.kl={coefficient: 0.1}"}, Outputs{Reference: true}},
		{[]string{"token_outputs={entropies: true}"}, Outputs{Entropies: true}},
		{[]string{"token_outputs={reference: true}"}, Outputs{Reference: true}},
	} {
		r, err := ParseWith("f", []byte(small), c.set)
		require.NoError(t, err, c.set)
		require.Equal(t, c.want, r.Outputs(), c.set)
		require.Equal(t, c.want != Outputs{}, r.Outputs().Any(), c.set)
	}
}

func TestReferenceStep(t *testing.T) {
	r, err := ParseWith("f", []byte(small), nil)
	require.NoError(t, err)
	require.Zero(t, r.ReferenceStep(9))
	r, err = ParseWith("f", []byte(small), []string{"loss.kl={coefficient: 0.1}", "loss.reference.refresh_every=3"})
	require.NoError(t, err)
	for step, want := range map[int]int{1: 0, 3: 0, 4: 3, 6: 3, 7: 6} {
		require.Equal(t, want, r.ReferenceStep(step), step)
	}
}

// A recipe that asks for no outputs has the same canonical form as before outputs existed.
func TestAbsentSectionsStayAbsent(t *testing.T) {
	r, err := Resolve("quickstart", "", nil, nil, nil)
	require.NoError(t, err)
	for _, name := range []string{`"old_log_probs"`, `"reference"`, `"token_outputs"`, `"replay"`, `"kl"`, `"entropy"`,
		`"tis"`} {
		require.NotContains(t, string(r.JSON), name)
	}
}

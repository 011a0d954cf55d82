package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every figure names itself once, asks questions that exist, and every question is asked by some figure or gate.
func TestDeclarationsOfSections(t *testing.T) {
	ids, asked := map[string]bool{}, map[string]bool{}
	for _, s := range sections {
		require.NotEmpty(t, s.title, s.id)
		require.False(t, ids[s.id+" section"], s.id)
		ids[s.id+" section"] = true
		if s.gate != "" {
			asked[s.gate] = true
		}
		for _, f := range s.figures {
			require.False(t, ids[f.id], f.id)
			ids[f.id] = true
			require.NotEmpty(t, f.title, f.id)
			require.False(t, (f.empty != "" || f.optional) && len(f.asks) == 0,
				"%s: empty without which question?", f.id)
			for _, name := range f.needs() {
				asked[name] = true
			}
		}
	}
	for _, name := range overlaid() {
		asked[name] = true
	}
	var unasked []string
	for _, q := range questions {
		if !asked[q.Name] {
			unasked = append(unasked, q.Name)
		}
		delete(asked, q.Name)
	}
	require.Empty(t, unasked)
	require.Empty(t, asked, "questions that do not exist")
}

// Whatever a page asks first is what its unconditional sections and the gates of the others need.
func TestNeedsOfAPage(t *testing.T) {
	always := section{figures: []figure{{asks: []string{"b", "a"}, also: []string{"c"}}, {asks: []string{"a"}}}}
	sometimes := section{figures: []figure{{asks: []string{"d"}}}, gate: "g",
		shown: func(data) bool { return true }}
	require.Equal(t, []string{"a", "b", "c", "g"}, needs([]section{always, sometimes}))
	require.Equal(t, []string{"d"}, sometimes.needs())
}

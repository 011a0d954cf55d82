package view_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
)

// evaluated is a run whose evaluations, one before the first step and one after the last, have recorded their episodes.
var evaluated = recordtest.Options{Episodes: true}

// The episodes of evaluations are in the index, apart from the trajectories of steps.
func TestEpisodesOfEvaluations(t *testing.T) {
	s := serve(t, train(t, evaluated), "r")
	s.complete(2)
	state := s.viewer.State()
	require.Equal(t, 24, state.Rows)
	require.Positive(t, state.Held.Rows)
	require.EqualValues(t, 24, s.list(nil).Summary.Count)
	held := s.list(url.Values{"part": {"evaluation"}})
	require.EqualValues(t, state.Held.Rows, held.Summary.Count)
	solved := 0
	for _, f := range state.Held.Facets["fate"] {
		require.Contains(t, []any{"solved", "not solved"}, f.Value)
		chosen := s.list(url.Values{"part": {"evaluation"}, "fate": {f.Value.(string)}})
		require.EqualValues(t, f.Count, chosen.Summary.Count)
		solved += f.Count
	}
	require.Equal(t, state.Held.Rows, solved)
	before := s.list(url.Values{"part": {"evaluation"}, "step": {"0"}}).column("trajectory_id")
	require.NotEmpty(t, before)
	for _, id := range []string{before[0], held.column("trajectory_id")[0]} {
		var c view.Closeup
		require.Equal(t, http.StatusOK, s.ask("trajectory?id="+url.QueryEscape(id), &c), id)
		require.Contains(t, id, "evaluation/")
		require.NotEmpty(t, c.Turns)
		require.Equal(t, "evaluation", c.Row["part"])
		require.Contains(t, c.Group, id)
	}
	var out struct{ Error string }
	require.Equal(t, http.StatusBadRequest, s.ask("trajectories?part=dreams", &out))
	require.Contains(t, out.Error, `part: want training or evaluation, got "dreams"`)
}

// A reader chooses the episodes of evaluations, and a link leads to one.
func TestEvaluationsInTheBrowser(t *testing.T) {
	p := openTab(t)
	s := serve(t, train(t, evaluated), "r")
	s.complete(2)
	p.open(s.link(""))
	p.is("24", listed)
	p.value(`(() => { const s = document.querySelector("select[name=part]"); s.value = "evaluation"; ` +
		`s.dispatchEvent(new Event("input", {bubbles: true})); })()`)
	p.is("?part=evaluation", query)
	id := s.list(url.Values{"part": {"evaluation"}}).column("trajectory_id")[0]
	p.is(id, firstRow)
	p.press("j")
	p.press("\r")
	p.is(id, shownID)
	p.is("true", `document.querySelectorAll("#closeup .turn").length > 0`)
	p.is("true", `document.querySelector("#closeup .facts").innerText.includes("held out")`)
	link := p.value("location.href")
	p.open(link)
	p.is(id, shownID)
}

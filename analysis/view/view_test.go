package view_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
)

func TestFilters(t *testing.T) {
	s := serve(t, train(t, recordtest.Options{}), "r")
	s.complete(2)
	for _, c := range []struct {
		query string
		want  int // trajectories
	}{
		{"", 24}, {"step=2", 12}, {"step=1-2", 24}, {"step=1,2", 24}, {"step=3", 0}, {"min=1", 14}, {"max=0.5", 10},
		{"min=1&step=1", 6}, {"status=ok", 6}, {"status=none", 12}, {"status=ok&status=none", 18},
		{"fate=kept", 12}, {"fate=zero_variance", 8}, {"fate=kept&fate=zero_variance", 20},
		{"fate=zero_variance&min=1", 8}, {"q=00002/0001/003", 1}, {"q=WHAT+IS+2", 12}, {"q=%25", 0},
		{"where=tool_calls+%3D+0+--+and+so+on", 12}, {"where=step%3D1+or+step%3D2&step=1", 12},
		{"where='ok'+in+statuses+and+fate%3D'kept'&step=1", 2},
	} {
		q, err := url.ParseQuery(c.query)
		require.NoError(t, err)
		got := s.list(q)
		require.Empty(t, got.Error, c.query)
		require.EqualValues(t, c.want, got.Summary.Count, c.query)
		require.Len(t, got.Rows, c.want, c.query)
	}
}

// What a reader can choose from is counted: first what went well, then the most frequent.
func TestFacets(t *testing.T) {
	s := serve(t, train(t, recordtest.Options{}), "r")
	s.complete(2)
	f := s.viewer.State().Facets
	require.Equal(t, []view.Facet{{Value: "kept", Count: 12}, {Value: "zero_variance", Count: 8}}, f["fate"][:2])
	require.Equal(t, []view.Facet{{Value: "ok", Count: 6}, {Value: view.NoCalls, Count: 12}}, f["status"][:2])
	for name, all := range f {
		n := 0
		for _, x := range all {
			n += x.Count
		}
		require.Equal(t, 24, n, name)
	}
}

func TestOrderAndPages(t *testing.T) {
	s := serve(t, train(t, recordtest.Options{}), "r")
	s.complete(2)
	first := s.list(url.Values{"limit": {"3"}})
	require.Equal(t, []string{"00002/0000/000", "00002/0000/001", "00002/0000/002"}, first.column("trajectory_id"),
		"the newest step first")
	var all []string
	for offset := 0; offset < 24; offset += 5 {
		page := s.list(url.Values{"limit": {"5"}, "offset": {fmt.Sprint(offset)}, "sort": {"-reward"}})
		require.EqualValues(t, 24, page.Summary.Count, "of all pages")
		all = append(all, page.column("trajectory_id")...)
	}
	require.EqualValues(t, 24, s.list(url.Values{"offset": {"24"}}).Summary.Count, "also behind the end")
	for i, id := range all {
		require.EqualValues(t, i, s.list(url.Values{"sort": {"-reward"}, "find": {id}}).Place, id)
	}
	require.Nil(t, s.list(url.Values{"step": {"1"}, "find": {"00002/0000/000"}}).Place, "the filter leaves it out")
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), 24, "each trajectory is on one page")
	require.Equal(t, "00001/0000/000", all[0], "equal rewards keep the record's order")
	byID := s.list(url.Values{"sort": {"trajectory_id"}}).column("trajectory_id")
	require.Equal(t, slices.Sorted(slices.Values(byID)), byID)
}

// A question that cannot be answered is told what is wrong with it.
func TestBadQuestions(t *testing.T) {
	s := serve(t, train(t, recordtest.Options{}), "r")
	s.complete(2)
	const drop = "where=true))+select+1%3B+drop+table+all_trajectories%3B+with+x+as+(select+(1"
	for path, want := range map[string]string{
		"trajectories?step=x":                  `step: "x" is neither a number nor a range such as 3-7`,
		"trajectories?step=5-3":                `step: "5-3"`,
		"trajectories?min=much":                `min: "much" is not a number`,
		"trajectories?sort=beauty":             `sort: there is no column "beauty"`,
		"trajectories?offset=-1":               `offset: "-1" is not a number ≥ 0`,
		"trajectories?where=beauty":            `Referenced column "beauty" not found`,
		"trajectories?where=1)+or+(1":          "",
		"trajectories?where=1%3B+drop+table+x": "cannot hold table",

		"trajectories?where=exists(from+read_text('/etc/hosts'))": "cannot call exists",

		"trajectories?" + drop: "cannot hold select",

		"trajectory?id=00009/0000/000": `trajectory "00009/0000/000" is not among the finished steps`,
		"group?id=00009/0000":          `group "00009/0000" is not among the finished steps`,
	} {
		var out struct{ Error string }
		status := s.ask(path, &out)
		if want == "" {
			require.Equal(t, http.StatusOK, status, path)
			continue
		}
		require.Contains(t, out.Error, want, path)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, status, path)
	}
	require.EqualValues(t, 24, s.list(nil).Summary.Count, "nothing was dropped")
}

func TestCloseup(t *testing.T) {
	s := serve(t, train(t, recordtest.Options{Outputs: true}), "r")
	s.complete(2)
	var c view.Closeup
	require.Equal(t, http.StatusOK, s.ask("trajectory?id=00001/0000/000", &c))
	require.Len(t, c.Group, recordtest.Samples)
	require.Len(t, c.Turns, 2)
	require.Len(t, c.Turns[0].Calls, 1)
	require.Equal(t, "ok", c.Turns[0].Calls[0].Status)
	require.NotNil(t, c.Advantage)
	require.EqualValues(t, "kept", c.Row["fate"])
	require.NotContains(t, c.Row, "text")
	for _, turn := range c.Turns {
		require.Len(t, turn.Pieces.Written, len(turn.Pieces.Text))
		require.Len(t, turn.Pieces.Mask, len(turn.Pieces.Text))
	}
	var group []view.Closeup
	require.Equal(t, http.StatusOK, s.ask("group?id=00001/0000", &group))
	require.Len(t, group, recordtest.Samples)
	require.Equal(t, c, group[0])
}

// A trajectory whose shard was skipped has no turns, and says why.
func TestExcluded(t *testing.T) {
	broken := schema.TrajectoryID(1, 0, 0)
	s := serve(t, train(t, recordtest.Options{Skipped: 2, Broken: map[string]string{broken: "engine: lost"}}), "r")
	s.complete(2)
	l := s.list(url.Values{"where": {"excluded is not null"}, "sort": {"trajectory_id"}})
	require.EqualValues(t, 5, l.Summary.Count)
	require.Equal(t, broken, l.column("trajectory_id")[0])
	var c view.Closeup
	require.Equal(t, http.StatusOK, s.ask("trajectory?id="+l.column("trajectory_id")[1], &c))
	require.Contains(t, c.Row["excluded"], "shard 1 was skipped")
	require.Empty(t, c.Turns)
	require.Equal(t, http.StatusOK, s.ask("trajectory?id="+broken, &c))
	require.Equal(t, "engine: lost", c.Turns[0].Broken)
}

// The page names each of its scripts, so that the browser asks for all of them at once, and its style sheet holds all
// parts.
func TestAssets(t *testing.T) {
	s := serve(t, train(t, recordtest.Options{}), "r")
	get := func(path string) string {
		answer, err := s.client.Get(s.url + path)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		return string(text)
	}
	page, style := get("/r/"), get("/assets/style.css")
	files, err := os.ReadDir("assets")
	require.NoError(t, err)
	for _, f := range files {
		switch filepath.Ext(f.Name()) {
		case ".js":
			require.Contains(t, page, `"/assets/`+f.Name()+`"`)
			require.NotEmpty(t, get("/assets/"+f.Name()))
		case ".css":
			text, err := os.ReadFile(filepath.Join("assets", f.Name()))
			require.NoError(t, err)
			require.Contains(t, style, string(text))
		}
	}
}

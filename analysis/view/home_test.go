package view_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// read fetches a page.
func (s *served) read(path string) (status int, text string) {
	s.t.Helper()
	answer, err := s.client.Get(s.url + path)
	require.NoError(s.t, err)
	data, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Body.Close())
	return answer.StatusCode, string(data)
}

// One server shows the list of runs, each of them, several side by side, and problems across them.
func TestHome(t *testing.T) {
	objects := mem.New()
	for i, run := range []string{"a", "b"} {
		recordtest.Train(t, objects, recordtest.Options{Run: run, Seed: uint64(i + 1), Steps: 2, Episodes: true,
			Created: "2026-01-02T03:04:05Z"})
	}
	s := serve(t, objects, "a")
	s.complete(2)
	require.Equal(t, "http://127.0.0.1:8233/workflows/a", s.viewer.State().Workflow)

	status, text := s.read("/?run=b")
	require.Equal(t, http.StatusOK, status)
	for _, want := range []string{`<a href="/a/">a</a>`, `<a href="/b/">b</a>`,
		`value="b" aria-label="choose b" checked>`, `<a href="http://127.0.0.1:8233/workflows/b">Temporal</a>`} {
		require.Contains(t, text, want)
	}
	status, text = s.read("/b/api/state") // not asked for before
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `"run":"b"`)
	status, text = s.read("/compare?run=a&run=b")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "<b>B</b> b")

	problem := s.list(url.Values{"limit": {"1"}, "step": {"1"}, "sort": {"trajectory_id"}})
	one := struct{ Row map[string]any }{}
	require.Equal(t, http.StatusOK, s.ask("trajectory?id="+problem.column("trajectory_id")[0], &one))
	id, _ := one.Row["problem_id"].(string)
	require.NotEmpty(t, id)
	tried, solved := 0, 0
	here := s.list(url.Values{"where": {"problem_id = '" + id + "'"}, "step": {"1"}})
	for _, x := range here.column("success") {
		tried++
		if x == "true" {
			solved++
		}
	}
	status, text = s.read("/problems?" + url.Values{"run": {"a", "b"}, "problem": {id}}.Encode())
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "<td>step 1</td>")
	require.Contains(t, text, "<td>step 1</td><td><a href=\"/a/?step=1&amp;where=problem_id")
	require.Regexp(t, fmt.Sprintf(`<td>step 1</td><td><a [^>]*>\d+%% \(%d of %d\)</a></td>`, solved, tried), text)
	status, text = s.read("/problems?run=a&run=b")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, url.QueryEscape(id))

	for path, want := range map[string]int{"/c/": http.StatusNotFound, "/compare?run=a": http.StatusBadRequest,
		"/problems": http.StatusBadRequest, "/problems?run=gone": http.StatusNotFound, "/A B/": http.StatusBadRequest,
		"/favicon.ico": http.StatusNoContent} {
		status, text := s.read(path)
		require.Equal(t, want, status, "%s: %s", path, text)
	}
}

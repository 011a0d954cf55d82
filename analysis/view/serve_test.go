package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// served is a viewer that a test asks over HTTP.
type served struct {
	t      *testing.T
	viewer *view.Viewer
	url    string // of the server
	client *http.Client
}

const token = "the-token-of-the-link"

// serve serves a run of a store, whose record is followed every few milliseconds.
func serve(t *testing.T, objects store.Store, run string) *served {
	t.Helper()
	home := view.NewHome(view.Options{Record: analysis.New(objects), Every: 20 * time.Millisecond,
		Workflow: func(run string) string { return "http://127.0.0.1:8233/workflows/" + run }})
	v, err := home.Viewer(t.Context(), run)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- home.Serve(ctx, listener, token) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, home.Close())
	})
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	s := &served{t: t, viewer: v, url: "http://" + listener.Addr().String(), client: &http.Client{Jar: jar}}
	answer, err := s.client.Get(s.link(""))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	return s
}

// link is an address below the run's page, with the token.
func (s *served) link(query string) string {
	if query != "" {
		query += "&"
	}
	return s.url + "/" + s.viewer.State().Run.Run + "/?" + query + "token=" + token
}

// complete waits until the index holds so many steps and nothing is missing.
func (s *served) complete(steps int) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		state, changed := s.viewer.Changed()
		if state.Complete && len(state.Steps) >= steps {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Until(end)):
			require.FailNow(s.t, "the index is not complete", "%+v", s.viewer.State())
		}
	}
}

// ask asks a question and decodes the answer.
func (s *served) ask(path string, into any) int {
	s.t.Helper()
	answer, err := s.client.Get(s.url + "/" + s.viewer.State().Run.Run + "/api/" + path)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, answer.Body.Close()) }()
	require.NoError(s.t, json.NewDecoder(answer.Body).Decode(into))
	return answer.StatusCode
}

type list struct {
	Columns []string
	Rows    [][]any
	Summary *struct{ Count, Reward, Success, Kept any }
	Place   any
	Error   string
}

// list asks for a list by its filter.
func (s *served) list(q url.Values) list {
	s.t.Helper()
	var out list
	s.ask("trajectories?"+q.Encode(), &out)
	return out
}

// column is one column of the rows, as text.
func (l list) column(name string) (out []string) {
	i := slices.Index(l.Columns, name)
	for _, row := range l.Rows {
		out = append(out, fmt.Sprint(row[i]))
	}
	return out
}

// train commits a run of two steps.
func train(t *testing.T, o recordtest.Options) *mem.Store {
	t.Helper()
	objects := mem.New()
	o.Run, o.Seed, o.Created = "r", 1, "2026-01-02T03:04:05Z"
	if o.Steps == 0 {
		o.Steps = 2
	}
	recordtest.Train(t, objects, o)
	return objects
}

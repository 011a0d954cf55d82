package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"time"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/view"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/store/folder"
)

// questions are the filters and orders that are measured, as the page asks them.
var questions = map[string]url.Values{
	"no filter":            {},
	"steps":                {"step": {"20-60,150"}},
	"level":                {"level": {"3"}},
	"reward":               {"min": {"0.5"}},
	"status of a call":     {"status": {"runtime_error"}},
	"reason dropped":       {"fate": {"zero_variance"}},
	"text, 1 of 9":         {"q": {"BOXED{1"}},
	"text, none":           {"q": {"nowhere to be found"}},
	"SQL":                  {"where": {"turns > 1 and group_variance > 0.2 and text like '%answer%'"}},
	"sorted by reward":     {"sort": {"-reward"}},
	"sorted by problem":    {"sort": {"problem"}},
	"all together":         {"step": {"1-150"}, "level": {"2,4"}, "min": {"1"}, "q": {"answer"}, "sort": {"-tokens"}},
	"row 90,000 by reward": {"sort": {"reward"}, "offset": {"90000"}},
}

// server is a viewer and where it answers.
type server struct {
	viewer *view.Viewer
	link   string // with the token
	api    string
	close  func() error
}

// serve opens a viewer and serves it, as the command does.
func serve(ctx context.Context, root string) (s *server, err error) {
	home := view.NewHome(view.Options{Record: analysis.New(folder.New(root)), Messages: os.Stderr})
	v, err := home.Viewer(ctx, runName)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, home.Close())
	}
	token := view.NewToken()
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- home.Serve(ctx, listener, token) }()
	return &server{viewer: v, link: home.Link(listener.Addr(), runName, token),
		api: "http://" + listener.Addr().String() + "/" + runName + "/api/",
		close: func() error {
			stop()
			return errors.Join(<-served, home.Close())
		}}, nil
}

// overHTTP opens one viewer and asks it each question.
func overHTTP(ctx context.Context, root string, steps int, found map[string][]float64) (err error) {
	note := func(name string, d time.Duration) { found[name] = append(found[name], bench.Milliseconds(d)) }
	began, used := time.Now(), bench.ProcessorTime()
	s, err := serve(ctx, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	client, err := s.client()
	if err != nil {
		return err
	}
	for have := -1; have < steps; {
		state, changed := s.viewer.Changed()
		if len(state.Steps) == 0 || len(state.Steps) == have {
			<-changed
			continue
		}
		if _, err := get(ctx, client, s.api+"trajectories"); err != nil {
			return err
		}
		if have < 0 {
			note("open: first rows", time.Since(began))
		}
		have = len(state.Steps)
	}
	note("open: all rows", time.Since(began))
	note("open: all rows, processor time of all processors", bench.ProcessorTime()-used)
	for name, q := range questions {
		took, err := get(ctx, client, s.api+"trajectories?"+q.Encode())
		if err != nil {
			return fmt.Errorf("ask for %s: %w", name, err)
		}
		note("ask: "+name, took)
	}
	return nil
}

// client returns a client that the server knows.
func (s *server) client() (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	known := &http.Client{Jar: jar}
	_, err = get(context.Background(), known, s.link)
	return known, err
}

// get reads an answer and returns how long that took.
func get(ctx context.Context, client *http.Client, address string) (time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(answer.Body)
	took := time.Since(began)
	if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return took, err
}

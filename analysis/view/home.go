package view

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/schema"
)

// GCPercent is the setting of Go's garbage collector (debug.SetGCPercent) for a program that serves runs. Reading a run
// makes much garbage and leaves little, since the list is in DuckDB's memory; a run then opens in three quarters of the
// time.
const GCPercent = 400

// Home serves the runs of a store: the list of them, several side by side, their problems, and the page of each. A run
// is followed from when it is first asked for until Close. It is safe for concurrent use.
type Home struct {
	options Options
	mu      sync.Mutex
	opened  map[string]*opened
	follows sync.WaitGroup
}

// opened is a run that is followed.
type opened struct {
	viewer  *Viewer
	handler http.Handler
	stop    context.CancelFunc
}

// NewHome makes a home for the runs of a store. The caller closes it.
func NewHome(o Options) *Home { return &Home{options: o, opened: map[string]*opened{}} }

// Viewer returns the viewer of a run, and follows the run from now on.
func (h *Home) Viewer(ctx context.Context, run string) (*Viewer, error) {
	at, err := h.open(ctx, run)
	if err != nil {
		return nil, err
	}
	return at.viewer, nil
}

func (h *Home) open(ctx context.Context, run string) (*opened, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.opened[run]; at != nil {
		return at, nil
	}
	if err := schema.CheckRunID(run); err != nil {
		return nil, badinput.Of(err)
	}
	v, err := open(ctx, h.options, run)
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.follows.Go(func() { v.Follow(following) })
	h.opened[run] = &opened{viewer: v, handler: http.StripPrefix("/"+run, v.handler()), stop: stop}
	return h.opened[run], nil
}

// Close ends what is followed.
func (h *Home) Close() (err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range h.opened {
		at.stop()
	}
	h.follows.Wait()
	for _, at := range h.opened {
		err = errors.Join(err, at.viewer.close())
	}
	return err
}

// Link is the address of a run's page where it is served, with the token that lets its reader in; that of the list of
// runs if run is empty.
func (h *Home) Link(at net.Addr, run, token string) string {
	link := url.URL{Scheme: "http", Host: at.String(), Path: "/",
		RawQuery: url.Values{tokenKey: {token}}.Encode()}
	if run != "" {
		link.Path = "/" + run + "/"
	}
	return link.String()
}

// Serve answers who holds the token at a listener, which it closes, until the context ends.
func (h *Home) Serve(ctx context.Context, listener net.Listener, token string) error {
	guard, err := GuardFor(listener.Addr(), token)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	server := http.Server{Handler: guard.Wrap(h.Handler()), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return serving }}
	end := context.AfterFunc(ctx, func() { server.Close() })
	defer end()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the pages: %w", err)
	}
	return nil // the context has ended
}

// Handler answers the pages:
//
//	/                             the list of runs
//	/compare?run=A&run=B          runs side by side: the report about them
//	/problems?run=A&run=B         how often each of their problems was solved
//	/problems?run=A&problem=P     one problem step by step
//	/RUN/                         a run's page, and below it what it asks for
func (h *Home) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page("runs", h.runs))
	mux.HandleFunc("GET /problems", page("problems", h.problems))
	mux.HandleFunc("GET /compare", h.compare)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})
	mux.Handle("GET /assets/", assetsHandler())
	mux.HandleFunc("GET /{run}/", func(w http.ResponseWriter, r *http.Request) {
		at, err := h.open(r.Context(), r.PathValue("run"))
		if err != nil {
			refuse(w, r, err)
			return
		}
		at.handler.ServeHTTP(w, r)
	})
	return mux
}

// runsOf reads the names of runs in a question.
func runsOf(q url.Values) ([]string, error) {
	if len(q["run"]) == 0 {
		return nil, badinput.Errorf("choose runs in the list of runs")
	}
	return q["run"], nil
}

// compare answers the report about several runs. It has its own style sheet, and no script.
func (h *Home) compare(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), longest)
	defer cancel()
	names, err := runsOf(r.URL.Query())
	if err == nil && len(names) < 2 {
		err = badinput.Errorf("choose two runs or more")
	}
	var about *report.ComparisonPage
	if err == nil {
		about, err = report.GatherComparison(ctx, h.options.Record, names)
	}
	if err != nil {
		refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", strings.Replace(policy, "style-src 'self'", "style-src 'unsafe-inline'",
		1))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = about.WriteHTML(w) // the browser has gone otherwise
}

// refuse says why there is no page.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, text := failure(r.Context(), err)
	http.Error(w, text, status)
}

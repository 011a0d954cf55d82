package view

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/report"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/badinput"
)

//go:embed assets
var assets embed.FS

// style is the page's style sheet: the report's, and what that lacks.
var style = func() string {
	parts := []string{report.Style()}
	for _, name := range []string{"page", "filters", "list", "closeup", "overlays", "home"} {
		text, err := assets.ReadFile("assets/" + name + ".css")
		if err != nil {
			panic(err) // the folder is embedded above
		}
		parts = append(parts, string(text))
	}
	return strings.Join(parts, "\n")
}()

// longest bounds the time of one question, so that the reader's SQL cannot keep the machine busy.
const longest = 20 * time.Second

// assetsHandler answers what the pages load.
func assetsHandler() http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	mux := http.NewServeMux()
	mux.Handle("/assets/", http.StripPrefix("/assets/", http.FileServerFS(files)))
	mux.HandleFunc("/assets/style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = io.WriteString(w, style) // the browser has gone otherwise
	})
	return mux
}

// handler answers a run's page and its questions:
//
//	/                         the page
//	/api/state, /api/events   the state, once or at each change
//	/api/trajectories?…       a page of a list
//	/api/trajectory?id=…      a close-up
//	/api/group?id=…           all close-ups of a group
//	/api/figures              the report's figures
//	/api/columns              what the reader's SQL can name
func (v *Viewer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, assets, "assets/page.html")
	})
	mux.HandleFunc("GET /api/events", v.events)
	for path, answer := range map[string]func(context.Context, url.Values) (any, error){
		"state":   func(context.Context, url.Values) (any, error) { return v.State(), nil },
		"columns": func(context.Context, url.Values) (any, error) { return Columns(), nil },
		"trajectories": func(ctx context.Context, q url.Values) (any, error) {
			f, err := ParseFilter(q)
			if err != nil {
				return nil, badinput.Of(err)
			}
			p, err := parsePage(q)
			if err != nil {
				return nil, badinput.Of(err)
			}
			return v.List(ctx, f, p)
		},
		"trajectory": func(ctx context.Context, q url.Values) (any, error) { return v.Closeup(ctx, q.Get("id")) },
		"group":      func(ctx context.Context, q url.Values) (any, error) { return v.Group(ctx, q.Get("id")) },
		"figures":    func(ctx context.Context, _ url.Values) (any, error) { return v.Figures(ctx) },
	} {
		mux.HandleFunc("GET /api/"+path, answered(answer))
	}
	return mux
}

// answered answers a question with JSON.
func answered(answer func(context.Context, url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), longest)
		defer cancel()
		out, err := answer(ctx, r.URL.Query())
		status := http.StatusOK
		if err != nil {
			var why string
			status, why = failure(r.Context(), err)
			out = map[string]string{"error": why}
		}
		text, err := json.Marshal(out)
		if err != nil {
			status, text = http.StatusInternalServerError, fmt.Appendf(nil, `{"error":%q}`, err.Error())
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(text) // the browser has gone otherwise
	}
}

// failure is the status and the text of a question without an answer.
func failure(ctx context.Context, err error) (status int, text string) {
	status, text = http.StatusInternalServerError, err.Error()
	var bad badinput.Error
	switch {
	case errors.As(err, &bad), errors.Is(err, sql.ErrQuery):
		status, text = http.StatusBadRequest, strings.TrimPrefix(text, sql.ErrQuery.Error()+": ")
	case errors.Is(err, errNoTrajectory), errors.Is(err, analysis.ErrNoRun):
		status = http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		status = http.StatusServiceUnavailable
		text += fmt.Sprintf("; an answer takes at most %s: ask for less", longest)
	}
	return status, text
}

// events sends the state at each change, as server-sent events, and now and then a comment that keeps the connection.
func (v *Viewer) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		state, changed := v.Changed()
		text, err := json.Marshal(state)
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || out.Flush() != nil {
			return
		}
		for again := false; !again; {
			select {
			case <-r.Context().Done():
				return
			case <-changed:
				again = true
			case <-time.After(15 * time.Second):
				if _, err := fmt.Fprint(w, ": still here\n\n"); err != nil || out.Flush() != nil {
					return
				}
			}
		}
	}
}

package service

import (
	"crypto/subtle"
	_ "embed"
	"net/http"
	"strings"
)

//go:embed openapi.json
var openAPI []byte

// traceHeader carries the trace if the request's body names none. The response repeats it.
const traceHeader = "X-Trace-Id"

// route is one method and path of openapi.json.
type route struct {
	method, path string
	serve        func(*Service, http.ResponseWriter, *http.Request)
	open         bool // needs no token
}

// routes returns everything that the service answers over HTTP.
func routes() []route {
	return []route{
		{"POST", "/v1/run", (*Service).serveRun, false},
		{"POST", "/v1/batch", (*Service).serveBatch, false},
		{"POST", "/v1/sessions", (*Service).serveOpen, false},
		{"POST", "/v1/sessions/{id}/run", (*Service).serveCell, false},
		{"DELETE", "/v1/sessions/{id}", (*Service).serveClose, false},
		{"GET", "/healthz", (*Service).serveHealth, true},
		{"GET", "/metrics", func(s *Service, w http.ResponseWriter,
			r *http.Request) {
			s.metrics.handler().ServeHTTP(w, r)
		}, false},
		{"GET", "/openapi.json", serveOpenAPI, true},
		{"POST", "/run_code", (*Service).serveFusion, false},
		{"POST", "/run_jupyter", (*Service).serveJupyter, false},
		{"GET", "/v1/ping", servePong, true},
		{"POST", "/judge", (*Service).serveJudge, false},
		{"POST", "/run", (*Service).serveJudgeRun, false},
		{"POST", "/judge/batch", (*Service).serveJudgeBatch, false},
		{"POST", "/run/batch", (*Service).serveJudgeRunBatch, false},
		{"POST", "/judge/long-batch", (*Service).serveJudgeLongBatch, false},
		{"POST", "/run/long-batch", (*Service).serveJudgeRunLongBatch, false},
		{"GET", "/ping", servePong, true},
		{"GET", "/status", (*Service).serveJudgeStatus, false},
	}
}

// Handler returns the HTTP interface.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
			if !r.open && !s.admits(req.Header.Get("Authorization")) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				refuse(w, httpError{http.StatusUnauthorized,
					ErrorDetail{kindUnauthorized, "", "the request has no valid token"}})
				return
			}
			r.serve(s, w, req)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		refuse(w, httpError{http.StatusNotFound,
			ErrorDetail{kindNotFound, "", "there is nothing at " + req.URL.Path + "; /openapi.json lists all paths"}})
	})
	return mux
}

// admits checks a token in constant time.
func (s *Service) admits(authorization string) bool {
	if s.o.Token == "" {
		return true
	}
	token, bears := strings.CutPrefix(authorization, "Bearer ")
	return bears && subtle.ConstantTimeCompare([]byte(token), []byte(s.o.Token)) == 1
}

func serveOpenAPI(_ *Service, w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Write(openAPI)
}

func servePong(_ *Service, w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, "pong") }

func (s *Service) serveHealth(w http.ResponseWriter, _ *http.Request) {
	jobs, bytes := s.queue.depth()
	body := HealthBody{Status: "ok", Tier: string(s.tier()), Workers: s.workers, QueuedCalls: jobs, QueuedBytes: bytes,
		Sessions: s.sessions.count()}
	code := http.StatusOK
	if s.Draining() {
		code, body.Status = http.StatusServiceUnavailable, "draining"
	}
	respond(w, code, body)
}

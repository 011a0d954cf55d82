package service

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPI []byte

// traceHeader carries the trace if the request's body names none. The response repeats it.
const traceHeader = "X-Trace-Id"

// route is one method and path of openapi.json.
type route struct {
	method, path string
	serve        func(*Service, http.ResponseWriter, *http.Request)
	needs        need
}

// need is what a request needs to be served.
type need int

const (
	needsNothing need = iota
	needsToken
	needsCalls // a token, whose client can have one more call
)

// routes returns everything that the service answers over HTTP.
func routes() []route {
	return []route{
		{"POST", "/v1/run", (*Service).serveRun, needsCalls},
		{"GET", "/healthz", (*Service).serveHealth, needsNothing},
		{"GET", "/metrics", func(s *Service, w http.ResponseWriter,
			r *http.Request) {
			s.metrics.handler().ServeHTTP(w, r)
		}, needsToken},
		{"GET", "/openapi.json", serveOpenAPI, needsNothing},
		{"POST", "/run_code", (*Service).serveFusion, needsCalls},
		{"GET", "/v1/ping", servePong, needsNothing},
	}
}

// Handler returns the HTTP interface.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
			if r.needs != needsNothing {
				c := s.clients.find(req.Header.Get("Authorization"))
				if c == nil {
					s.auditStranger(r.path, req.RemoteAddr)
					w.Header().Set("WWW-Authenticate", "Bearer")
					refuse(w, errStranger)
					return
				}
				req = req.WithContext(as(req.Context(), c))
				if r.needs == needsCalls {
					if err := c.admit(); err != nil {
						refuse(w, err)
						return
					}
				}
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

var errStranger = httpError{http.StatusUnauthorized,
	ErrorDetail{kindUnauthorized, "", "the request has no valid token"}}

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

package serve

import (
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/internal/loopback"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
)

// Options configure a server.
type Options struct {
	// Engine samples. The model is loaded in it under RolePolicy; the caller closes it after the server.
	Engine  policy.Batcher
	Model   *Model
	Name    string // of the model, in requests and answers
	Rows    int    // responses that are generated at once; 0 = the engine's usual number
	Tokens  int    // tokens whose keys and values are held; 0 = the engine's usual number
	Context int    // longest prompt and response together; 0 = as long as the model and Tokens permit
	Queue   int    // responses that may wait; beyond it requests get 429
	// BodyBytes bounds the body of a request.
	BodyBytes int64
	Token     string // that requests must bear; "" = none
	// ToolFormat names the form of calls; "" = the one that the model's chat template writes.
	ToolFormat string
	AllowLoad  bool // whether POST /v1/load is answered
	Log        *slog.Logger
}

// Usual bounds.
const (
	UsualQueue     = 1024
	UsualBodyBytes = 32 << 20
)

// Server answers requests. Close ends it.
type Server struct {
	o         Options
	context   int
	scheduler *scheduler
	metrics   *metrics
	made      time.Time
	draining  atomic.Bool
	ended     chan struct{}
	form      *toolcall.Form // of calls, if Options name one
}

// New makes a server of an engine that holds the model, and starts its scheduler.
func New(o Options) (*Server, error) {
	o.Queue, o.BodyBytes = cmp.Or(o.Queue, UsualQueue), cmp.Or(o.BodyBytes, UsualBodyBytes)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Server{o: o, metrics: newMetrics(), made: time.Now(), ended: make(chan struct{})}
	var err error
	if o.ToolFormat != "" {
		if s.form, err = toolcall.Named(o.ToolFormat); err != nil {
			return nil, err
		}
	}
	if s.scheduler, err = newScheduler(o, s.metrics); err != nil {
		return nil, err
	}
	s.context = min(o.Model.Shape.Positions, s.scheduler.total().Tokens)
	if o.Context > 0 {
		s.context = min(s.context, o.Context)
	}
	s.metrics.observe(s)
	go func() {
		defer close(s.ended)
		s.scheduler.run(context.Background())
	}()
	return s, nil
}

// Context is the longest prompt and response together, in tokens.
func (s *Server) Context() int { return s.context }

// Usage says what the engine's batch holds.
func (s *Server) Usage() policy.BatchUsage { return s.scheduler.total() }

// Close gives up all rows and ends the scheduler.
func (s *Server) Close() {
	s.draining.Store(true)
	s.scheduler.stop()
	<-s.ended
}

// route is one method and path.
type route struct {
	pattern string
	serve   func(*Server, http.ResponseWriter, *http.Request)
	open    bool // needs no token
}

func routes() []route {
	return []route{
		{"GET /health", (*Server).health, true},
		{"GET /metrics", (*Server).figures, false},
		{"GET /v1/models", (*Server).models, false},
		{"GET /v1/models/{name...}", (*Server).oneModel, false},
		{"POST /v1/completions", answering((*Server).completions), false},
		{"POST /v1/chat/completions", answering((*Server).chats), false},
		{"POST /v1/load", (*Server).load, false},
	}
}

// Handler returns the HTTP interface.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes() {
		_, path, _ := strings.Cut(r.pattern, " ")
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) {
			began, seen := time.Now(), &statusWriter{ResponseWriter: w}
			defer func() {
				_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // for the connection's next request
				s.metrics.request(path, seen.status, time.Since(began))
			}()
			switch foreign := loopback.Foreign(req); {
			case !r.open && !s.admits(req):
				refuse(seen, fault(http.StatusUnauthorized, typeAuth, "the request has no valid token").coded(
					"invalid_api_key"))
			case foreign != nil && s.o.Token == "":
				refuse(seen, fault(http.StatusForbidden, typeAuth, "the server has no token: %v", foreign))
			default:
				r.serve(s, seen, req)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		refuse(w, fault(http.StatusNotFound, typeNotFound, "there is no %s %.200s", req.Method, req.URL.Path))
	})
	return mux
}

// admits checks the token in constant time.
func (s *Server) admits(r *http.Request) bool {
	if s.o.Token == "" {
		return true
	}
	token, bears := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return bears && subtle.ConstantTimeCompare([]byte(token), []byte(s.o.Token)) == 1
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = cmp.Or(w.status, status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter: without a call of WriteHeader the status is 200.
func (w *statusWriter) Write(text []byte) (int, error) {
	w.status = cmp.Or(w.status, http.StatusOK)
	return w.ResponseWriter.Write(text)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Time limits of connections. A response may take as long as it takes, but a client must accept what is there.
const (
	headerLimit = 10 * time.Second
	bodyLimit   = time.Minute
	writeLimit  = 30 * time.Second // of one event, or of a whole answer
	idleLimit   = 2 * time.Minute
)

// Serve answers requests until ctx is cancelled. Then it accepts no more and finishes those that it has, for as long as
// drain at most.
func (s *Server) Serve(ctx context.Context, l net.Listener, secure *tls.Config, drain time.Duration) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer stop()
	err := server.Shutdown(ending)
	if errors.Is(err, context.DeadlineExceeded) {
		s.o.Log.Warn("requests are given up", "after", drain)
		cancel()
		err = server.Close()
	}
	return err
}

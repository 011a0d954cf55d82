package presigned

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/store/s3"
)

// Life is how long a presigned URL is valid. Content may take longer: the server looks at the time when a request
// begins.
const Life = time.Minute

// mostRequest bounds a question, in bytes: a key has at most 1,024.
const mostRequest = 16 << 10

// Client is someone who may ask a presigner.
type Client struct {
	Name   string
	Tokens [][sha256.Size]byte // SHA-256 of each of its tokens
}

// ServiceOptions configure a Service.
type ServiceOptions struct {
	Store   *s3.Store // has the credentials
	Clients []Client
	Policy  Policy
	Life    time.Duration // Life if 0; at least a second
	Log     *slog.Logger  // refusals at level warn, the rest at debug; never a URL or a token
	// Observer is told how questions were answered; nil: no one is.
	Observer Observer
}

// Service is a presigner. Safe for concurrent use.
type Service struct {
	o       ServiceOptions
	clients atomic.Pointer[[]Client]
	// stranger is the time at which a question without a valid token was last logged.
	stranger atomic.Pointer[time.Time]
}

// NewService returns a presigner.
func NewService(o ServiceOptions) *Service {
	if o.Life == 0 {
		o.Life = Life
	}
	s := &Service{o: o}
	s.SetClients(o.Clients)
	return s
}

// SetClients replaces the clients.
func (s *Service) SetClients(clients []Client) { s.clients.Store(&clients) }

// Paths of the service.
const (
	pathPresign = "/v1/presign"
	pathStore   = "/v1/store"
	pathHealth  = "/healthz"
)

// locationBody says which bucket a presigner signs for, and as whom it knows the client.
type locationBody struct {
	Endpoint string `json:"endpoint"`
	Region   string `json:"region"`
	Bucket   string `json:"bucket"`
	Client   string `json:"client"`
}

// urlBody is the answer to a question that is permitted.
type urlBody struct {
	URL string `json:"url"`
}

// errorBody is every other answer.
type errorBody struct {
	Error string `json:"error"`
}

// Handler returns the HTTP interface: POST /v1/presign takes an s3.Request, GET /v1/store names the bucket. Both need a
// client's token. GET /healthz needs none.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathPresign, s.known(s.presign))
	mux.HandleFunc("GET "+pathStore, s.known(func(w http.ResponseWriter, _ *http.Request, client string) {
		endpoint, region, bucket := s.o.Store.Location()
		respond(w, http.StatusOK, locationBody{endpoint, region, bucket, client})
	}))
	mux.HandleFunc("GET "+pathHealth, func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, struct {
			Status string `json:"status"`
		}{"ok"})
	})
	return mux
}

// known calls serve with the name of the client whose token the request bears.
func (s *Service) known(serve func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		client, ok := s.client(r.Header.Get("Authorization"))
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.logStranger(r.RemoteAddr)
			respond(w, statuses[unauthorized], errorBody{"the request has no valid token"})
			s.answered(unknown, unauthorized, began)
			return
		}
		serve(w, r, client)
	}
}

// logStranger logs a question without a valid token, and not more than one a second: anyone who reaches the port can
// ask.
func (s *Service) logStranger(address string) {
	now := time.Now()
	if last := s.stranger.Load(); last == nil || now.Sub(*last) >= time.Second {
		if s.stranger.CompareAndSwap(last, &now) {
			s.o.Log.Warn("refused", "address", address, "status", statuses[unauthorized], "error", "no valid token")
		}
	}
}

// client finds a client by its token. It takes equally long for every token.
func (s *Service) client(authorization string) (name string, ok bool) {
	token, bears := strings.CutPrefix(authorization, "Bearer ")
	given := sha256.Sum256([]byte(token))
	for _, c := range *s.clients.Load() {
		for _, own := range c.Tokens {
			if subtle.ConstantTimeCompare(own[:], given[:]) == 1 {
				name, ok = c.Name, bears
			}
		}
	}
	return name, ok
}

func (s *Service) presign(w http.ResponseWriter, r *http.Request, client string) {
	began := time.Now()
	var asked s3.Request
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostRequest))
	body.DisallowUnknownFields()
	if err := body.Decode(&asked); err != nil {
		respond(w, statuses[malformed], errorBody{"the question is no request in JSON: " + err.Error()})
		s.answered(unknown, malformed, began)
		return
	}
	operation, err := asked.Operation()
	if err != nil {
		s.refuse(w, client, malformed, err)
		s.answered(unknown, malformed, began)
		return
	}
	address, o, err := s.sign(r.Context(), client, operation, asked)
	if err != nil {
		s.refuse(w, client, o, err)
	} else {
		s.o.Log.Debug("presigned", "client", client, "operation", string(operation), "key", asked.Target())
		respond(w, http.StatusOK, urlBody{address})
	}
	s.answered(operation, o, began)
}

// sign returns the URL for a request, or why there is none.
func (s *Service) sign(ctx context.Context, client string, operation s3.Operation,
	asked s3.Request) (string, outcome, error) {
	if !s.o.Policy.Permits(operation, asked.Target()) {
		return "", forbidden, fmt.Errorf("client %s may not %s %s", client, operation, asked.Target())
	}
	address, err := s.o.Store.Presign(ctx, asked, s.o.Life)
	if err != nil {
		return "", failed, err
	}
	return address, signed, nil
}

func (s *Service) refuse(w http.ResponseWriter, client string, o outcome, err error) {
	status := statuses[o]
	s.o.Log.Warn("refused", "client", client, "status", status, "error", err)
	respond(w, status, errorBody{err.Error()})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has left needs no answer
}

// Serve answers on a listener until ctx ends, then finishes the questions that it has.
func (s *Service) Serve(ctx context.Context, listener net.Listener, secure *tls.Config) error {
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	server := &http.Server{Handler: s.Handler(), ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelInfo)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve presigned URLs: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("serve presigned URLs: %w", err)
	}
	return server.Close()
}

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
	Log     *slog.Logger  // refusals at level warn, the rest at debug; never a URL
}

// Service is a presigner. Safe for concurrent use.
type Service struct {
	o       ServiceOptions
	clients atomic.Pointer[[]Client]
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
		client, ok := s.client(r.Header.Get("Authorization"))
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			respond(w, http.StatusUnauthorized, errorBody{"the request has no valid token"})
			return
		}
		serve(w, r, client)
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
	var asked s3.Request
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostRequest))
	body.DisallowUnknownFields()
	if err := body.Decode(&asked); err != nil {
		respond(w, http.StatusBadRequest, errorBody{"the question is no request in JSON: " + err.Error()})
		return
	}
	operation, err := asked.Operation()
	if err != nil {
		s.refuse(w, client, http.StatusBadRequest, err)
		return
	}
	if !s.o.Policy.Permits(operation, asked.Target()) {
		s.refuse(w, client, http.StatusForbidden, fmt.Errorf("client %s may not %s %s", client, operation,
			asked.Target()))
		return
	}
	address, err := s.o.Store.Presign(r.Context(), asked, s.o.Life)
	if err != nil {
		s.refuse(w, client, http.StatusInternalServerError, err)
		return
	}
	s.o.Log.Debug("presigned", "client", client, "operation", string(operation), "key", asked.Target())
	respond(w, http.StatusOK, urlBody{address})
}

func (s *Service) refuse(w http.ResponseWriter, client string, status int, err error) {
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

package metrics

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Process is what one process tells Prometheus. Make one with New.
type Process struct {
	registry *prometheus.Registry
	// Parts are registered when they are first asked for, so that a process shows only what it counts.
	stages   func() *Stages
	requests func() *Requests
	engines  func() *Engines
}

// New returns the metrics of a process of a kind, such as worker or monitor. program is the digest of the
// program, and version what it was built from.
func New(kind, program, version string) *Process {
	p := &Process{registry: prometheus.NewRegistry()}
	p.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ropewalk_process_info", Help: "1, labelled with the kind of process and its build.",
			ConstLabels: prometheus.Labels{"kind": kind, "program": program, "version": version},
		}, func() float64 { return 1 }))
	p.stages = sync.OnceValue(func() *Stages { return newStages(p.registry) })
	p.requests = sync.OnceValue(func() *Requests { return newRequests(p.registry) })
	p.engines = sync.OnceValue(func() *Engines { return newEngines(p.registry) })
	return p
}

// Stages counts the executions of stages. A nil Process has nil parts, which count nothing.
func (p *Process) Stages() *Stages {
	if p == nil {
		return nil
	}
	return p.stages()
}

// Requests counts the requests of the object store.
func (p *Process) Requests() *Requests {
	if p == nil {
		return nil
	}
	return p.requests()
}

// Engines counts the time in which engines work.
func (p *Process) Engines() *Engines {
	if p == nil {
		return nil
	}
	return p.engines()
}

// Register adds a collector of another package.
func (p *Process) Register(c prometheus.Collector) error {
	if p == nil {
		return nil
	}
	if err := p.registry.Register(c); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Handler answers GET /metrics.
func (p *Process) Handler() http.Handler {
	return promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{})
}

// Server serves a Process over HTTP. Close it.
type Server struct {
	server   *http.Server
	listener net.Listener
	serving  sync.WaitGroup
}

// Serve listens on address, where port 0 takes a free one, and answers GET /metrics there.
func (p *Process) Serve(address string) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.Handler())
	s := &Server{server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, listener: listener}
	s.serving.Go(func() { _ = s.server.Serve(listener) }) // ends only with Close
	return s, nil
}

// URL is where the metrics are.
func (s *Server) URL() string { return fmt.Sprintf("http://%s/metrics", s.listener.Addr()) }

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.server.Close()
	s.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

package serve

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// health answers GET /health.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	_, broken := s.scheduler.current()
	code, status := http.StatusOK, "ok"
	switch {
	case broken != nil:
		code, status = http.StatusServiceUnavailable, "failed"
	case s.draining.Load():
		code, status = http.StatusServiceUnavailable, "draining"
	}
	respond(w, code, map[string]string{"status": status})
}

// modelEntry is an entry of GET /v1/models.
type modelEntry struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Created  int64  `json:"created"`
	Owner    string `json:"owned_by"`
	Length   int    `json:"max_model_len"`
	Ropewalk struct {
		Weights      string              `json:"weights"`
		Capabilities policy.Capabilities `json:"capabilities"`
		Tokens       int                 `json:"tokens"`         // whose keys and values are held
		Rows         int                 `json:"rows,omitempty"` // responses that are generated at once; 0 = the engine's usual number
	} `json:"ropewalk"`
}

func (s *Server) entry() modelEntry {
	e := modelEntry{ID: s.o.Name, Object: "model", Created: s.made.Unix(), Owner: "ropewalk", Length: s.context}
	e.Ropewalk.Weights, _ = s.scheduler.current()
	e.Ropewalk.Capabilities = s.Capabilities()
	e.Ropewalk.Tokens, e.Ropewalk.Rows = s.Usage().Tokens, s.o.Rows
	return e
}

// Capabilities are those of the engine, as far as the API offers them.
func (s *Server) Capabilities() policy.Capabilities {
	c := s.o.Engine.Capabilities()
	c.TopLogProbs, c.PrefixCache, c.Weights = mostTop, true, policy.WeightsFixed
	if s.o.AllowLoad {
		c.Weights = policy.WeightsReload
	}
	return c
}

// models answers GET /v1/models.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, map[string]any{"object": "list", "data": []modelEntry{s.entry()}})
}

// oneModel answers GET /v1/models/NAME.
func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("name") != s.o.Name {
		refuse(w, fault(http.StatusNotFound, typeNotFound, "there is no model %.200q; this server has %q",
			r.PathValue("name"), s.o.Name).coded("model_not_found"))
		return
	}
	respond(w, http.StatusOK, s.entry())
}

// load answers POST /v1/load: it loads the weights of a folder that the server sees.
func (s *Server) load(w http.ResponseWriter, r *http.Request) {
	if !s.o.AllowLoad {
		refuse(w, fault(http.StatusForbidden, typeAuth, "this server loads no other weights (--allow-load)").coded(
			"load_disabled"))
		return
	}
	f, failed := readFields(w, r, s.o.BodyBytes)
	if failed != nil {
		refuse(w, failed)
		return
	}
	var path, digest string
	if !f.read("path", &path, "a text") || !filepath.IsAbs(path) {
		f.fail(invalid("path", "must be the absolute path of a checkpoint's folder"))
	}
	f.read("digest", &digest, "a text")
	f.checkModel(s.o.Name)
	f.ignore("model")
	if err := f.done(); err != nil {
		refuse(w, err)
		return
	}
	began := time.Now()
	if err := s.scheduler.replace(r.Context(), path, func() error { return s.checkFolder(path, digest) }); err != nil {
		if r.Context().Err() == nil {
			refuse(w, loadError(err))
		}
		return
	}
	s.metrics.loads.Inc()
	weights, _ := s.scheduler.current()
	respond(w, http.StatusOK, map[string]any{
		"model": s.o.Name, "seconds": time.Since(began).Seconds(), "ropewalk": weightsNote{weights},
	})
}

// checkFolder checks that a folder holds the weights that are named, of a model that can replace the served one.
func (s *Server) checkFolder(path, digest string) error {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return errors.Join(err, invalid("path", "is no folder that the server sees"))
	}
	if digest != "" {
		got, err := checkpoint.Digest(path)
		if err != nil {
			return invalid("path", "%v", err)
		}
		if got != digest {
			e := invalid("digest", "the folder's digest is %s", got).coded("digest_mismatch")
			e.status = http.StatusConflict
			return e
		}
	}
	m, err := ReadModel(path)
	if err != nil {
		return invalid("path", "%v", err)
	}
	if err := s.o.Model.sameTexts(m); err != nil {
		return invalid("path", "%v", err)
	}
	return nil
}

// loadError is what a client is told of a load that failed.
func loadError(err error) *apiError {
	if errors.As(err, new(*apiError)) || errors.Is(err, policy.ErrLost) || errors.Is(err, policy.ErrOutOfMemory) {
		return asAPI(err)
	}
	return invalid("path", "%v", err)
}

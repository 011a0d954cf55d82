package tinker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/internal/openai"
)

// session is this process at the server.
type session struct {
	*link
	id     string
	lora   LoRA
	models int          // made so far
	rows   atomic.Int64 // responses that were asked for
	end    context.CancelFunc
	beats  sync.WaitGroup
}

// beatEvery is the time between heartbeats. Servers forget sessions without any after minutes.
const beatEvery = 10 * time.Second

// connect begins a session. The caller ends it.
func connect(ctx context.Context, l *link, o Options) (*session, error) {
	var made struct {
		Session string `json:"session_id"`
		Error   string `json:"error_message"`
	}
	body := map[string]any{"tags": []string{"ropewalk"}, "sdk_version": protocol, "type": "create_session"}
	if err := l.post(ctx, "api/v1/create_session", body, &made, repeatable); err != nil {
		return nil, err
	}
	switch {
	case made.Error != "":
		return nil, l.fault("it begins no session: %s", shorten(made.Error))
	case made.Session == "":
		return nil, l.fault("its reply to api/v1/create_session names no session_id")
	}
	beating, end := context.WithCancel(context.Background())
	s := &session{link: l, id: made.Session, lora: o.LoRA, end: end}
	s.beats.Go(func() { s.beat(beating, cmp.Or(o.Beat, beatEvery)) })
	return s, nil
}

// protocol is the version of the API's client whose requests are sent.
const protocol = "0.3.0"

// beat keeps the session alive. What makes a heartbeat fail shows in the next request; the first of several failures is
// told.
func (s *session) beat(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.once(ctx, openai.Call{Method: "POST", Path: "api/v1/session_heartbeat",
			Body: map[string]any{"session_id": s.id, "type": "session_heartbeat"}, Limit: beatEvery}, nil)
		if err != nil && ctx.Err() == nil && !failing {
			slog.Warn("a heartbeat of a Tinker session failed", "server", s.Name(), "error", err)
		}
		failing = err != nil
	}
}

// model is an adapter at the server.
type model struct {
	id  string
	seq int64 // of the last request that names it
	// dirty says that the server holds gradients that belong to no step.
	dirty bool
}

func (m *model) next() int64 {
	m.seq++
	return m.seq
}

// create makes a new adapter, which changes nothing yet.
func (s *session) create(ctx context.Context) (*model, error) {
	lora := map[string]any{"rank": s.lora.Rank, "seed": s.lora.Seed % (1 << 31), "train_unembed": false,
		"train_attn": slices.Contains(s.lora.Targets, attention[0]),
		"train_mlp":  slices.Contains(s.lora.Targets, feedForward[0])}
	s.models++
	body := map[string]any{"session_id": s.id, "model_seq_id": s.models, "base_model": s.BaseModel, "lora_config": lora,
		"type": "create_model"}
	var made struct {
		pending
		Model string `json:"model_id"`
	}
	if err := s.post(ctx, "api/v1/create_model", body, &made, repeatable); err != nil {
		return nil, err
	}
	var done struct {
		Model string `json:"model_id"`
	}
	if made.Request != "" {
		if err := s.result(ctx, "api/v1/create_model", made.Request, &done); err != nil {
			return nil, err
		}
	}
	if done.Model == "" {
		done.Model = made.Model
	}
	if done.Model == "" {
		return nil, s.fault("its reply to api/v1/create_model names no model_id")
	}
	return &model{id: done.Model}, nil
}

// unload frees an adapter. A server that is gone has freed it.
func (s *session) unload(ctx context.Context, m *model) {
	if m == nil {
		return
	}
	if m.dirty { // a later adapter in its place must not inherit gradients
		_ = s.flush(ctx, m)
	}
	body := map[string]any{"model_id": m.id, "type": "unload_model"}
	if err := s.future(ctx, "api/v1/unload_model", body, nil, repeatable); err != nil {
		slog.Debug("unload an adapter at a Tinker server", "server", s.Name(), "error", err)
	}
}

// flush drops gradients at the server by a step that moves nothing. What the step leaves of the optimiser's state is
// replaced by the load that follows.
func (s *session) flush(ctx context.Context, m *model) error {
	body := map[string]any{"model_id": m.id, "seq_id": m.next(), "type": "optim_step",
		"adam_params": map[string]any{"learning_rate": 0, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8}}
	if err := s.future(ctx, "api/v1/optim_step", body, nil, once); err != nil {
		return err
	}
	m.dirty = false
	return nil
}

// paths of checkpoints at the server: tinker://OWNER/NAME with further parts.
var pathOf = regexp.MustCompile(`^tinker://([A-Za-z0-9_.:-]{1,255})/([A-Za-z0-9_./-]{1,511})$`)

// save stores the adapter with the optimiser's state.
func (s *session) save(ctx context.Context, m *model) (path string, err error) {
	return s.store(ctx, "api/v1/save_weights", "save_weights", m)
}

// publish stores the adapter for sampling.
func (s *session) publish(ctx context.Context, m *model) (path string, err error) {
	return s.store(ctx, "api/v1/save_weights_for_sampler", "save_weights_for_sampler", m)
}

// store saves under a new name. Another try takes another name, since the first may have been used.
func (s *session) store(ctx context.Context, call, kind string, m *model) (string, error) {
	var done struct {
		Path string `json:"path"`
	}
	for attempt := 1; ; attempt++ {
		body := map[string]any{"model_id": m.id, "path": newName(), "type": kind}
		err := s.future(ctx, call, body, &done, once)
		if err == nil {
			break
		}
		if ctx.Err() != nil || gone(err) || refused(err) || attempt >= s.Attempts {
			return "", err
		}
	}
	if !pathOf.MatchString(done.Path) {
		return "", s.fault("its reply to %s names no path of a checkpoint: %q", call, shorten(done.Path))
	}
	return done.Path, nil
}

// newName is a name that no other checkpoint at the server has. It is no part of what is computed.
func newName() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return "ropewalk-" + hex.EncodeToString(b[:])
}

// load replaces the adapter and the optimiser's state by those at a path.
func (s *session) load(ctx context.Context, m *model, path string) error {
	body := map[string]any{"model_id": m.id, "path": path, "seq_id": m.next(), "optimizer": true,
		"type": "load_weights"}
	return s.future(ctx, "api/v1/load_weights", body, nil, repeatable)
}

// sampler begins to sample from a path, and returns the number to sample with.
func (s *session) sampler(ctx context.Context, path string, n int) (string, error) {
	var made struct {
		ID string `json:"sampling_session_id"`
	}
	body := map[string]any{"session_id": s.id, "sampling_session_seq_id": n, "model_path": path,
		"type": "create_sampling_session"}
	if err := s.post(ctx, "api/v1/create_sampling_session", body, &made, repeatable); err != nil {
		return "", err
	}
	if made.ID == "" {
		return "", s.fault("its reply to api/v1/create_sampling_session names no sampling_session_id")
	}
	return made.ID, nil
}

// supported finds the base among the server's models, and the longest sequence that it takes; 0 = unknown.
func (l *link) supported(ctx context.Context) (positions int, err error) {
	var known struct {
		Models []struct {
			Name   string `json:"model_name"`
			Length int    `json:"max_context_length"`
		} `json:"supported_models"`
	}
	if err := l.get(ctx, "api/v1/get_server_capabilities", &known); err != nil {
		return 0, err
	}
	var names []string
	for _, m := range known.Models {
		if m.Name == l.BaseModel {
			return m.Length, nil
		}
		names = append(names, shorten(m.Name))
	}
	return 0, l.fault("it has no base model %s, only %s", l.BaseModel, shorten(fmt.Sprint(names)))
}

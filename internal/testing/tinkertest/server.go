package tinkertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
)

// Behaviour is what servers differ in.
type Behaviour struct {
	// ByWeights: a sequence's gradient is divided by the sum of its weights, which are 1 where it has none.
	ByWeights bool
	// ByRequest and ByStep: gradients are divided by the sequences of a request, or of a step.
	ByRequest, ByStep bool
	Scale             float64 // of all gradients; 0 = 1
	Clips             bool    // grad_clip_norm is obeyed; otherwise it is ignored
	NoNorm            bool    // steps return no norm
	NoDownload        bool    // there are no archives
	LoadFirst         bool    // only models that were not used take weights
	Alpha             float64 // 0 = 32
	Waits             int     // answers of retrieve_future that there is no result yet, for each request
}

// SkyRL behaves as SkyRL 0.3.0 does.
var SkyRL = Behaviour{ByWeights: true, ByStep: true}

// Hosted sums, as the API's documents say, and clips.
var Hosted = Behaviour{Clips: true}

// Hook answers a request itself if it returns true. call is the last part of the path, n counts its calls from 1.
type Hook func(w http.ResponseWriter, r *http.Request, call string, n int) bool

// Server is a running server.
type Server struct {
	URL  string
	Key  string // that requests must carry; "" = none
	Name string // of the base model
	Behaviour
	t      testing.TB
	base   *checkpoint.Checkpoint
	engine policy.Engine
	http   *httptest.Server

	mu       sync.Mutex
	hook     Hook
	calls    map[string]int
	number   int
	sessions map[string]bool
	models   map[string]*model
	futures  map[string]*future
	saved    map[string]state  // by path
	samplers map[string]string // paths by sampling session
	Sent     []Sent            // the data of forward_backward
}

// Sent is a request for gradients.
type Sent struct {
	Loss string
	Rows int
}

type future struct {
	result any
	code   int
	waits  int
}

// New starts a server over the base in a folder.
func New(t testing.TB, dir string, b Behaviour) *Server {
	t.Helper()
	base, err := checkpoint.Read(dir, false)
	require.NoError(t, err)
	s := &Server{t: t, Name: "base/model", Behaviour: b, base: base, calls: map[string]int{},
		sessions: map[string]bool{}, models: map[string]*model{}, futures: map[string]*future{},
		saved: map[string]state{}, samplers: map[string]string{}}
	s.Alpha, s.Scale = cmp.Or(s.Alpha, 32), cmp.Or(s.Scale, 1)
	s.engine, err = cpu.Open(cpu.Options{Threads: 1})
	require.NoError(t, err)
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL
	t.Cleanup(func() {
		s.Kill()
		s.engine.Close()
	})
	return s
}

// Kill ends the server and all its connections.
func (s *Server) Kill() {
	s.http.CloseClientConnections()
	s.http.Listener.Close()
}

// Set takes requests away from the server; nil gives them back.
func (s *Server) Set(h Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = h
	clear(s.calls)
}

// Restart forgets sessions, models and futures, as a server does that is started again. Checkpoints stay.
func (s *Server) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
	clear(s.models)
	clear(s.futures)
	clear(s.samplers)
}

// Forget loses the checkpoints.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.saved)
}

// Swap makes every checkpoint another one's: new adapters under the same paths.
func (s *Server) Swap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, st := range s.saved {
		for i := range st.tensors {
			for j := range st.tensors[i].b {
				st.tensors[i].b[j] += 0.5
			}
		}
		s.saved[path] = st
	}
}

// Models counts the adapters that are loaded.
func (s *Server) Models() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.models)
}

// refusal is an answer that is no success.
type refusal struct {
	code int
	text string
}

func refuse(code int, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	s.mu.Lock()
	s.calls[call]++
	n, hook := s.calls[call], s.hook
	s.mu.Unlock()
	if hook != nil && hook(w, r, call, n) {
		return
	}
	if s.Key != "" && r.Header.Get("X-API-Key") != s.Key {
		answer(w, http.StatusUnauthorized, map[string]any{"detail": "no such key"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet && (call == "archive" || call == "download") {
		s.archive(w, r, call)
		return
	}
	body := request{}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			answer(w, http.StatusUnprocessableEntity, map[string]any{"detail": err.Error()})
			return
		}
	}
	result, bad := s.answer(call, body)
	if bad != nil {
		answer(w, bad.code, map[string]any{"detail": bad.text})
		return
	}
	answer(w, http.StatusOK, result)
}

func answer(w http.ResponseWriter, code int, result any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(result) // the client may have gone
}

// request holds the fields of all requests.
type request struct {
	Session  string `json:"session_id"`
	Base     string `json:"base_model"`
	Request  string `json:"request_id"`
	Model    string `json:"model_id"`
	Path     string `json:"path"`
	From     string `json:"model_path"`
	Sampling string `json:"sampling_session_id"`
	Seq      *int   `json:"seq_id"`
	LoRA     *struct {
		Rank    int    `json:"rank"`
		Seed    uint64 `json:"seed"`
		Attn    bool   `json:"train_attn"`
		MLP     bool   `json:"train_mlp"`
		Unembed bool   `json:"train_unembed"`
	} `json:"lora_config"`
	Forward  *input     `json:"forward_input"`
	Backward *input     `json:"forward_backward_input"`
	Adam     *adam      `json:"adam_params"`
	Prompt   modelInput `json:"prompt"`
	Params   struct {
		Max         int     `json:"max_tokens"`
		Seed        uint64  `json:"seed"`
		Stop        []int32 `json:"stop"`
		Temperature float64 `json:"temperature"`
	} `json:"sampling_params"`
}

type modelInput struct {
	Chunks []struct {
		Type   string  `json:"type"`
		Tokens []int32 `json:"tokens"`
	} `json:"chunks"`
}

type input struct {
	Loss string  `json:"loss_fn"`
	Data []datum `json:"data"`
}

type datum struct {
	Input  modelInput `json:"model_input"`
	Inputs map[string]struct {
		Data  []float64 `json:"data"`
		Dtype string    `json:"dtype"`
	} `json:"loss_fn_inputs"`
}

type adam struct {
	LR    float64 `json:"learning_rate"`
	Beta1 float64 `json:"beta1"`
	Beta2 float64 `json:"beta2"`
	Eps   float64 `json:"eps"`
	Clip  float64 `json:"grad_clip_norm"`
}

func (s *Server) id(kind string) string {
	s.number++
	return fmt.Sprintf("%s-%d", kind, s.number)
}

// later stores a result for retrieve_future.
func (s *Server) later(result any, bad *refusal) map[string]any {
	f := &future{result: result, code: http.StatusOK, waits: s.Waits}
	if bad != nil {
		f.result, f.code = map[string]any{"detail": bad.text}, http.StatusBadRequest
	}
	id := s.id("request")
	s.futures[id] = f
	return map[string]any{"request_id": id}
}

func (s *Server) answer(call string, r request) (any, *refusal) {
	switch call {
	case "get_server_capabilities":
		return map[string]any{"supported_models": []any{map[string]any{"model_name": s.Name}}}, nil
	case "create_session":
		id := s.id("session")
		s.sessions[id] = true
		return map[string]any{"session_id": id}, nil
	case "session_heartbeat":
		if !s.sessions[r.Session] {
			return nil, refuse(http.StatusNotFound, "Session not found")
		}
		return map[string]any{}, nil
	case "create_model":
		return s.create(r)
	case "retrieve_future":
		return s.retrieve(r.Request)
	case "create_sampling_session":
		if _, ok := s.saved[r.From]; !s.sessions[r.Session] || !ok {
			return nil, refuse(http.StatusNotFound, "Session or checkpoint not found")
		}
		id := s.id("sampling")
		s.samplers[id] = r.From
		return map[string]any{"sampling_session_id": id}, nil
	case "asample":
		path, ok := s.samplers[r.Sampling]
		if !ok || r.Seq == nil {
			return nil, refuse(http.StatusNotFound, "Sampling session not found")
		}
		return s.later(s.sample(s.saved[path], r)), nil
	}
	m := s.models[r.Model]
	if m == nil {
		return nil, refuse(http.StatusNotFound, "Model not found")
	}
	switch call {
	case "unload_model":
		delete(s.models, r.Model)
		return s.later(map[string]any{"model_id": r.Model}, nil), nil
	case "forward":
		return s.later(s.pass(m, r.Forward, false)), nil
	case "forward_backward":
		s.Sent = append(s.Sent, Sent{r.Backward.Loss, len(r.Backward.Data)})
		return s.later(s.pass(m, r.Backward, true)), nil
	case "optim_step":
		m.used = true
		return s.later(s.step(m, *r.Adam), nil), nil
	case "save_weights", "save_weights_for_sampler":
		kind := map[string]string{"save_weights": "weights", "save_weights_for_sampler": "sampler_weights"}[call]
		path := fmt.Sprintf("tinker://%s/%s/%s", r.Model, kind, r.Path)
		s.saved[path] = m.state.clone()
		return s.later(map[string]any{"path": path, "type": call}, nil), nil
	case "load_weights":
		st, ok := s.saved[r.Path]
		if !ok {
			return nil, refuse(http.StatusNotFound, "Checkpoint not found: %s", r.Path)
		}
		if s.LoadFirst && m.used {
			return nil, refuse(http.StatusBadRequest, "load_weights must be the first request of a model")
		}
		m.state = st.clone()
		m.used = true
		return s.later(map[string]any{"type": "load_weights"}, nil), nil
	}
	return nil, refuse(http.StatusNotFound, "Not Found")
}

func (s *Server) create(r request) (any, *refusal) {
	switch {
	case !s.sessions[r.Session]:
		return nil, refuse(http.StatusNotFound, "Session not found")
	case r.Base != s.Name:
		return nil, refuse(http.StatusBadRequest, "no base model %s", r.Base)
	case r.LoRA == nil || r.LoRA.Rank < 1 || r.LoRA.Unembed:
		return nil, refuse(http.StatusUnprocessableEntity, "lora_config")
	}
	id := s.id("model")
	s.models[id] = &model{state: s.fresh(r.LoRA.Rank, r.LoRA.Seed, r.LoRA.Attn, r.LoRA.MLP)}
	out := s.later(map[string]any{"model_id": id, "type": "create_model"}, nil)
	out["model_id"] = id
	return out, nil
}

func (s *Server) retrieve(id string) (any, *refusal) {
	f := s.futures[id]
	switch {
	case f == nil:
		return nil, refuse(http.StatusNotFound, "Future not found")
	case f.waits > 0:
		f.waits--
		return map[string]any{"type": "try_again", "request_id": id, "queue_state": "active"}, nil
	case f.code != http.StatusOK:
		return nil, &refusal{f.code, f.result.(map[string]any)["detail"].(string)}
	}
	return f.result, nil
}

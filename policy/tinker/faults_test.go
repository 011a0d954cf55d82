package tinker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/tinkertest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// say answers with a text.
func say(code int, text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text) // the client may have gone
	}
}

// drop breaks the connection off.
func drop(w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		c.Close()
	}
}

func throttle(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusTooManyRequests)
}

// flood answers with more than any reply may have.
func flood(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000000000")
	_, _ = w.Write([]byte(`{"request_id":"`))
	for block := strings.Repeat("x", 1<<20); ; {
		if _, err := io.WriteString(w, block); err != nil {
			return
		}
	}
}

// first takes the first n requests of a call away.
func first(call string, n int, answer func(http.ResponseWriter)) tinkertest.Hook {
	return func(w http.ResponseWriter, _ *http.Request, c string, k int) bool {
		if c != call || k > n {
			return false
		}
		answer(w)
		return true
	}
}

// trained is a server and an engine whose adapter has taken a step.
func trained(t *testing.T, b tinkertest.Behaviour) (*tinkertest.Server, *tinker.Engine, string) {
	t.Helper()
	dir := policyDir(t, 1)
	s := tinkertest.New(t, dir, b)
	e := open(t, s)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true))
	step(t, e, 11)
	return s, e, dir
}

// nine asks for the log-probabilities of nine tokens.
var nine = policy.ForwardRequest{Role: policy.RolePolicy, Sequences: [][]int32{row(9)}, Temperature: 1,
	Outputs: policy.OutLogProb}

func request() policy.GenerateRequest {
	return policy.GenerateRequest{Role: policy.RolePolicy, Prefixes: [][]int32{row(5), row(3)}, Streams: []uint64{1, 2},
		MaxTokens: []int{4, 4}, Temperature: 1}
}

// Faults that pass are not noticed by requests that change nothing, nor by those that the server has not taken.
func TestFaultsThatPass(t *testing.T) {
	s, e, _ := trained(t, tinkertest.Hosted)
	want := forward(t, e, [][]int32{row(9)}, false)
	for name, c := range map[string]struct {
		call   string
		answer func(http.ResponseWriter)
	}{
		"429 of a forward":      {"forward", throttle},
		"503 of a forward":      {"forward", say(503, "busy")},
		"reset of a forward":    {"forward", drop},
		"429 of a gradient":     {"forward_backward", throttle},
		"429 of a step":         {"optim_step", throttle},
		"reset of a result":     {"retrieve_future", drop},
		"408 of a result":       {"retrieve_future", say(408, `{"queue_state":"active"}`)},
		"garbage as result":     {"retrieve_future", say(200, "\xff\x00")},
		"half a result":         {"retrieve_future", say(200, `{"loss_fn_outputs":[{"logp`)},
		"reset of a save":       {"save_weights", drop},
		"reset of an archive":   {"download", drop},
		"503 of a sample":       {"asample", say(503, "")},
		"garbage as capability": {"session_heartbeat", say(500, "")},
	} {
		t.Run(name, func(t *testing.T) {
			s.Set(first(c.call, 2, c.answer))
			require.Equal(t, want.LogProbs, forward(t, e, [][]int32{row(9)}, false).LogProbs)
			_, err := e.Generate(t.Context(), request())
			require.NoError(t, err)
			step(t, e, 7)
			to := filepath.Join(t.TempDir(), "saved")
			_, err = e.Save(t.Context(), policy.RolePolicy, to)
			require.NoError(t, err)
			want = forward(t, e, [][]int32{row(9)}, false)
		})
	}
}

// Replies that cannot be believed are errors that name the server and what is wrong, in every position.
func TestHostileReplies(t *testing.T) {
	result := func(text string) tinkertest.Hook { return always("retrieve_future", say(200, text)) }
	one := func(numbers string) string {
		return `{"loss_fn_outputs":[{"logprobs":{"data":[` + numbers + `]}}],"metrics":{}}`
	}
	s, e, dir := trained(t, tinkertest.SkyRL)
	for name, c := range map[string]struct {
		hook tinkertest.Hook
		want string
	}{
		"too few sequences": {result(`{"loss_fn_outputs":[]}`), "has the outputs of 0 sequences, want 1"},
		"too few numbers":   {result(one("-1")), "gives 1 log-probabilities, want 8"},
		"a missing number":  {result(one("-1,-1,null,-1,-1,-1,-1,-1")), "no log-probability of token 2"},
		"a positive number": {result(one("-1,-1,0.5,-1,-1,-1,-1,-1")), "gives 0.5 as log-probability of token 2"},
		"NaN":               {result(one("-1,-1,NaN,-1,-1,-1,-1,-1")), "not the JSON that was expected"},
		"beyond float32":    {result(one("-1,-1,-1e60,-1,-1,-1,-1,-1")), "not the JSON that was expected"},
		"no log-probs":      {result(`{"loss_fn_outputs":[{}]}`), "has no log-probabilities of sequence 0"},
		"another type":      {result(`{"loss_fn_outputs":7}`), "not the JSON that was expected"},
		"an error":          {result(`{"error":"no memory","category":"server"}`), "failed (server): no memory"},
		"a detail":          {always("retrieve_future", say(400, `{"detail":"bad shape"}`)), "bad shape"},
		"no request id":     {always("forward", say(200, `{}`)), "names no request_id"},
		"a flood":           {always("forward", flood), "has more than"},
		"the wrong key":     {always("forward", say(401, `{"detail":"no"}`)), "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Set(c.hook)
			_, err := e.Forward(t.Context(), nine)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, s.URL)
			s.Set(nil)
			if _, err := e.State(t.Context(), policy.RolePolicy); err != nil {
				require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true))
			}
			require.NoError(t, e.Load(t.Context(), policy.RolePolicy, dir, true), "it goes on")
		})
	}
}

func always(call string, answer func(http.ResponseWriter)) tinkertest.Hook {
	return first(call, 1<<30, answer)
}

// Responses that cannot be what was asked for are asked for again, and then are errors.
func TestHostileResponses(t *testing.T) {
	s, e, _ := trained(t, tinkertest.Hosted)
	_, err := e.Generate(t.Context(), request()) // the weights are published
	require.NoError(t, err)
	for name, c := range map[string]struct{ sequence, want string }{
		"no tokens":        {`{"tokens":[],"logprobs":[]}`, "has 0 tokens, want 1 to 4"},
		"too many tokens":  {`{"tokens":[1,2,3,4,5],"logprobs":[-1,-1,-1,-1,-1]}`, "has 5 tokens"},
		"unknown token":    {`{"tokens":[1,2,3,40],"logprobs":[-1,-1,-1,-1]}`, "token 3 is 40, the vocabulary has 40"},
		"negative token":   {`{"tokens":[1,2,3,-1],"logprobs":[-1,-1,-1,-1]}`, "token 3 is -1"},
		"too few numbers":  {`{"tokens":[1,2,3,4],"logprobs":[-1]}`, "gives 1 log-probabilities, want 4"},
		"positive":         {`{"tokens":[1,2,3,4],"logprobs":[-1,1,-1,-1]}`, "gives 1 as log-probability of token 1"},
		"ends early":       {`{"tokens":[1,2],"logprobs":[-1,-1]}`, "ends after 2 of 4 tokens without a stop token"},
		"ends late":        {`{"tokens":[9,2,3,4],"logprobs":[-1,-1,-1,-1]}`, "goes on for 3 tokens after the stop"},
		"another sequence": {`{"tokens":[1,2,3,4],"logprobs":[-1,-1,-1,-1]},{}`, "has 2 sequences, want 1"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s.Set(func(w http.ResponseWriter, _ *http.Request, call string, _ int) bool {
				if call == "asample" {
					asked++
				}
				if call != "retrieve_future" {
					return false
				}
				say(200, `{"sequences":[`+c.sequence+`]}`)(w)
				return true
			})
			req := request()
			req.Prefixes, req.Streams, req.MaxTokens, req.Stop = req.Prefixes[:1], req.Streams[:1], req.MaxTokens[:1],
				[]int32{9}
			_, err := e.Generate(t.Context(), req)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, 3, asked)
			s.Set(nil)
			_, err = e.Generate(t.Context(), req)
			require.NoError(t, err)
		})
	}
}

// A gradient or a step whose fate is unknown loses the model, and a load of its checkpoint brings it back as it was.
func TestStepsOfUnknownFate(t *testing.T) {
	for name, c := range map[string]struct {
		call   string
		answer func(http.ResponseWriter)
	}{
		"reset of a gradient":   {"forward_backward", drop},
		"500 of a gradient":     {"forward_backward", say(500, "oh")},
		"garbage of a gradient": {"forward_backward", say(200, "oh")},
		"reset of a step":       {"optim_step", drop},
		"502 of a step":         {"optim_step", say(502, "oh")},
		"a lost result":         {"retrieve_future", say(404, `{"detail":"Future not found"}`)},
		"an expired result":     {"retrieve_future", say(410, "")},
		"a norm of infinity": {"retrieve_future", say(200,
			`{"loss_fn_outputs":[{},{}],"metrics":{"skyrl.ai/grad_norm":1e999}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s, e, _ := trained(t, tinkertest.SkyRL)
			saved := filepath.Join(t.TempDir(), "saved")
			_, err := e.Save(t.Context(), policy.RolePolicy, saved)
			require.NoError(t, err)
			stepOnce := func() policy.TokenOutputs {
				step(t, e, 7)
				return forward(t, e, [][]int32{row(9)}, false)
			}
			want := stepOnce()
			require.NoError(t, e.Load(t.Context(), policy.RolePolicy, saved, true))

			backward(t, e, [][]int32{row(7), row(5)})
			s.Set(always(c.call, c.answer))
			_, err = e.Step(t.Context(), policy.RolePolicy, adam)
			require.ErrorIs(t, err, policy.ErrLost)
			s.Set(nil)
			_, err = e.Forward(t.Context(), nine)
			require.Error(t, err, "the model is gone until it is loaded")
			require.NoError(t, e.Discard(t.Context(), policy.RolePolicy))
			require.NoError(t, e.Load(t.Context(), policy.RolePolicy, saved, true))
			require.Equal(t, want.LogProbs, stepOnce().LogProbs, "no gradient is left over, and the moments are back")
		})
	}
}

// A server that is started again has forgotten its models: the next load brings them back from their paths.
func TestAServerThatIsStartedAgain(t *testing.T) {
	s, e, _ := trained(t, tinkertest.SkyRL)
	saved := filepath.Join(t.TempDir(), "saved")
	_, err := e.Save(t.Context(), policy.RolePolicy, saved)
	require.NoError(t, err)
	want := forward(t, e, [][]int32{row(9)}, false)
	s.Restart()
	_, err = e.Generate(t.Context(), request())
	require.ErrorIs(t, err, policy.ErrLost)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, saved, true))
	require.Equal(t, want.LogProbs, forward(t, e, [][]int32{row(9)}, false).LogProbs)

	s.Swap()
	err = e.Load(t.Context(), policy.RolePolicy, saved, true)
	require.ErrorIs(t, err, policy.ErrWrongVersion)
	require.ErrorContains(t, err, "from those of the save")
	require.Equal(t, want.LogProbs, forward(t, e, [][]int32{row(9)}, false).LogProbs, "a failed load changes nothing")

	s.Forget()
	err = e.Load(t.Context(), policy.RolePolicy, saved, true)
	require.ErrorIs(t, err, policy.ErrBadRequest, "another try does not help")
	require.ErrorContains(t, err, "it no longer has tinker://")
	require.ErrorContains(t, err, "policy.checkpoint run:RUN@STEP")
}

// What an engine refuses, before or without asking the server.
func TestRequestsThatNoServerCanServe(t *testing.T) {
	s, e, dir := trained(t, tinkertest.SkyRL)
	bad := func(err error, text string) {
		t.Helper()
		require.ErrorIs(t, err, policy.ErrBadRequest)
		require.ErrorContains(t, err, text)
	}
	ask := func(change func(*policy.ForwardRequest)) error {
		req := policy.ForwardRequest{Role: policy.RolePolicy, Sequences: [][]int32{row(4)}, Temperature: 1,
			Outputs: policy.OutLogProb, Keep: true}
		change(&req)
		_, err := e.Forward(t.Context(), req)
		return err
	}
	bad(ask(func(r *policy.ForwardRequest) { r.Outputs |= policy.OutEntropy }), "no entropies")
	bad(ask(func(r *policy.ForwardRequest) { r.Temperature = 0.5 }), "temperature is 0.5")
	bad(ask(func(r *policy.ForwardRequest) { r.Sequences = [][]int32{make([]int32, 129)} }), "129 tokens")
	bad(ask(func(r *policy.ForwardRequest) { r.Sequences = [][]int32{{40}} }), "the vocabulary has 40")
	bad(e.Load(t.Context(), policy.RoleCritic, dir, true), "no value heads")
	_, err := e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{LR: 1,
		Rule: optimizer.AdamW{Epsilon: 1, WeightDecay: 0.1}})
	bad(err, "weight decay is 0.1")
	_, err = e.Step(t.Context(), policy.RolePolicy, policy.StepOptions{LR: 1,
		Rule: optimizer.AdamW{Epsilon: 1}, ClipNorm: 1})
	bad(err, "does not clip gradients")
	hot := request()
	hot.Temperature = 0.7
	_, err = e.Generate(t.Context(), hot)
	bad(err, "temperature is 0.7")
	saved := filepath.Join(t.TempDir(), "saved")
	_, err = e.Save(t.Context(), policy.RolePolicy, saved)
	require.NoError(t, err)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, saved, false))
	out := forward(t, e, [][]int32{row(4)}, true)
	bad(e.Backward(t.Context(), policy.RolePolicy, out.Kept, policy.Cotangents{}), "without its optimiser's state")

	require.NoError(t, os.Remove(filepath.Join(saved, checkpoint.FileReference)))
	bad(e.Load(t.Context(), policy.RolePolicy, saved, true), "an adapter that no Tinker server has saved")
	other := []byte(`{"weights":"/etc"}`)
	require.NoError(t, os.WriteFile(filepath.Join(saved, checkpoint.FileReference), other, 0o644))
	require.ErrorIs(t, e.Load(t.Context(), policy.RolePolicy, saved, true), checkpoint.ErrCorrupt)

	o := options(t, s)
	o.LoRA.Alpha = 16
	_, err = tinker.Open(t.Context(), o, shape)
	bad(err, "alpha is 16")
	o = options(t, s)
	o.Server.BaseModel = "other"
	_, err = tinker.Open(t.Context(), o, shape)
	require.ErrorContains(t, err, "it has no base model other, only [base/model]")
}

// The base at the server must be the one of the folder, and the adapter that it sends the one that it trains.
func TestServersWithAnotherModel(t *testing.T) {
	s := tinkertest.New(t, policyDir(t, 1), tinkertest.Hosted)
	err := open(t, s).Load(t.Context(), policy.RolePolicy, policyDir(t, 2), true)
	require.ErrorIs(t, err, policy.ErrWrongVersion)
	require.ErrorContains(t, err, "from those of our own forward pass")

	s = tinkertest.New(t, policyDir(t, 1), tinkertest.Behaviour{Alpha: 16})
	_, err = tinker.Open(t.Context(), options(t, s), shape)
	require.ErrorContains(t, err, "lora_alpha is 16, engine.lora.alpha is 32")

	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"no archive":   {say(200, "nothing of the kind"), "it is no archive"},
		"an empty one": {say(200, ""), "it is no archive"},
		"elsewhere": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, "it redirects to an address that is not https"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tinkertest.New(t, policyDir(t, 1), tinkertest.Hosted)
			s.Set(always("archive", c.answer))
			_, err := tinker.Open(t.Context(), options(t, s), shape)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// The secret goes to the server, and into no error.
func TestSecrets(t *testing.T) {
	const key = "tml-secret-of-the-test"
	t.Setenv("ROPEWALK_TEST_TINKER_KEY", key)
	s := tinkertest.New(t, policyDir(t, 1), tinkertest.Hosted)
	s.Key = key
	o := options(t, s)
	_, err := tinker.Open(t.Context(), o, shape)
	require.ErrorContains(t, err, "denied")
	o.Server.Token = "${env:ROPEWALK_TEST_TINKER_KEY}"
	e, err := tinker.Open(t.Context(), o, shape)
	require.NoError(t, err)
	defer e.Close()
	require.NotContains(t, fmt.Sprint(e.Facts(), e.Describe()), key)
	s.Set(always("create_model", say(400, `{"detail":"what is `+key+`?"}`)))
	err = e.Load(t.Context(), policy.RolePolicy, policyDir(t, 1), true)
	require.ErrorContains(t, err, "what is")
	require.NotContains(t, err.Error(), key)
}

// The adapters that an engine made are unloaded when it closes, and a session is kept alive until then.
func TestSessionsEnd(t *testing.T) {
	dir := policyDir(t, 1)
	s := tinkertest.New(t, dir, tinkertest.Hosted)
	beats := make(chan struct{}, 100)
	s.Set(func(_ http.ResponseWriter, _ *http.Request, call string, _ int) bool {
		if call == "session_heartbeat" {
			beats <- struct{}{}
		}
		return false
	})
	o := options(t, s)
	o.Beat = 20 * time.Millisecond
	e, err := tinker.Open(t.Context(), o, shape)
	require.NoError(t, err)
	for _, role := range []policy.Role{policy.RolePolicy, policy.RoleReference, policy.RolePolicy} {
		require.NoError(t, e.Load(t.Context(), role, dir, true))
	}
	<-beats
	require.Equal(t, 2, s.Models())
	require.NoError(t, e.Close())
	require.Zero(t, s.Models())
	_, err = e.Forward(context.Background(), policy.ForwardRequest{Role: policy.RolePolicy, Outputs: policy.OutLogProb,
		Sequences: [][]int32{row(3)}, Temperature: 1})
	require.ErrorIs(t, err, policy.ErrLost)
	left, err := os.ReadDir(o.Scratch)
	require.NoError(t, err)
	require.Empty(t, left)
}

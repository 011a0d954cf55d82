package runs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// A hosted model plays a world and answers questions of a file. Its record has the same tables as any other's.
func TestHostedModelsInWorlds(t *testing.T) {
	var mu sync.Mutex
	prompts := "" // as they come
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Role, Content string }
		}
		require.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		last := body.Messages[len(body.Messages)-1].Content
		mu.Lock()
		prompts += last
		mu.Unlock()
		said := "The answer is 4"
		if strings.Contains(last, "<action>") {
			said = "<think>Up.</think><action>up</action>"
		}
		require.NoError(t, json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{
			"message": map[string]any{"role": "assistant", "content": said}, "finish_reason": "stop"}}}))
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "f.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"question": "2+2?", "answer": "4"}`+"\n"+
		`{"question": "2+3?", "answer": "5"}`), 0o600))
	objects := mem.New()
	measure := func(environment string, set ...string) workflows.EvaluateRunResult {
		t.Helper()
		h, err := OpenHosted(server.URL+"#gpt", "")
		require.NoError(t, err)
		e, err := h.Evaluation(nil)
		require.NoError(t, err)
		e.Policy, err = h.Put(t.Context(), objects, strings.Repeat("c", 64))
		require.NoError(t, err)
		e.Environment, e.Set = environment, set
		ask, resolved, err := e.Start(time.Unix(0, 0))
		require.NoError(t, err)
		require.Equal(t, "gpt", resolved.Recipe.Engine.Servers[0].Model)
		deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{})
		got, err := pipelinetest.Run[workflows.EvaluateRunResult](pipelinetest.Environment(deps),
			workflows.EvaluateRunName, ask.Input)
		require.NoError(t, err)
		require.NoError(t, deps.Close())
		return got
	}
	got := measure("sokoban", "evaluation.problems=2", "evaluation.samples=1", "rollout.max_turns=12")
	require.Equal(t, 2, got.Summary.N)
	require.Zero(t, got.Summary.Success)
	require.Contains(t, prompts, "Action 1: 'up'", "the model reads what it did")
	got = measure("chat", "environment.settings.train="+file, "environment.settings.held_out="+file,
		"environment.settings.duplicates=first", "evaluation.problems=2", "evaluation.samples=1")
	require.Equal(t, 0.5, got.Summary.Success)
}

// Every environment and every built-in recipe in which a policy acts can measure a hosted model.
func TestHostedModelsFitEverywhere(t *testing.T) {
	h, err := OpenHosted("https://api.example.com/v1#a/b", "${env:KEY}")
	require.NoError(t, err)
	protocols := map[string]string{}
	for _, name := range playable() {
		e, err := h.Evaluation(nil)
		require.NoError(t, err)
		if e.Environment = name; name == "mix" {
			continue // it has no parts of its own
		}
		_, resolved, err := e.Start(time.Unix(0, 0))
		require.NoError(t, err, name)
		p, err := resolved.Recipe.Protocol()
		require.NoError(t, err, name)
		protocols[name] = p.Spec().Name
	}
	for name, want := range map[string]string{"calc": "rstar2_prompt", "sokoban": "think_action", "chat": "chat",
		"code": "program", "math": "boxed", "search_qa": "prs"} {
		require.Equal(t, want, protocols[name], name)
	}
	for _, name := range recipes.Builtin() {
		base, err := recipes.Resolve(name, "", nil, nil, nil)
		require.NoError(t, err, name)
		if base.Recipe.Environment.Imported() {
			continue
		}
		e, err := h.Evaluation(base.JSON)
		require.NoError(t, err, name)
		_, resolved, err := e.Start(time.Unix(0, 0))
		require.NoError(t, err, name)
		require.Equal(t, base.Recipe.Environment, resolved.Recipe.Environment, name)
	}
}

func TestAddressesOfHostedModels(t *testing.T) {
	for address, want := range map[string]bool{"http://h#m": true, "https://h/v1#a/b": true, "hf://a/b#c": false,
		"http://h": false, "./model#1": false} {
		require.Equal(t, want, IsHosted(address), address)
	}
	h, err := OpenHosted("http://127.0.0.1:8000/#m", "")
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8000/v1", h.server.URL)
	for address, want := range map[string]string{"http://h#": "http://h#: name: is required for kind chat",
		"http://u:p@h/v1#m": "address: must hold no user and password"} {
		_, err := OpenHosted(address, "")
		require.ErrorAs(t, err, new(badinput.Error))
		require.ErrorContains(t, err, want)
	}
	_, err = OpenHosted("http://h#m", "sk-secret")
	require.ErrorContains(t, err, "--key: must be a reference to a secret")
	require.NotContains(t, err.Error(), "sk-secret")
}

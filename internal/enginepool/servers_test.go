package enginepool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// Users of one version of the policy use servers at once; one of another version waits for them, and publishes it.
func TestServersAreShared(t *testing.T) {
	engine := &loads{}
	p := New(Options{})
	s := &Sampler{Resident: p.resident(engine), sampler: engine, shared: &sync.RWMutex{}}
	s.Mark(policy.RolePolicy, "a", false)
	together := make(chan struct{}, 2)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			require.NoError(t, s.Use(t.Context(), Version{Digest: "a"}, func(policy.Sampler) error {
				together <- struct{}{}
				for until := time.Now().Add(10 * time.Second); len(together) < 2; time.Sleep(time.Millisecond) {
					if time.Now().After(until) {
						return errors.New("the other one does not come")
					}
				}
				return nil
			}))
		})
	}
	all.Wait()
	lost := fmt.Errorf("generate: %w", policy.ErrLost)
	require.ErrorIs(t, s.Use(t.Context(), Version{Digest: "a"}, func(policy.Sampler) error { return lost }), lost)
	require.False(t, s.Holds(policy.RolePolicy, "a"), "it is published again")
}

// modelsOf serves what a server of kind ropewalk says about itself.
func modelsOf(t *testing.T, weights policy.WeightUpdate) (address string, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprintf(w, `{"data":[{"id":"m","max_model_len":64,"ropewalk":{"weights":"d","capabilities":`+
			`{"token_ids":true,"logprobs":true,"entropy":"full",`+
			`"temperature":true,"row_seeds":true,"weights":%q}}}]}`, weights)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func generatedBy(list ...servers.Server) *recipes.Recipe {
	return &recipes.Recipe{Steps: 3, Engine: recipes.Engine{Kind: "cpu", Servers: list},
		Rollout: recipes.Rollout{Temperature: 1}, Evaluation: recipes.Evaluation{Temperature: 1}}
}

// A recipe's servers are asked what they are when its run is prepared: the manifest notes it, and a recipe that they
// cannot serve, or a server that does not answer, is refused with the reason.
func TestServersAreEstablished(t *testing.T) {
	score := func(context.Context, string, []int32) ([]float32, error) { return nil, nil }
	p := New(Options{Score: score})
	able, _ := modelsOf(t, policy.WeightsReload)
	fixed, _ := modelsOf(t, policy.WeightsFixed)
	one := func(url string) servers.Server {
		return servers.Server{Kind: servers.KindRopewalk, URL: url, Folder: t.TempDir()}
	}
	c, err := p.Choose(t.Context(), generatedBy(one(able)))
	require.NoError(t, err)
	require.Equal(t, "cpu", c.Kind, "the engine that trains")
	m := schema.Manifest{Note: map[string]string{}}
	c.Note(&m)
	require.Contains(t, m.Note[schema.NoteServers], `"server":"ropewalk `+able+`","model":"m","revision":"d"`)

	for want, list := range map[string][]servers.Server{
		"steps: the sampler cannot do what the recipe needs: servers: ropewalk " + fixed + " does not offer new " +
			"weights": {one(fixed)},
		"engine.servers: server ropewalk http://127.0.0.1:1: the model's server is unreachable": {one(able),
			one("http://127.0.0.1:1")},
	} {
		_, err = p.Choose(t.Context(), generatedBy(list...))
		require.ErrorContains(t, err, want)
		var bad badinput.Error
		require.ErrorAs(t, err, &bad)
	}
	_, err = New(Options{}).Choose(t.Context(), generatedBy(one(able)))
	require.ErrorContains(t, err, "this worker has no engine to compare servers with")
}

// Stages lease one sampler for equal servers, also while one of the servers is away; the pool closes it.
func TestServersAreLeased(t *testing.T) {
	score := func(context.Context, string, []int32) ([]float32, error) { return nil, nil }
	p := New(Options{Score: score})
	address, asked := modelsOf(t, policy.WeightsReload)
	r := generatedBy(servers.Server{Kind: servers.KindRopewalk, URL: address, Folder: t.TempDir()},
		servers.Server{Kind: servers.KindRopewalk, URL: "http://127.0.0.1:1", Folder: t.TempDir()})
	var first *Sampler
	for range 3 {
		s, release, err := p.Sampler(t.Context(), "r", r, false)
		require.NoError(t, err)
		release(false)
		if first == nil {
			first = s
		}
		require.Same(t, first, s)
	}
	require.Equal(t, int64(1), asked.Load())
	require.NoError(t, p.Close())
	_, err := first.sampler.Generate(t.Context(), policy.GenerateRequest{Role: policy.RolePolicy})
	require.ErrorIs(t, err, policy.ErrLost)
	_, _, err = p.Sampler(t.Context(), "r", r, false)
	require.EqualError(t, err, "the worker ends")
}

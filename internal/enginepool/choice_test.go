package enginepool

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// closing is an engine that records its end.
type closing struct {
	policy.Engine
	maker   *torchMaker
	devices int
}

// Capabilities are those that a test set for the offer.
func (c closing) Capabilities() policy.Capabilities { return c.maker.offer.Capabilities }

func (c closing) Describe() policy.Description { return policy.Description{Device: "a device"} }

func (c closing) Close() error {
	c.maker.mu.Lock()
	defer c.maker.mu.Unlock()
	c.maker.closed++
	c.maker.used -= c.devices
	return nil
}

// torchMaker makes the offer that the test sets.
type torchMaker struct {
	offer          Offer
	none           error
	served         error // how ranks of other hosts' engines end
	mu             sync.Mutex
	opened, closed int
	devices        int
	used, most     int // devices of the open engines
}

func (m *torchMaker) Devices() int { return m.devices }

func (m *torchMaker) Serve(ctx context.Context, _ gang.Invitation, room Room) error {
	release, err := room(ctx, 1)
	if err != nil {
		return err
	}
	defer release()
	return m.served
}

func (m *torchMaker) Offer(context.Context, *recipes.Recipe) (Offer, error) { return m.offer, m.none }

func (m *torchMaker) Open(_ context.Context, r *recipes.Recipe) (policy.Engine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	m.used += r.Engine.Devices
	m.most = max(m.most, m.used)
	return closing{maker: m, devices: r.Engine.Devices}, m.none
}

func TestChooseEngine(t *testing.T) {
	none := errors.New("no torch here\nand more")
	h200 := Offer{GPU: true, Device: "NVIDIA H200", Capabilities: able}
	cpu := Offer{Device: "the processor", Capabilities: able}
	for _, c := range []struct {
		name    string
		kind    string
		maker   Torch
		want    Choice
		refused string
	}{
		{"cpu asks no one", "cpu", nil, Choice{Kind: "cpu"}, ""},
		{"auto where no models run", "auto", nil,
			Choice{Kind: "cpu",
				Why: "auto: the worker that prepared the run runs no models, so that it saw no GPU; name " +
					"engine.kind"}, ""},
		{"auto where it cannot be", "auto", &torchMaker{none: none},
			Choice{Kind: "cpu", Why: "auto: no torch here"}, ""},
		{"auto without a GPU", "auto", &torchMaker{offer: cpu},
			Choice{Kind: "cpu", Why: "auto: PyTorch would run on the processor"}, ""},
		{"auto with one", "auto", &torchMaker{offer: h200}, Choice{Kind: "torch", Why: "NVIDIA H200"}, ""},
		{"torch on the processor", "torch", &torchMaker{offer: cpu}, Choice{Kind: "torch", Why: "the processor"}, ""},
		{"torch elsewhere", "torch", nil, Choice{Kind: "torch", Why: "a worker of the queues gpu and rollout"}, ""},
		{"torch where it cannot be", "torch", &torchMaker{none: none}, Choice{},
			"engine.kind: torch: no torch here\nand more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := poolOf(c.maker).Choose(t.Context(), &recipes.Recipe{Engine: recipes.Engine{Kind: c.kind}})
			if c.refused != "" {
				require.EqualError(t, err, c.refused)
				var bad badinput.Error
				require.ErrorAs(t, err, &bad)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// The choice made when a run was prepared stays, whatever a worker would choose later.
func TestTheCommittedChoiceStands(t *testing.T) {
	m := schema.Manifest{Note: map[string]string{}}
	auto := recipes.Engine{Kind: "auto", Devices: 2}
	require.Equal(t, recipes.Engine{Kind: "cpu", Devices: 2}, Chosen(m, auto), "of a run older than the choice")
	Choice{Kind: "torch", Why: "NVIDIA H200"}.Note(&m)
	require.Equal(t, recipes.Engine{Kind: "torch", Devices: 2}, Chosen(m, auto))
	require.Equal(t, recipes.Engine{Kind: "cpu"}, Chosen(m, recipes.Engine{Kind: "cpu"}))
	require.Equal(t, "NVIDIA H200", m.Note[schema.NoteEngineWhy])
}

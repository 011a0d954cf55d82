package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// closing is an engine that notes its end.
type closing struct {
	policy.Engine
	closed *int
}

func (c closing) Close() error { *c.closed++; return nil }

// torchMaker offers what it is told to.
type torchMaker struct {
	offer          Offer
	none           error
	opened, closed int
}

func (m *torchMaker) Offer(context.Context, *recipes.Recipe) (Offer, error) { return m.offer, m.none }

func (m *torchMaker) Open(context.Context, *recipes.Recipe) (policy.Engine, error) {
	m.opened++
	return closing{closed: &m.closed}, m.none
}

func TestChooseEngine(t *testing.T) {
	none := errors.New("no torch here\nand more")
	h200, cpu := Offer{GPU: true, Device: "NVIDIA H200"}, Offer{Device: "the processor"}
	for _, c := range []struct {
		name    string
		kind    string
		maker   Torch
		want    engineChoice
		refused string
	}{
		{"cpu asks nobody", "cpu", nil, engineChoice{kind: "cpu"}, ""},
		{"auto where no models run", "auto", nil, engineChoice{"cpu", "auto: the worker that prepared the run runs no models, so that it saw no GPU; name engine.kind"}, ""},
		{"auto where it cannot be", "auto", &torchMaker{none: none}, engineChoice{"cpu", "auto: no torch here"}, ""},
		{"auto without a GPU", "auto", &torchMaker{offer: cpu}, engineChoice{"cpu", "auto: PyTorch would run on the processor"}, ""},
		{"auto with one", "auto", &torchMaker{offer: h200}, engineChoice{"torch", "NVIDIA H200"}, ""},
		{"torch on the processor", "torch", &torchMaker{offer: cpu}, engineChoice{"torch", "the processor"}, ""},
		{"torch elsewhere", "torch", nil, engineChoice{"torch", "a worker of the queues gpu and rollout"}, ""},
		{"torch where it cannot be", "torch", &torchMaker{none: none}, engineChoice{}, "engine.kind: torch: no torch here\nand more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &Deps{torch: torchSlot{maker: c.maker}}
			got, err := d.chooseEngine(t.Context(), &recipes.Recipe{Engine: recipes.Engine{Kind: c.kind}})
			if c.refused != "" {
				require.EqualError(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// What a run's preparation chose stands, whatever a worker would choose later.
func TestTheCommittedChoiceStands(t *testing.T) {
	m := schema.Manifest{Note: map[string]string{}}
	auto := recipes.Engine{Kind: "auto", Devices: 2}
	require.Equal(t, recipes.Engine{Kind: "cpu", Devices: 2}, engineOf(m, auto), "of a run older than the choice")
	engineChoice{"torch", "NVIDIA H200"}.note(&m)
	require.Equal(t, recipes.Engine{Kind: "torch", Devices: 2}, engineOf(m, auto))
	require.Equal(t, recipes.Engine{Kind: "cpu"}, engineOf(m, recipes.Engine{Kind: "cpu"}))
	require.Equal(t, "NVIDIA H200", m.Note[noteEngineWhy])
}

func TestOneTorchEngineAtATime(t *testing.T) {
	m := &torchMaker{}
	d := &Deps{torch: torchSlot{maker: m, make: func(e policy.Engine) *slot { return newSlot(nil, e, "") }}}
	recipe := func(dtype string) *recipes.Recipe {
		return &recipes.Recipe{Engine: recipes.Engine{Kind: "torch", Dtype: dtype}}
	}
	learns, err := d.trainer(t.Context(), recipe("float32"))
	require.NoError(t, err)
	samples, err := d.generator(t.Context(), recipe("float32"))
	require.NoError(t, err)
	require.Same(t, learns, samples)
	other, err := d.trainer(t.Context(), recipe("bfloat16"))
	require.NoError(t, err)
	require.NotSame(t, learns, other)
	require.Equal(t, []int{2, 1}, []int{m.opened, m.closed})
	require.NoError(t, d.Close())
	require.Equal(t, 2, m.closed)

	m.none = errors.New("out of order")
	_, err = d.trainer(t.Context(), recipe("float32"))
	require.EqualError(t, err, "open the PyTorch engine: out of order")
}

func TestDeviceUse(t *testing.T) {
	busy := 0.5
	before := policy.Usage{Trained: 100, TrainSeconds: 1, Flops: 1e9, PeakFlops: 1e10}
	after := policy.Usage{Trained: 1100, TrainSeconds: 3, Flops: 1.1e10, PeakFlops: 1e10, PeakBytes: 7, Busy: &busy}
	require.Equal(t, &wire.DeviceUse{PeakBytes: 7, Utilisation: &busy, MFU: new(0.5), TokensPerSec: new(500.0)}, deviceUse(before, after))
	require.Equal(t, &wire.DeviceUse{PeakBytes: 7, Utilisation: &busy}, deviceUse(after, after), "nothing was trained")
	after.PeakFlops = 0
	require.Nil(t, deviceUse(before, after).MFU, "what the devices can do is not known")
}

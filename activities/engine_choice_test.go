package activities

import (
	"context"
	"errors"
	"sync"
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
	maker   *torchMaker
	devices int
}

func (c closing) Close() error {
	c.maker.mu.Lock()
	defer c.maker.mu.Unlock()
	c.maker.closed++
	c.maker.used -= c.devices
	return nil
}

// torchMaker offers what it is told to.
type torchMaker struct {
	offer          Offer
	none           error
	served         error // how ranks of other hosts' engines end
	mu             sync.Mutex
	opened, closed int
	devices        int
	used, most     int // devices of the engines that are open
}

func (m *torchMaker) Devices() int { return m.devices }

func (m *torchMaker) Serve(ctx context.Context, _ wire.RanksInput, room Room) error {
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
			d := &Deps{engines: newEnginePool(c.maker, nil)}
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

func TestDeviceUse(t *testing.T) {
	busy := 0.5
	before := policy.Usage{Trained: 100, TrainSeconds: 1, Flops: 1e9, PeakFlops: 1e10}
	after := policy.Usage{Trained: 1100, TrainSeconds: 3, Flops: 1.1e10, PeakFlops: 1e10, PeakBytes: 7, Busy: &busy}
	require.Equal(t, &wire.DeviceUse{PeakBytes: 7, Utilisation: &busy, MFU: new(0.5), TokensPerSec: new(500.0)}, deviceUse(before, after))
	require.Equal(t, &wire.DeviceUse{PeakBytes: 7, Utilisation: &busy}, deviceUse(after, after), "nothing was trained")
	after.PeakFlops = 0
	require.Nil(t, deviceUse(before, after).MFU, "what the devices can do is not known")
}

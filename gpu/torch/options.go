package torch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/policy"
)

// Devices that an engine runs on.
const (
	CPU  = "cpu"
	CUDA = "cuda"
)

// Types of the models' arithmetic. Parameters that train, their gradients and the optimiser are always float32.
const (
	Float32  = "float32"
	BFloat16 = "bfloat16"
)

// Options configure Open.
type Options struct {
	// Python is the interpreter; gpu/setup finds one.
	Python string
	// Ranks is the number of processes that share each model; 0 means one for each of UUIDs, or 1.
	// With several Hosts it is the share of one host.
	Ranks int
	// Hosts share each model; 0 means 1. With more, Gather brings the others for each start.
	Hosts  int
	Gather func(ctx context.Context) (Gang, error)
	// Device is CPU or CUDA; "" means CPU. With CUDA, UUIDs are the devices that the engine may see, in that order.
	// Without UUIDs the engine sees the devices of the host's CUDA_VISIBLE_DEVICES.
	Device string
	UUIDs  []string
	// Dtype is Float32 or BFloat16; "" means Float32 on a CPU and BFloat16 on a GPU.
	Dtype string
	// Deterministic makes equal calls give equal bits, on the same machine and software.
	Deterministic bool
	// Checkpointing is auto, on or off: whether a kept pass keeps its activations or computes them again.
	Checkpointing string
	// OffloadOptimizer keeps the optimiser's moments in the host's memory.
	OffloadOptimizer bool
	// LoRA trains an adapter for each model instead of the model itself; nil trains the whole model.
	LoRA *LoRA
	// Threads of each rank on the CPU; 0 shares GOMAXPROCS among the ranks.
	Threads int
	// Dir is where the engine makes its folder, which holds its socket and which Close removes. "" means the system's
	// temporary folder.
	Dir string

	// StartLimit bounds a start, from the command to the engine's greeting. Default two minutes.
	StartLimit time.Duration
	// HangLimit is how long a call may make no progress. Default five minutes: the first call on a GPU compiles
	// kernels.
	HangLimit time.Duration
	// CancelLimit is how long a cancelled call may take to end before the engine is killed. Default four seconds, so
	// that a cancellation takes at most five.
	CancelLimit time.Duration

	// Logger receives the engine's output; nil means slog.Default.
	Logger *slog.Logger
	// Estimate, if set, returns the estimated device memory in bytes of a training pass, from its number of tokens and
	// the length of its longest sequence. Errors about full memory include it.
	Estimate func(tokens, longest int) int64

	// meet is where the ranks of several hosts meet; each start has its own.
	meet *Rendezvous

	// command replaces the whole command line, for tests.
	command []string
	// stackGrace is how long the ranks of a hanging engine may take to write their stacks.
	stackGrace time.Duration
}

// withDefaults returns o with its defaults, or what is wrong with it.
func (o Options) withDefaults() (Options, error) {
	o.Device = cmp.Or(o.Device, CPU)
	o.Ranks = cmp.Or(o.Ranks, len(o.UUIDs), 1)
	o.Hosts = cmp.Or(o.Hosts, 1)
	o.Checkpointing = cmp.Or(o.Checkpointing, "auto")
	o.StartLimit = cmp.Or(o.StartLimit, 2*time.Minute)
	o.HangLimit = cmp.Or(o.HangLimit, 5*time.Minute)
	o.CancelLimit = cmp.Or(o.CancelLimit, 4*time.Second)
	o.stackGrace = cmp.Or(o.stackGrace, 2*time.Second)
	if o.Dtype == "" {
		o.Dtype = map[string]string{CPU: Float32, CUDA: BFloat16}[o.Device]
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Threads == 0 && o.Ranks > 0 {
		o.Threads = max(1, runtime.GOMAXPROCS(0)/o.Ranks)
	}
	return o, errors.Join(o.validate(), o.LoRA.validate())
}

func (o Options) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{policy.ErrBadRequest}, args...)...)
	}
	switch {
	case o.Python == "" && o.command == nil:
		return bad("no Python is named")
	case o.Device != CPU && o.Device != CUDA:
		return bad("device is %q, want %s or %s", o.Device, CPU, CUDA)
	case o.Dtype != Float32 && o.Dtype != BFloat16:
		return bad("dtype is %q, want %s or %s", o.Dtype, Float32, BFloat16)
	case !slices.Contains([]string{"auto", "on", "off"}, o.Checkpointing):
		return bad("checkpointing is %q, want auto, on or off", o.Checkpointing)
	case o.Ranks < 1:
		return bad("%d ranks", o.Ranks)
	case o.Hosts < 1:
		return bad("%d hosts", o.Hosts)
	case o.Hosts > 1 && o.Gather == nil && o.meet == nil:
		return bad("%d hosts need Gather, which brings the others", o.Hosts)
	case o.Threads < 1:
		return bad("%d threads", o.Threads)
	case len(o.UUIDs) > 0 && o.Device == CPU:
		return bad("devices %s are named for an engine on the CPU", strings.Join(o.UUIDs, ", "))
	case len(o.UUIDs) > 0 && len(o.UUIDs) != o.Ranks:
		return bad("%d devices for %d ranks", len(o.UUIDs), o.Ranks)
	case min(o.StartLimit, o.HangLimit, o.CancelLimit) < 0:
		return bad("a limit is negative")
	}
	return nil
}

package engine

import (
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// job is the argument of a side.
type job struct {
	Threads  int              `json:"threads"`
	BLAS     string           `json:"blas"`
	Shape    checkpoint.Shape `json:"shape"`
	Train    [2]int           `json:"train"`
	Generate [3]int           `json:"generate"`
}

// The commands to a side, which answers each with its cost.
const (
	commandTrain    = "train"
	commandGenerate = "generate"
)

// cost is what one command took.
type cost struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"` // of all threads
}

//go:embed peer.py
var peerScript string

// startSelf runs this program as the CPU engine's side, startPeer Python as PyTorch's.
func startSelf(ctx context.Context, j job) (*bench.Peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return bench.StartPeer(ctx, "the CPU engine's side", exec.Command(self, name, "-side", string(text)))
}

func startPeer(ctx context.Context, interpreter string, j job) (*bench.Peer, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return bench.StartScript(ctx, "PyTorch's side", exec.Command(interpreter), peerScript, string(text))
}

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

// The commands to a side, which answers each with the seconds that it took.
const (
	commandTrain    = "train"
	commandGenerate = "generate"
)

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

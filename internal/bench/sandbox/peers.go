package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// The program that peers run, and its output.
const (
	peerProgram = "print(1)"
	peerOutput  = "1\n"
)

// peer is another way of running a program, if it is installed.
type peer struct {
	name string
	open func(context.Context) (side, error)
}

func (b *benchmark) peers() []peer {
	python, _ := b.executor.Python()
	inFlight := b.executor.Workers()
	return []peer{
		{"bubblewrap", func(ctx context.Context) (side, error) {
			if _, err := exec.LookPath("bwrap"); err != nil {
				return side{}, bench.Skip("bwrap is not installed (Debian: apt-get install bubblewrap)")
			}
			return opened(ctx, side{name: "bubblewrap", isolated: true}, inFlight,
				command(append(bubblewrap, python, "-I", "-S", "-c", peerProgram)...))
		}},
		{"python", func(ctx context.Context) (side, error) {
			return opened(ctx, side{name: "python"}, inFlight, command(python, "-I", "-S", "-c", peerProgram))
		}},
		{"SandboxFusion", func(ctx context.Context) (side, error) {
			if b.fusion == "" {
				return side{}, bench.Skip("no address was given (-fusion)")
			}
			return opened(ctx, side{name: "SandboxFusion"}, inFlight, fusion(b.fusion))
		}},
	}
}

// bubblewrap has the fewest options that keep a program away from the host's processes, network and files.
var bubblewrap = []string{"bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc",
	"--dev", "/dev", "--tmpfs", "/tmp", "--"}

// opened tries a peer once and returns it as a side.
func opened(ctx context.Context, s side, inFlight int, call caller) (side, error) {
	if err := call(ctx); err != nil {
		return side{}, bench.Skip("it does not run here: %v", err)
	}
	s.close = func() error { return nil }
	s.measure = func(ctx context.Context, least time.Duration) (float64, error) {
		l, err := drive(ctx, call, inFlight, least)
		return l.perSecond(), err
	}
	return s, nil
}

// command runs a program, with an empty environment, that must print the peers' output.
func command(args ...string) caller {
	path, err := exec.LookPath(args[0])
	return func(ctx context.Context) error {
		if err != nil {
			return err
		}
		c := exec.CommandContext(ctx, path, args[1:]...)
		c.Env = []string{}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // like the sandbox and the limit; see limit.py
		var complaint strings.Builder
		c.Stderr = &complaint
		out, err := c.Output()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", args[0], err, lastLine(complaint.String()))
		}
		return same(args[0], string(out))
	}
}

func same(name, got string) error {
	if got != peerOutput {
		return fmt.Errorf("%s printed %q, want %q", name, got, peerOutput)
	}
	return nil
}

// fusion calls SandboxFusion's POST /run_code.
func fusion(address string) caller {
	return func(ctx context.Context) error {
		var answer struct {
			Run struct {
				Stdout string `json:"stdout"`
			} `json:"run_result"`
		}
		if err := post(ctx, address+"/run_code", map[string]string{"code": peerProgram, "language": "python"},
			&answer); err != nil {
			return err
		}
		return same("SandboxFusion", answer.Run.Stdout)
	}
}

// post sends JSON and reads JSON.
func post(ctx context.Context, address string, request, answer any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", address, response.Status, text)
	}
	return json.Unmarshal(text, answer)
}

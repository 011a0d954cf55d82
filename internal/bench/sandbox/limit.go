package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// limitScript forks warm interpreters, without isolation or transport.
var limitScript = filepath.Join("sandbox", "bench", "limit.py")

// limitSettings are the script's settings.
type limitSettings struct {
	Zygotes int      `json:"zygotes"`
	Path    []string `json:"path"`
	WarmUp  string   `json:"warm_up"`
	Program string   `json:"program"`
	Output  string   `json:"output"`
}

// startLimit starts as many warm interpreters as the sandbox has, of the same kind.
func (b *benchmark) startLimit(ctx context.Context) (side, error) {
	start, err := b.executor.Start(b.packages)
	if err != nil {
		return side{}, err
	}
	return limitSide(ctx, start, limitSettings{Zygotes: b.executor.Workers(), Path: append([]string{}, start.Path...),
		WarmUp:  start.WarmUp,
		Program: b.call.Code, Output: b.output})
}

func limitSide(ctx context.Context, start zygote.Start, told limitSettings) (side, error) {
	settings, err := json.Marshal(told)
	if err != nil {
		return side{}, err
	}
	command := exec.Command(start.Python, append(start.Flags, limitScript, string(settings))...)
	command.Env = start.Environment
	p, err := bench.StartPeer(ctx, limitScript, command)
	if err != nil {
		return side{}, err
	}
	s := side{name: theLimit, close: func() error {
		_, err := p.Close()
		return err
	}}
	s.measure = func(ctx context.Context, least time.Duration) (float64, error) {
		var answer struct {
			CallsPerS float64 `json:"calls_per_s"`
		}
		err := p.Ask(ctx, least.Seconds(), &answer)
		return answer.CallsPerS, err
	}
	if _, err := s.measure(ctx, 0); err != nil { // returns once it is warm
		return side{}, err
	}
	return s, nil
}

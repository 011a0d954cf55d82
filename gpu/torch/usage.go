package torch

import (
	"time"

	"github.com/ropewalk/ropewalk/gpu/wire"
)

// Usage is what an engine has used since Open, over all its processes.
type Usage struct {
	Starts       int     `json:"starts"`
	StartSeconds float64 `json:"start_seconds"`
	// Calls, and the seconds that they took on this side, in the engine, and in the models' own work. The difference
	// between the first and the last is the cost of the protocol.
	Calls         int     `json:"calls"`
	Seconds       float64 `json:"seconds"`
	EngineSeconds float64 `json:"engine_seconds"`
	TorchSeconds  float64 `json:"torch_seconds"`
	// Microbatches counts the forward passes that were kept. Tokens counts the tokens of all forward passes, Trained
	// those of backward passes, and Generated the sampled tokens.
	Microbatches int   `json:"microbatches"`
	Tokens       int64 `json:"tokens"`
	Trained      int64 `json:"trained"`
	Generated    int64 `json:"generated"`
	// TrainSeconds is the time of kept forward passes, backward passes and steps.
	TrainSeconds float64 `json:"train_seconds"`
	// Memory is the last known memory of the running process, and Peak the greatest of all processes. On a CPU both
	// are 0.
	Memory Memory `json:"memory"`
	Peak   int64  `json:"peak"`
}

// Since returns the usage after before. Memory is not a sum, so it stays that of u.
func (u Usage) Since(before Usage) Usage {
	u.Starts, u.StartSeconds = u.Starts-before.Starts, u.StartSeconds-before.StartSeconds
	u.Calls, u.Seconds = u.Calls-before.Calls, u.Seconds-before.Seconds
	u.EngineSeconds, u.TorchSeconds = u.EngineSeconds-before.EngineSeconds, u.TorchSeconds-before.TorchSeconds
	u.Microbatches, u.Tokens, u.Trained, u.Generated = u.Microbatches-before.Microbatches, u.Tokens-before.Tokens,
		u.Trained-before.Trained, u.Generated-before.Generated
	u.TrainSeconds -= before.TrainSeconds
	return u
}

// Usage is what the engine has used so far.
func (e *Engine) Usage() Usage {
	e.mu.Lock()
	defer e.mu.Unlock()
	u := e.usage
	memory, peak := e.live.pulse.use()
	u.Memory, u.Peak = memory, max(u.Peak, peak)
	return u
}

// account adds one call, answered or not.
func (e *Engine) account(p *process, c outgoing, a answer, took time.Duration) {
	seconds, torch := a.Time()
	_, peak := p.pulse.use()
	e.mu.Lock()
	defer e.mu.Unlock()
	u := &e.usage
	u.Calls++
	u.Seconds += took.Seconds()
	u.EngineSeconds += seconds
	u.TorchSeconds += torch
	u.Peak = max(u.Peak, peak)
	if c.trains {
		u.TrainSeconds += took.Seconds()
	}
}

// count changes the usage under its lock.
func (e *Engine) count(f func(*Usage)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.usage)
}

var _ answer = wire.Answer{}

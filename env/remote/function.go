package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// FunctionSettings name a user's reward function in Python.
type FunctionSettings struct {
	Module, Kwargs, Path, Interpreter string
	Digest                            string // of the code; "" = any
	Batch                             bool   // it takes a list of trajectories
	Seconds                           float64
}

// Fault says which setting is wrong, and why; "" if none is.
func (s FunctionSettings) Fault() (field, text string) {
	if s.Module != "" && !callable(s.Module) {
		return "module", "must be package:name, got " + s.Module
	}
	if _, err := s.kwargs(); err != nil {
		return "kwargs", err.Error()
	}
	if s.Path != "" && !filepath.IsAbs(s.Path) {
		return "path", "must be absolute, because workers read it too, got " + s.Path
	}
	if s.Digest != "" && !digestForm.MatchString(s.Digest) {
		return "code_sha256", "must be 64 hexadecimal digits in lower case, got " + s.Digest
	}
	return "", ""
}

func (s FunctionSettings) kwargs() (out map[string]any, err error) {
	if s.Kwargs == "" {
		return map[string]any{}, nil
	}
	if err := json.Unmarshal([]byte(s.Kwargs), &out); err != nil || out == nil {
		return nil, fmt.Errorf("must be a JSON object, got %s", s.Kwargs)
	}
	return out, nil
}

// limit is the time limit of a call.
func (s FunctionSettings) limit() time.Duration {
	return time.Duration(s.Seconds * float64(time.Second))
}

// callable reports whether a text is package:name.
func callable(module string) bool {
	pkg, name, ok := strings.Cut(module, ":")
	return ok && pkg != "" && name != ""
}

// Scored is a function's result for one trajectory.
type Scored struct {
	Score   float64
	Success *bool // nil if the function does not say
	Broken  error // nil if there is a result
}

// Functions holds the adapter processes of reward functions, one for each function. It is safe for concurrent use, and
// needs no closing: idle processes end.
type Functions struct {
	mu  sync.Mutex
	all map[FunctionSettings]*function
}

// function is a user's reward function.
type function struct {
	keeper[*process]
	settings FunctionSettings
	kwargs   map[string]any
}

// Limits of the calls of a function.
const (
	// mostResults bounds a reply in bytes.
	mostResults = 1 << 20
	// inBatch is the maximum number of trajectories in a call of a function that takes several.
	inBatch = 64
	// hopeless is the number of calls that break at the beginning after which no more are made.
	hopeless     = 8
	functionIdle = 2 * time.Minute
)

// named returns the function of settings.
func (f *Functions) named(s FunctionSettings) (*function, error) {
	if field, text := s.Fault(); text != "" {
		return nil, fmt.Errorf("reward.%s: %s", field, text)
	}
	if s.Module == "" {
		return nil, errors.New("reward.module: names no function")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.all[s]; got != nil {
		return got, nil
	}
	kwargs, err := s.kwargs()
	if err != nil {
		return nil, err
	}
	made := &function{settings: s, kwargs: kwargs}
	made.what = "the Python adapter"
	made.start = func() (*process, error) {
		c := code{interpreter(s.Interpreter), s.Module, "", s.Path, s.Digest, s.limit()}
		return startProcess(c, mostResults, functionIdle)
	}
	if f.all == nil {
		f.all = map[FunctionSettings]*function{}
	}
	f.all[s] = made
	return made, nil
}

// Code loads a function, and returns a line with the digest and the name of each file of its code that was imported.
func (f *Functions) Code(ctx context.Context, s FunctionSettings) (string, error) {
	fn, err := f.named(s)
	if err != nil {
		return "", err
	}
	files, err := codeOf(ctx, &fn.keeper)
	if err != nil {
		return "", fmt.Errorf("reward.module: %w", err)
	}
	return files, nil
}

// Score calls a function with trajectories and returns their results in order. A call that raises, hangs, or returns no
// finite number is Broken. It is an error if the context ends, if the code does not load, and if all of several calls
// break.
func (f *Functions) Score(ctx context.Context, s FunctionSettings, trajectories []map[string]any,
	progress func(done, total int)) ([]Scored, error) {
	fn, err := f.named(s)
	if err != nil {
		return nil, err
	}
	most := 1
	if s.Batch {
		most = inBatch
	}
	out := make([]Scored, 0, len(trajectories))
	broken := 0
	for len(out) < len(trajectories) {
		part := trajectories[len(out):min(len(trajectories), len(out)+most)]
		some := fn.scores(ctx, part)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, r := range some {
			if unloadable(r.Broken) {
				return nil, fmt.Errorf("reward.module: %w", r.Broken)
			}
			if r.Broken != nil {
				broken++
			}
		}
		out = append(out, some...)
		if broken == len(out) && (broken >= hopeless || broken == len(trajectories) && broken > 1) {
			return nil, CodeError{loads: true, err: fmt.Errorf("reward: the function %s gave no result for %d "+
				"trajectories: %w", s.Module, broken, out[0].Broken)}
		}
		progress(len(out), len(trajectories))
	}
	return out, nil
}

// scores calls the function with some trajectories. If a call with several breaks, each is tried alone.
func (f *function) scores(ctx context.Context, part []map[string]any) []Scored {
	got, err := f.call(ctx, part)
	switch {
	case err == nil:
		return got
	case len(part) == 1 || ctx.Err() != nil || unloadable(err):
		return []Scored{{Broken: err}}
	}
	out, broken := make([]Scored, 0, len(part)), 0
	for i := range part {
		if broken == hopeless && broken == len(out) { // the others would break too
			out = append(out, Scored{Broken: out[0].Broken})
			continue
		}
		one := f.scores(ctx, part[i:i+1])[0]
		if one.Broken != nil {
			broken++
		}
		out = append(out, one)
	}
	return out
}

// call calls the function once. If the process is lost, it is called once more: the process may have ended before.
func (f *function) call(ctx context.Context, part []map[string]any) ([]Scored, error) {
	request := map[string]any{"do": "score", "module": f.settings.Module, "path": f.settings.Path, "kwargs": f.kwargs,
		"batch": f.settings.Batch, "trajectories": part}
	for try := 1; ; try++ {
		at, err := f.running(time.Now())
		if err != nil {
			return nil, err
		}
		f.opened() // one that ends with a call is at once replaced for the next
		got, err := at.ask(ctx, f.settings.limit(), request)
		at.count(-1)
		if err == nil {
			return got.results(len(part))
		}
		if try == 2 || !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// results reads the scores of a reply.
func (r reply) results(n int) ([]Scored, error) {
	if len(r.Scores) != n {
		return nil, fmt.Errorf("the Python adapter returned %d scores for %d trajectories", len(r.Scores), n)
	}
	out := make([]Scored, n)
	for i, s := range r.Scores {
		switch {
		case s.Error != "":
			out[i].Broken = errors.New(s.Error)
		case s.Score == nil || math.IsInf(*s.Score, 0) || math.IsNaN(*s.Score):
			out[i].Broken = errors.New("the Python adapter returned no finite score")
		default:
			out[i].Score, out[i].Success = *s.Score, s.Success
		}
	}
	return out, nil
}

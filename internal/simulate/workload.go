package simulate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// maxRollouts and maxEngines bound a workload, so that a mistyped number is an error and not a full memory.
const (
	maxRollouts = 4_000_000
	maxEngines  = 4096
	maxTurns    = 4096
)

// defaultStretch is a compromise: shorter stretches waste less room, and ask the scheduler more often.
const defaultStretch = 512

// Workload is a workload file.
type Workload struct {
	About    string    `yaml:"about"`
	Seed     uint64    `yaml:"seed"`
	Engines  []Engines `yaml:"engines"`
	Rollouts []Batch   `yaml:"rollouts"`
	Tools    Service   `yaml:"tools"`
	Failures []Failure `yaml:"failures"`
	// Stretch is after how many tokens an engine can stop a turn, so that the scheduler decides again; 0 = only at its
	// end. The default is defaultStretch.
	Stretch *int `yaml:"stretch"`
	// Need stops the other rollouts of a group when this many have ended (scheduler.Settings.Need); 0 = off.
	Need int `yaml:"need"`
}

// Engines are engines of one kind.
type Engines struct {
	Count int `yaml:"count"`
	Model `yaml:",inline"`
}

// Batch is rollouts of one kind.
type Batch struct {
	Count      int          `yaml:"count"`
	Group      int          `yaml:"group"`      // rollouts of one prompt; 0 = 1
	Evaluation bool         `yaml:"evaluation"` // of the class evaluation
	Limit      int          `yaml:"limit"`      // tokens that a rollout may hold; it ends there
	Prompt     Distribution `yaml:"prompt"`     // tokens
	Turns      Distribution `yaml:"turns"`      // of a rollout
	Tokens     Distribution `yaml:"tokens"`     // that a turn generates
	Result     Distribution `yaml:"result"`     // tokens of a tool's answer
	Tool       Distribution `yaml:"tool"`       // seconds
	Verify     Distribution `yaml:"verify"`     // seconds that the verification of an answer takes
	// Difficulty is the sigma of a lognormal factor of the tokens that all turns of a group's rollouts share.
	Difficulty float64 `yaml:"difficulty"`
}

// Parse reads a workload file. Its errors name the field.
func Parse(name string, data []byte) (*Workload, error) {
	w := &Workload{}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(w); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file is empty", name)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := w.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return w, nil
}

func (w *Workload) validate() error {
	engines, rollouts := 0, 0
	for i, e := range w.Engines {
		if e.Count < 1 || e.Count > maxEngines {
			return fmt.Errorf("engines[%d].count: must be in [1, %d], got %d", i, maxEngines, e.Count)
		}
		if err := e.Model.validate(); err != nil {
			return fmt.Errorf("engines[%d].%w", i, err)
		}
		engines += e.Count
	}
	for i, b := range w.Rollouts {
		if err := b.validate(); err != nil {
			return fmt.Errorf("rollouts[%d].%w", i, err)
		}
		rollouts += b.Count
	}
	switch {
	case engines == 0 || engines > maxEngines:
		return fmt.Errorf("engines: must be 1 to %d, got %d", maxEngines, engines)
	case rollouts > maxRollouts:
		return fmt.Errorf("rollouts: must be at most %d, got %d", maxRollouts, rollouts)
	case w.Stretch != nil && (*w.Stretch < 0 || *w.Stretch > 1<<20):
		return fmt.Errorf("stretch: must be in [0, %d], got %d", 1<<20, *w.Stretch)
	case w.Need < 0:
		return fmt.Errorf("need: must be ≥ 0, got %d", w.Need)
	}
	for i, x := range w.Failures {
		if err := x.validate(engines); err != nil {
			return fmt.Errorf("failures[%d].%w", i, err)
		}
	}
	return w.Tools.validate()
}

func (b Batch) validate() error {
	switch {
	case b.Count < 1 || b.Count > maxRollouts:
		return fmt.Errorf("count: must be in [1, %d], got %d", maxRollouts, b.Count)
	case b.Group < 0 || b.Limit < 2:
		return fmt.Errorf("group and limit: must be ≥ 0 and ≥ 2, got %d and %d", b.Group, b.Limit)
	case !(b.Difficulty >= 0 && b.Difficulty <= 4):
		return fmt.Errorf("difficulty: must be in [0, 4], got %g", b.Difficulty)
	}
	for _, f := range []struct {
		name     string
		d        Distribution
		optional bool
	}{{"prompt", b.Prompt, false}, {"turns", b.Turns, false}, {"tokens", b.Tokens, false}, {"result", b.Result, true},
		{"tool", b.Tool, true}, {"verify", b.Verify, true}} {
		if f.optional && f.d.zero() {
			continue
		}
		if err := f.d.validate(f.name); err != nil {
			return err
		}
	}
	return nil
}

func (x Failure) validate(engines int) error {
	switch {
	case !(x.At >= 0) || x.At > 1e9:
		return fmt.Errorf("at: must be in [0, 1e9], got %g", x.At)
	case x.Engine < 0 || x.Engine >= engines:
		return fmt.Errorf("engine: must be in [0, %d), got %d", engines, x.Engine)
	case !slices.Contains([]string{eventLost, eventJoined, eventSlow}, x.Event):
		return fmt.Errorf("event: must be %s, %s or %s, got %q", eventLost, eventJoined, eventSlow, x.Event)
	case x.Event == eventSlow && !(x.Factor > 0 && x.Factor <= 1e6):
		return fmt.Errorf("factor: must be in (0, 1e6], got %g", x.Factor)
	}
	return nil
}

func (s Service) validate() error {
	if s == (Service{}) {
		return nil
	}
	if s.Senders < 1 || s.Batch < 1 || s.Nodes < 1 || s.Executors < 1 || !(s.Send >= 0 && s.Send <= 3600) {
		return fmt.Errorf("tools: senders, batch, nodes and executors must be ≥ 1 and send in [0, 3600], got %+v", s)
	}
	return nil
}

// Draw draws the workload's lengths and times from its seed. Every rollout has a stream of its own.
func (w *Workload) Draw() (*Job, error) {
	job := &Job{Tools: w.Tools, Need: w.Need, Failures: slices.Clone(w.Failures)}
	slices.SortStableFunc(job.Failures, func(a, b Failure) int { return cmp.Compare(a.At, b.At) })
	if job.Stretch = defaultStretch; w.Stretch != nil {
		job.Stretch = *w.Stretch
	}
	largest := 0
	for _, e := range w.Engines {
		for range e.Count {
			job.Engines = append(job.Engines, e.Model)
		}
		largest = max(largest, e.Tokens)
	}
	group := 0
	for k, b := range w.Rollouts {
		if b.Limit > largest {
			return nil, fmt.Errorf(
				"rollouts[%d].limit: %d tokens fit no engine; the largest holds %d",
				k,
				b.Limit,
				largest,
			)
		}
		size := max(b.Group, 1)
		for i := range b.Count {
			g := group + i/size
			factor := 1.0
			if b.Difficulty > 0 {
				own := rand.New(rand.NewPCG(w.Seed, uint64(g)<<1|1))
				factor = Distribution{Lognormal: &Lognormal{1, b.Difficulty}}.draw(own)
			}
			rng := rand.New(rand.NewPCG(w.Seed, uint64(len(job.Rollouts))<<1))
			r := b.draw(rng, factor)
			r.Group = g
			job.Rollouts = append(job.Rollouts, r)
		}
		group += (b.Count + size - 1) / size
	}
	if len(job.Rollouts) == 0 {
		return nil, errors.New("rollouts: there are none")
	}
	return job, nil
}

// draw draws one rollout. It ends where its limit is reached.
func (b *Batch) draw(rng *rand.Rand, factor float64) Rollout {
	r := Rollout{Most: b.Limit}
	if b.Evaluation {
		r.Class = scheduler.Evaluation
	}
	r.Prompt = min(max(int(b.Prompt.draw(rng)), 1), b.Limit-1)
	turns := min(max(int(b.Turns.draw(rng)), 1), maxTurns)
	r.Turns = make([]Turn, 0, turns)
	room := b.Limit - r.Prompt
	for k := range turns {
		t := Turn{Tokens: int32(min(max(b.Tokens.draw(rng)*factor, 1), float64(room)))}
		room -= int(t.Tokens)
		result, tool := max(int(min(b.Result.draw(rng), 1e9)), 0), b.Tool.draw(rng)
		if k+1 == turns || room-result < 1 { // the answer; or the result does not fit any more
			t.Tool = float32(b.Verify.draw(rng))
			r.Turns = append(r.Turns, t)
			break
		}
		room -= result
		t.Result, t.Tool = int32(result), float32(tool)
		r.Turns = append(r.Turns, t)
	}
	return r
}

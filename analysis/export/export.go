package export

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// Format is a way to write episodes.
type Format string

// The formats.
const (
	OpenAI  Format = "openai"
	SFT     Format = "sft"
	Parquet Format = "parquet"
)

// Ext is the file name extension of the format.
func (f Format) Ext() string {
	if f == Parquet {
		return ".parquet"
	}
	return "." + string(f) + ".jsonl"
}

// Only selects the episodes to write.
type Only string

// The selections.
const (
	All          Only = "all"           // with a reward; excluded ones have none
	Kept         Only = "kept"          // those that resampling kept
	Positive     Only = "positive"      // those with a reward above 0
	KeptPositive Only = "kept-positive" // both
)

// takes also leaves out excluded trajectories: without a reward they could only be mistaken for failures.
func (o Only) takes(e analysis.Episode) bool {
	if e.Reward == nil {
		return false
	}
	positive := e.Reward.Reward > 0
	switch o {
	case Kept:
		return e.Selection.Kept
	case Positive:
		return positive
	case KeptPositive:
		return e.Selection.Kept && positive
	}
	return true
}

// Options select the run, the steps and the episodes to write, and the format.
type Options struct {
	Run         string
	Format      Format
	Only        Only
	First, Last int // steps, inclusive; 0 and 0 for all
	// Gen is the generation to read of stages that have it; nil reads the generations that heads name.
	Gen *int
	// Progress is called after each step; it may be nil.
	Progress func(Progress)
}

// Progress counts what has been written.
type Progress struct {
	Steps, OfSteps int
	Episodes       int // written
	Skipped        int // episodes of those steps that were not selected
}

// ErrNoSteps means that a step asked for cannot be read.
var ErrNoSteps = errors.New("no such step is finished")

// Write writes a run's episodes to out, one step at a time in memory.
func Write(ctx context.Context, record *analysis.Record, out io.Writer, o Options) (Progress, error) {
	view, steps, err := visible(ctx, record, o)
	if err != nil {
		return Progress{}, err
	}
	name, err := view.Protocol(ctx)
	if err != nil {
		return Progress{}, err
	}
	buffered := bufio.NewWriter(out)
	sink, err := newSink(o.Format, buffered, opening(name))
	if err != nil {
		return Progress{}, err
	}
	if l, ok := sink.(lines); ok && o.Format == SFT {
		if l.tools, err = toolsOf(ctx, view, name); err != nil {
			return Progress{}, err
		}
		sink = l
	}
	p := Progress{OfSteps: len(steps)}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		episodes, err := view.Episodes(ctx, step)
		if err != nil {
			return p, err
		}
		chosen := slices.DeleteFunc(slices.Clone(episodes), func(e analysis.Episode) bool { return !o.Only.takes(e) })
		if err := sink.write(o.Run, step, chosen); err != nil {
			return p, err
		}
		p.Steps, p.Episodes, p.Skipped = p.Steps+1, p.Episodes+len(chosen), p.Skipped+len(episodes)-len(chosen)
		if o.Progress != nil {
			o.Progress(p)
		}
	}
	if err := sink.close(); err != nil {
		return p, err
	}
	return p, buffered.Flush()
}

// visible finds the view and the steps that the options choose.
func visible(ctx context.Context, record *analysis.Record, o Options) (*analysis.Visible, []int, error) {
	if o.Gen != nil {
		record = record.WithGeneration(analysis.Numbered(*o.Gen))
	}
	// A gap outside the steps to write does not affect them.
	record = record.WithGaps(func(gap *analysis.GapError) error {
		if o.First > 0 && !gap.Within(o.First, o.Last) {
			return nil
		}
		return gap
	})
	view, err := record.Visible(ctx, o.Run)
	if err != nil {
		return nil, nil, err
	}
	steps := view.Steps()
	if o.Gen != nil {
		steps = view.StepsOf(*o.Gen)
	}
	have := analysis.StepsInWords(steps)
	if all := view.Steps(); o.First > 0 && len(all) > 0 && (o.First < all[0] || o.Last > all[len(all)-1]) {
		return nil, nil, fmt.Errorf("%w: steps %d to %d are asked for, and run %s has %s", ErrNoSteps, o.First, o.Last,
			o.Run, analysis.StepsInWords(all))
	}
	if o.First > 0 {
		steps = slices.DeleteFunc(steps, func(s int) bool { return s < o.First || s > o.Last })
	}
	if len(steps) == 0 {
		return nil, nil, fmt.Errorf("%w: run %s has %s", ErrNoSteps, o.Run, have)
	}
	return view, steps, nil
}

// sink writes a step's episodes in one format.
type sink interface {
	write(run string, step int, episodes []analysis.Episode) error
	// close ends the file, but leaves the underlying writer open.
	close() error
}

// opening returns what the prompts of a protocol have written of each response.
func opening(name string) string {
	p, err := protocolOf(name)
	if err != nil {
		return ""
	}
	return p.Spec().Opening
}

// protocolOf finds a protocol. Recipes that name none have RStar2's.
func protocolOf(name string) (protocol.Protocol, error) {
	return protocol.Named(cmp.Or(name, protocol.RStar2{}.Spec().Name))
}

func newSink(f Format, w io.Writer, opening string) (sink, error) {
	switch f {
	case OpenAI:
		return lines{w: w, opening: opening, line: openaiLine}, nil
	case SFT:
		return lines{w: w, opening: opening, line: sftLine}, nil
	case Parquet:
		return table{schema.NewEpisodeWriter(w), opening}, nil
	}
	return nil, fmt.Errorf("export: no format %q", f)
}

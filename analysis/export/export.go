package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ropewalk/ropewalk/analysis"
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

// Only says which episodes are written.
type Only string

// The choices.
const (
	All          Only = "all"           // with a reward; excluded ones have none
	Kept         Only = "kept"          // those that resampling kept
	Positive     Only = "positive"      // those with a reward above 0
	KeptPositive Only = "kept-positive" // both
)

// takes leaves out what was excluded, too: without a reward it could only be taken for a failure.
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

// Options say what of a run is written.
type Options struct {
	Run         string
	Format      Format
	Only        Only
	First, Last int // steps, inclusive; 0 and 0 for all
	// Gen is the generation whose stage manifests are read where a step has some; nil reads what
	// heads name.
	Gen *int
	// Progress is told after each step; nil is fine.
	Progress func(Progress)
}

// Progress counts what has been written.
type Progress struct {
	Steps, OfSteps int
	Episodes       int // written
	Skipped        int // of those steps, not chosen
}

// ErrNoSteps: none of the steps that were asked for can be read.
var ErrNoSteps = errors.New("no such step is finished")

// Write writes a run's episodes to out, one step at a time in memory.
func Write(ctx context.Context, record *analysis.Record, out io.Writer, o Options) (Progress, error) {
	view, steps, err := visible(ctx, record, o)
	if err != nil {
		return Progress{}, err
	}
	buffered := bufio.NewWriter(out)
	sink, err := newSink(o.Format, buffered)
	if err != nil {
		return Progress{}, err
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
	view, err := record.Visible(ctx, o.Run)
	if err != nil {
		return nil, nil, err
	}
	steps := view.Steps()
	if o.Gen != nil {
		steps = view.StepsOf(*o.Gen)
	}
	have := words(steps)
	if o.First > 0 {
		steps = slices.DeleteFunc(steps, func(s int) bool { return s < o.First || s > o.Last })
	}
	if len(steps) == 0 {
		return nil, nil, fmt.Errorf("%w: run %s has %s", ErrNoSteps, o.Run, have)
	}
	return view, steps, nil
}

// words names the steps that there are.
func words(steps []int) string {
	switch n := len(steps); n {
	case 0:
		return "none"
	case 1:
		return fmt.Sprintf("step %d", steps[0])
	default:
		return fmt.Sprintf("%d steps, from %d to %d", n, steps[0], steps[n-1])
	}
}

// sink writes a step's episodes in one format.
type sink interface {
	write(run string, step int, episodes []analysis.Episode) error
	// close ends the file, and leaves what it was written to open.
	close() error
}

func newSink(f Format, w io.Writer) (sink, error) {
	switch f {
	case OpenAI:
		return lines{w, openaiLine}, nil
	case SFT:
		return lines{w, sftLine}, nil
	case Parquet:
		return table{schema.NewEpisodeWriter(w)}, nil
	}
	return nil, fmt.Errorf("export: no format %q", f)
}

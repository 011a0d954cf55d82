package analysis

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/ropewalk/ropewalk/schema"
)

// Cost is what a run has used, as far as its record tells. Attempts that failed are not part of it: only the one that
// committed is measured.
type Cost struct {
	Trajectories int64
	Objects      int64 // that the run has put and not deleted since
	Bytes        int64 // of these
	Activities   int64
	CPUSeconds   float64
	// GPUSeconds is the time of the stages whose engine was on devices, for each of the engine's devices.
	GPUSeconds float64
	// From and To are the beginning of the first activity and the end of the last one, pauses included.
	From, To time.Time
}

// Cost adds up what a run has used. What it shares with other runs, such as its warm start or the first steps of a
// fork, is not part of it.
func (r *Record) Cost(ctx context.Context, run string) (Cost, error) {
	out := Cost{}
	v, err := r.Visible(ctx, run)
	if err != nil {
		return out, err
	}
	v = v.alone(ctx)
	objects, err := r.objects.List(ctx, schema.RunPrefix(run))
	if err != nil {
		return out, fmt.Errorf("list the objects of run %s: %w", run, err)
	}
	for _, o := range objects {
		out.Objects++
		out.Bytes += o.Size
	}
	var recipe struct {
		Engine struct {
			Devices int `json:"devices"`
		} `json:"engine"`
	}
	if err := v.Recipe(ctx, &recipe); err != nil {
		return out, err
	}
	rows, err := v.timings(ctx)
	if err != nil {
		return out, err
	}
	out.Add(rows, max(recipe.Engine.Devices, 1))
	var figures RunFigures
	if err := figures.count(ctx, v); err != nil {
		return out, err
	}
	out.Trajectories = figures.Trajectories
	return out, nil
}

// Add adds measured activities, whose engine has a number of devices. The times of what was adopted are lost.
func (c *Cost) Add(rows []schema.TimingRow, devices int) {
	for _, t := range rows {
		seconds, ok := t.Seconds()
		if !ok || t.Adopted != nil && *t.Adopted {
			continue
		}
		from, to := time.UnixMicro(t.StartMicros).UTC(), time.UnixMicro(*t.EndMicros).UTC()
		if c.Activities == 0 || from.Before(c.From) {
			c.From = from
		}
		if to.After(c.To) {
			c.To = to
		}
		c.Activities++
		c.CPUSeconds += t.CPUSeconds
		if t.DevicePeakBytes != nil {
			c.GPUSeconds += seconds * float64(devices)
		}
	}
}

// Write prints what the run has used, in all and per 1,000 trajectories.
func (c Cost) Write(out io.Writer) error {
	fmt.Fprintf(out, "used by %d activities in %s\n", c.Activities, c.To.Sub(c.From).Truncate(time.Second))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tin all\tper 1,000 trajectories\t")
	line := func(name, format string, x float64) {
		per := "–"
		if c.Trajectories > 0 {
			per = fmt.Sprintf(format, x*1000/float64(c.Trajectories))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", name, fmt.Sprintf(format, x), per)
	}
	line("objects", "%.0f", float64(c.Objects))
	line("bytes", "%.0f", float64(c.Bytes))
	line("CPU seconds", "%.1f", c.CPUSeconds)
	line("GPU seconds", "%.1f", c.GPUSeconds)
	return w.Flush()
}

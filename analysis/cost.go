package analysis

import (
	"context"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/schema"
)

// Cost is what a run has used, as far as its record tells. Attempts that failed are not part of it: only the one that
// committed is measured.
type Cost struct {
	Run          string `json:"run_id"`
	Trajectories int64  `json:"trajectories"`
	Objects      int64  `json:"objects"` // that the run has put and not deleted since
	Bytes        int64  `json:"bytes"`   // of these
	// Seconds is the time from the run's first activity to its last, pauses included.
	Seconds    float64 `json:"seconds"`
	Activities int64   `json:"activities"`
	CPUSeconds float64 `json:"cpu_seconds"`
	// GPUSeconds is the time of the stages whose engine was on devices, for each of the engine's devices.
	GPUSeconds float64 `json:"gpu_seconds"`
	// From and To are the beginning of the first activity and the end of the last one.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Cost adds up what a run has used. What it shares with other runs, such as its warm start, is not part of it.
func (r *Record) Cost(ctx context.Context, run string) (Cost, error) {
	out := Cost{Run: run}
	v, err := r.Visible(ctx, run)
	if err != nil {
		return out, err
	}
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
	if err := v.recipe(ctx, &recipe); err != nil {
		return out, err
	}
	manifests, err := v.withoutHead(ctx, schema.Timings, timingsStep, timingsRun)
	if err != nil {
		return out, err
	}
	pieces, err := rowsOf[schema.TimingRow](ctx, v, shardsOf(schema.Timings, manifests))
	if err != nil {
		return out, err
	}
	for _, rows := range pieces {
		out.Add(rows, max(recipe.Engine.Devices, 1))
	}
	out.Seconds = out.To.Sub(out.From).Seconds()
	var figures RunFigures
	if err := v.count(ctx, &figures); err != nil {
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

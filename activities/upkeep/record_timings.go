package upkeep

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// RecordTimings keeps the measured times of a step's activities in the timings table, which no stage reads. No head
// names its manifest. Instead, the manifest names the timings manifests that were committed before it, so that verify
// detects one that was exchanged. Where a worker belongs to a deployment, the times of a step also tell the run whether
// another build is current by now: it is the activity of every step that runs next to the run's own workflow.
type RecordTimings struct{ *stage.Worker }

// Execute commits one row for each activity execution.
func (a RecordTimings) Execute(ctx context.Context, e *stage.Env, in api.RecordTimingsInput) (out api.TimingsRecorded,
	err error) {
	out.Timing = api.Timing{Stage: stages.Timings, Shard: -1, Turn: -1}
	err = a.Track(ctx, e, in.Scope, &out.Timing, func(ctx context.Context, _ *stage.Progress) (err error) {
		if in.Lost {
			if in.Timings, err = a.adoptedTimes(ctx, in, out.Timing); err != nil {
				return err
			}
		}
		rows := make([]schema.TimingRow, len(in.Timings))
		for i, t := range in.Timings {
			rows[i] = schema.TimingRow{
				Stage: t.Stage, Shard: int32(t.Shard), Turn: int32(t.Turn), Kind: "activity", Call: -1,
				StartMicros: t.Start, EndMicros: new(t.End), QueueSeconds: t.Queue, CPUSeconds: t.CPU,
				Attempt: int32(t.Attempt), Host: t.Host, Rows: t.Rows, Tokens: t.Tokens,
			}
			rows[i].Traced(t.TraceID, t.SpanID)
			if t.Adopted {
				rows[i].Adopted = new(true)
			}
			if d := t.Device; d != nil {
				rows[i].DeviceUtilisation, rows[i].MFU, rows[i].TrainTokensPerS = d.Utilisation, d.MFU, d.TokensPerSec
				if d.PeakBytes > 0 {
					rows[i].DevicePeakBytes = &d.PeakBytes
				}
			}
		}
		s := stage.Spec{Scope: in.Scope, Stage: stage.TimingsOf + in.Part, Turn: -1, Shard: -1}
		if in.Shard != nil {
			s.Shard = *in.Shard
		}
		if s.Inputs, err = a.earlier(ctx, in); err != nil {
			return err
		}
		if err := a.RecordTimings(ctx, s, rows); err != nil {
			return err
		}
		a.traceStep(in)
		if in.Part == "step" && in.Shard == nil {
			out.Superseded = isSuperseded(ctx, a.Worker)
		}
		return nil
	})
	return out, err
}

// isSuperseded reports whether another build than this worker's is current. The next step asks again if the server
// does not answer.
func isSuperseded(ctx context.Context, d *stage.Worker) bool {
	if d.Superseded == nil {
		return false
	}
	superseded, err := d.Superseded(ctx)
	if err != nil {
		slog.WarnContext(ctx, "look up the current build; the run stays on this one for another step", "error", err)
	}
	return err == nil && superseded
}

// traceStep records the span of a whole step: from the first of its executions to the end of the last.
func (a RecordTimings) traceStep(in api.RecordTimingsInput) {
	if in.Lost || in.Part != "step" || in.Shard != nil || in.Step == api.InitStep || len(in.Timings) == 0 {
		return
	}
	begin, end := in.Timings[0].Start, in.Timings[0].End
	for _, t := range in.Timings {
		begin, end = min(begin, t.Start), max(end, t.End)
	}
	a.Tracer.Root(in.Run, in.Step, in.Gen, time.UnixMicro(begin), time.UnixMicro(end))
}

// readsAtOnce is how many manifests are looked up concurrently.
const readsAtOnce = 8

// earlier returns the timings manifests that a timings manifest names: those of its calls and shards, and those of
// the previous step. It leaves out manifests that are not committed yet, or whose recording a person skipped.
func (a RecordTimings) earlier(ctx context.Context, in api.RecordTimingsInput) ([]schema.Ref, error) {
	places, err := a.before(ctx, in)
	if err != nil {
		return nil, err
	}
	found := make([]*schema.Ref, len(places))
	err = rescue.Each(ctx, readsAtOnce, len(places), func(ctx context.Context, i int) error {
		_, ref, ok, err := a.Record.Lookup(ctx, places[i])
		if ok {
			found[i] = &ref
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []schema.Ref
	for _, ref := range found {
		if ref != nil && !slices.Contains(out, *ref) {
			out = append(out, *ref)
		}
	}
	return out, nil
}

// before returns the places where the manifests that these times name may be.
func (a RecordTimings) before(ctx context.Context, in api.RecordTimingsInput) ([]schema.Place, error) {
	if in.Shard != nil {
		return measuredIn(in, in.Gen), nil
	}
	at := func(step int, name string) schema.Place {
		return stage.Spec{Scope: api.Scope{Run: in.Run, Step: step, Gen: in.Gen}, Stage: name, Turn: -1,
			Shard: -1}.Place()
	}
	switch {
	case in.Step == api.InitStep:
		return nil, nil
	case stage.TimingsOf+in.Part == stage.TimingsRun:
		return []schema.Place{at(in.Step, stage.TimingsStep)}, nil
	case in.Step == 1:
		return a.ofStep(ctx, in, at(api.InitStep, stage.TimingsRun))
	}
	return a.ofStep(ctx, in, at(in.Step-1, stage.TimingsStep), at(in.Step-1, stage.TimingsRun))
}

// ofStep adds the places of a step's shards and calls. The step is finished: its head names the last generation of
// its rollout, which the step's own timings do not know.
func (a RecordTimings) ofStep(ctx context.Context, in api.RecordTimingsInput, before ...schema.Place) ([]schema.Place,
	error) {
	gen := in.Gen
	head, _, found, err := a.Record.Head(ctx, in.Run, strconv.Itoa(in.Step))
	if err != nil {
		return nil, err
	}
	if found {
		gen = head.Generations[schema.StageReward]
	}
	return append(before, measuredIn(in, gen)...), nil
}

// measuredIn returns the places of the measured times of the calls and shards that the rows are about. A shard whose
// rollout has no row here has recorded its times itself.
func measuredIn(in api.RecordTimingsInput, gen int) []schema.Place {
	at := schema.At(in.Run, in.Step, stage.TimingsCalls).WithGen(gen)
	var out []schema.Place
	here, scored := map[int]bool{}, map[int]bool{}
	for _, t := range in.Timings {
		switch t.Stage {
		case schema.StageSandbox:
			out = append(out, at.WithTurn(t.Turn).WithShard(t.Shard))
		case schema.StageRollout:
			here[t.Shard] = true
		case schema.StageReward:
			scored[t.Shard] = true
		}
	}
	at.Stage = stage.TimingsStep
	for _, shard := range slices.Sorted(maps.Keys(scored)) {
		if !here[shard] {
			out = append(out, at.WithShard(shard))
		}
	}
	return out
}

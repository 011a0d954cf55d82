package analysis

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/schema"
)

// Mismatch says how far apart inference servers and the trainer were in a step, with the same weights: the absolute
// differences between their log-probabilities of the kept tokens, in nats (rl/diagnose, Mismatch).
type Mismatch struct {
	Tokens int
	Mean   float64
	P99    float64 // the greatest of the shards' 99th percentiles
	Max    float64
	Beyond float64 // share of tokens whose probabilities differ by more than 1%
}

// mismatches reads the differences of all finished steps that servers have sampled.
func (v *Visible) mismatches(ctx context.Context) (map[int]*Mismatch, error) {
	out := map[int]*Mismatch{}
	if v.prepare.Note[schema.NoteServers] == "" { // the engine itself has sampled
		return out, nil
	}
	for _, h := range v.heads {
		manifests, err := v.record.manifests(ctx, h.Stages[schema.StageLogprobs])
		if err != nil {
			return nil, err
		}
		var all Mismatch
		for _, m := range manifests {
			n := m.Stats[schema.StatMismatchTokens]
			all.Tokens += int(n)
			all.Mean += n * m.Stats[schema.StatMismatchMean]
			all.Beyond += n * m.Stats[schema.StatMismatchBeyond]
			all.P99 = max(all.P99, m.Stats[schema.StatMismatchP99])
			all.Max = max(all.Max, m.Stats[schema.StatMismatchMax])
		}
		if step, ok := stepOf(h.Step); ok && all.Tokens > 0 {
			all.Mean, all.Beyond = all.Mean/float64(all.Tokens), all.Beyond/float64(all.Tokens)
			out[step] = &all
		}
	}
	return out, nil
}

// String describes the differences in one line.
func (m Mismatch) String() string {
	return fmt.Sprintf("servers and trainer apart: mean %.2g nats per token, 99%% up to %.2g, at most %.2g; %.1f%% of "+
		"%d tokens beyond 1%%", m.Mean, m.P99, m.Max, 100*m.Beyond, m.Tokens)
}

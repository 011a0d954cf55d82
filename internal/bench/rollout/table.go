package main

import (
	"bytes"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/history"
)

// step is the rollout of one step: from its first generated turn to its last tool call.
type step struct {
	Step      int     `json:"step"`
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor_seconds"` // of the worker and its sandbox
	Ratio     float64 `json:"ratio"`
	Tokens    float64 `json:"tokens"`
}

// median holds the medians of one mode: of all steps for a rollout, of all runs for the rest.
type median struct {
	Mode          string  `json:"mode"`
	Seconds       float64 `json:"seconds"`
	Processor     float64 `json:"processor_seconds"`
	Ratio         float64 `json:"ratio"`
	TokensPerS    float64 `json:"tokens_per_s"`
	Orchestration float64 `json:"orchestration_share"`
	RLSeconds     float64 `json:"rl_seconds"`
	// Load is no median but that of the step with the most events for each that it may have.
	Load history.Load `json:"load"`
}

func summarise(all []measured) (out []median) {
	for _, mode := range modes {
		var seconds, processor, ratio, rate, orchestration, rl []float64
		var load history.Load
		for _, m := range all {
			if m.Mode != mode {
				continue
			}
			orchestration, rl = append(orchestration, m.Orchestration), append(rl, m.RLSeconds)
			for _, l := range m.Loads {
				if l.Over() > load.Over() {
					load = l
				}
			}
			for _, s := range m.Steps {
				seconds, processor = append(seconds, s.Seconds), append(processor, s.Processor)
				ratio, rate = append(ratio, s.Ratio), append(rate, s.Tokens/s.Seconds)
			}
		}
		if len(seconds) == 0 {
			continue
		}
		out = append(out, median{mode, bench.Median(seconds), bench.Median(processor), bench.Median(ratio),
			bench.Median(rate), bench.Median(orchestration), bench.Median(rl), load})
	}
	return out
}

func table(medians []median) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "mode\trollout\tprocessor\tratio to the bound\ttokens/s\torchestration\tRL\tevents of a step")
	for _, m := range medians {
		fmt.Fprintf(w, "%s\t%.2f s\t%.2f s\t%.2f\t%.0f\t%.1f%%\t%.1f s\t%.0f\n", m.Mode, m.Seconds, m.Processor,
			m.Ratio, m.TokensPerS, 100*m.Orchestration, m.RLSeconds, m.Load.Events)
	}
	_ = w.Flush() // a bytes.Buffer returns no error
	if len(medians) == len(modes) {
		fmt.Fprintf(&b, "rollout of staged / interleaved: %.2f\n", medians[1].Seconds/medians[0].Seconds)
	}
	return b.String()
}

// activities says of the last interleaved run how much of its activities others hide.
func activities(all []measured) string {
	for _, m := range slices.Backward(all) {
		if m.Mode != modes[0] {
			continue
		}
		var b bytes.Buffer
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "activities of run %s\tcount\tseconds\twhile none of another type ran\n", m.Run)
		for _, o := range m.Overlaps {
			fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\n", o.Activity, o.Count, o.Seconds, o.Alone)
		}
		_ = w.Flush() // a bytes.Buffer returns no error
		return b.String()
	}
	return ""
}

package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/workflows"
)

// runReport is what `ropewalk run --json` prints.
type runReport struct {
	Run                string                 `json:"run_id"`
	Recipe             string                 `json:"recipe"`
	Seed               uint64                 `json:"seed"`
	Status             string                 `json:"status"`
	Steps              int                    `json:"steps"`
	Warm               wire.EvaluationSummary `json:"warm_start"`
	Final              wire.EvaluationSummary `json:"final"`
	Trajectories       int64                  `json:"trajectories"`
	Excluded           int64                  `json:"excluded"`
	ToolCalls          int64                  `json:"tool_calls"`
	Tokens             int64                  `json:"tokens"`
	WallSeconds        float64                `json:"wall_seconds"`
	RLSeconds          float64                `json:"rl_seconds"`
	StandstillSeconds  float64                `json:"standstill_seconds"`
	WarmStartSeconds   float64                `json:"warm_start_seconds"`
	EvalSeconds        float64                `json:"eval_seconds"`
	StageSeconds       map[string]float64     `json:"stage_seconds"`
	OrchestrationShare float64                `json:"orchestration_share"`
	PeakRSSMB          float64                `json:"peak_rss_mb"`
	MaxPayloadBytes    int                    `json:"max_payload_bytes"`
	CheckpointDigest   string                 `json:"checkpoint_digest"`
	Machine            machine.Machine        `json:"machine"`
}

// report gathers a finished run's figures from the record, the histories and the stack.
func (s *session) report(ctx context.Context, run string, result workflows.TrainRunResult, wall time.Duration) (runReport, error) {
	figures, err := analysis.New(s.store).Figures(ctx, run)
	if err != nil {
		return runReport{}, err
	}
	payload, err := maxPayload(ctx, s.temporal, run)
	if err != nil {
		return runReport{}, err
	}
	peak, err := s.lease.PeakMB(ctx, false)
	if err != nil {
		return runReport{}, fmt.Errorf("ask the stack for its peak memory: %w", err)
	}
	return runReport{
		Run: run, Recipe: result.Recipe, Seed: result.Seed, Status: "done", Steps: result.Steps, Warm: result.Warm, Final: result.Final,
		Trajectories: figures.Trajectories, Excluded: figures.Excluded, ToolCalls: figures.ToolCalls, Tokens: figures.Tokens,
		WallSeconds: wall.Seconds(), RLSeconds: figures.RLSeconds, StandstillSeconds: figures.StandstillSeconds, WarmStartSeconds: figures.WarmStartSeconds,
		EvalSeconds: figures.EvalSeconds, StageSeconds: figures.StageSeconds, OrchestrationShare: figures.OrchestrationShare,
		PeakRSSMB: peak, MaxPayloadBytes: payload, CheckpointDigest: result.Policy.Digest, Machine: result.Machine,
	}, nil
}

// maxPayload is the largest payload in the histories of a run and its steps, in bytes.
func maxPayload(ctx context.Context, c client.Client, run string) (int, error) {
	return payloads{client: c}.largest(ctx, run)
}

// printReport says how the run went and what to try next.
func (a *app) printReport(r runReport, s *session) {
	w := a.err
	fmt.Fprintf(w, "\nsuccess     %s → %s   (sampled, held-out problems)\n", interval(r.Warm.Rate), interval(r.Final.Rate))
	fmt.Fprintf(w, "greedy      %.1f%% → %.1f%%\n", 100*r.Warm.Greedy, 100*r.Final.Greedy)
	var levels []string
	for level := range r.Final.ByLevel {
		levels = append(levels, level)
	}
	sort.Strings(levels)
	for _, level := range levels {
		fmt.Fprintf(w, "  level %s   %s → %s\n", level, interval(r.Warm.ByLevel[level]), interval(r.Final.ByLevel[level]))
	}
	fmt.Fprintf(w, "tool errors %.1f%% → %.1f%%   (inside positive trajectories)\n", 100*r.Warm.ToolErrorRatePositives, 100*r.Final.ToolErrorRatePositives)
	fmt.Fprintf(w, "time        warm start %.0f s, reinforcement learning %.0f s, evaluation %.0f s", r.WarmStartSeconds, r.RLSeconds, r.EvalSeconds)
	if r.StandstillSeconds > 0 {
		fmt.Fprintf(w, ", standstill %.0f s (paused, parked or interrupted)", r.StandstillSeconds)
	}
	fmt.Fprintf(w, "; this command %.0f s\n", r.WallSeconds)
	fmt.Fprintf(w, "  stages    %s, orchestration %.1f%%\n", stageShares(r.StageSeconds), 100*r.OrchestrationShare)
	fmt.Fprintf(w, "work        %d trajectories, %d tool calls, %d tokens sampled\n", r.Trajectories, r.ToolCalls, r.Tokens)
	if r.Excluded > 0 {
		fmt.Fprintf(w, "excluded    %d trajectories that the engine, the sandbox or the reward broke on: %s show %s --step N says why\n", r.Excluded, os.Args[0], r.Run)
	}
	fmt.Fprintf(w, "machine     %s, %d cores; %s, %d threads; peak memory %.0f MB\n", r.Machine.CPU, r.Machine.Cores, r.Machine.BLAS, r.Machine.Threads, r.PeakRSSMB)
	if r.Machine.Advice != "" {
		fmt.Fprintf(w, "            %s\n", r.Machine.Advice)
	}
	if r.Machine.Engine != "" {
		fmt.Fprintf(w, "engine      %s\n", r.Machine.Engine)
	}
	if r.Machine.Sandbox != "" {
		fmt.Fprintf(w, "sandbox     tier %s\n", r.Machine.Sandbox)
	}
	address := s.lease.Addresses()
	fmt.Fprintf(w, "record      bucket %s, runs/run=%s/%s\n", address.S3Bucket, r.Run, folderNote(address))
	fmt.Fprintf(w, "checkpoint  %s\n", r.CheckpointDigest)
	fmt.Fprintf(w, "\nnext:\n  %[1]s show %[2]s --step %[3]d\n  %[1]s sql \"select step, avg(reward) from rewards group by 1 order by 1\"\n  %[1]s verify %[2]s\n", os.Args[0], r.Run, r.Steps)
	if address.UI != "" {
		fmt.Fprintf(w, "  the run in Temporal's UI: %s/namespaces/%s/workflows/%s\n", strings.TrimSuffix(address.UI, "/"), address.Namespace, r.Run)
	}
}

func interval(r wire.Rate) string {
	return fmt.Sprintf("%.1f%% [%.1f, %.1f]", 100*r.Success, 100*r.CILow, 100*r.CIHigh)
}

// stageShares lists the stages by the time that they took.
func stageShares(seconds map[string]float64) string {
	var names []string
	for name := range seconds {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		if seconds[names[i]] != seconds[names[j]] {
			return seconds[names[i]] > seconds[names[j]]
		}
		return names[i] < names[j]
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %.1f", name, seconds[name]))
	}
	return strings.Join(parts, ", ")
}

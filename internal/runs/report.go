package runs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// TrainReport is what `ropewalk run --json` prints.
type TrainReport struct {
	Run                string                `json:"run_id"`
	Recipe             string                `json:"recipe"`
	Seed               uint64                `json:"seed"`
	Status             string                `json:"status"`
	Steps              int                   `json:"steps"`
	Warm               api.EvaluationSummary `json:"warm_start"`
	Final              api.EvaluationSummary `json:"final"`
	Trajectories       int64                 `json:"trajectories"`
	Excluded           int64                 `json:"excluded"`
	ToolCalls          int64                 `json:"tool_calls"`
	Tokens             int64                 `json:"tokens"`
	WallSeconds        float64               `json:"wall_seconds"`
	RLSeconds          float64               `json:"rl_seconds"`
	StandstillSeconds  float64               `json:"standstill_seconds"`
	WarmStartSeconds   float64               `json:"warm_start_seconds"`
	EvalSeconds        float64               `json:"eval_seconds"`
	StageSeconds       map[string]float64    `json:"stage_seconds"`
	OrchestrationShare float64               `json:"orchestration_share"`
	PeakRSSMB          float64               `json:"peak_rss_mb"`
	CheckpointDigest   string                `json:"checkpoint_digest"`
	Machine            machine.Machine       `json:"machine"`
	// BeforeTraining are the properties of the world before training; empty for a record that has none.
	BeforeTraining []analysis.Offer `json:"before_training,omitempty"`
	// ErrorRates compare the first with the last step.
	ErrorRates []analysis.ErrorRate `json:"error_rates,omitempty"`
	// ColdStart compares the policies before and after the warm start; nil if the run measures only the latter.
	ColdStart *analysis.ColdStart `json:"cold_start,omitempty"`
}

// Report collects a finished run's figures from the record, the histories and the stack.
func (s *Session) Report(ctx context.Context, run string, result workflows.TrainRunResult,
	wall time.Duration) (TrainReport, error) {
	record := analysis.New(s.Store)
	figures, err := record.Figures(ctx, run)
	if err != nil {
		return TrainReport{}, err
	}
	known, err := record.Run(ctx, run)
	if err != nil {
		return TrainReport{}, err
	}
	properties, err := record.Properties(ctx, run)
	if err != nil {
		return TrainReport{}, err
	}
	rates, err := record.ErrorRates(ctx, run)
	if err != nil {
		return TrainReport{}, err
	}
	cold, err := record.ColdStart(ctx, run)
	if err != nil {
		return TrainReport{}, err
	}
	return TrainReport{
		Run: run, Recipe: result.Recipe, Seed: result.Seed, Status: known.Status, Steps: result.Steps,
		Warm:         result.Warm,
		Final:        result.Final,
		Trajectories: figures.Trajectories, Excluded: figures.Excluded, ToolCalls: figures.ToolCalls,
		Tokens:      figures.Tokens,
		WallSeconds: wall.Seconds(), RLSeconds: figures.RLSeconds, StandstillSeconds: figures.StandstillSeconds,
		WarmStartSeconds: figures.WarmStartSeconds,
		EvalSeconds:      figures.EvalSeconds, StageSeconds: figures.StageSeconds,
		OrchestrationShare: figures.OrchestrationShare,
		PeakRSSMB:          s.Lease.PeakMB(), CheckpointDigest: result.Policy.Digest,
		Machine: result.Machine, BeforeTraining: analysis.Offers(properties), ErrorRates: rates,
		ColdStart: cold,
	}, nil
}

// WriteText prints how the run went and what to try next.
func (r TrainReport) WriteText(w io.Writer, address stack.Addresses) {
	fmt.Fprintln(w)
	if r.ColdStart != nil {
		analysis.WriteColdStart(w, *r.ColdStart)
	}
	fmt.Fprintf(w, "success     %s → %s   (sampled, held-out problems)\n", r.Warm.Rate, r.Final.Rate)
	fmt.Fprintf(w, "greedy      %s → %s\n", r.Warm.GreedyWords(), r.Final.GreedyWords())
	for _, level := range slices.Sorted(maps.Keys(r.Final.ByLevel)) {
		fmt.Fprintf(w, "  level %s   %s → %s\n", level, r.Warm.ByLevel[level], r.Final.ByLevel[level])
	}
	fmt.Fprintf(w, "tool errors %s → %s   (inside positive trajectories)\n", r.Warm.ToolErrorWords(),
		r.Final.ToolErrorWords())
	analysis.WriteErrorRates(w, r.ErrorRates)
	fmt.Fprintf(w, "time        warm start %.0f s, reinforcement learning %.0f s, evaluation %.0f s",
		r.WarmStartSeconds, r.RLSeconds, r.EvalSeconds)
	if r.StandstillSeconds > 0 {
		fmt.Fprintf(w, ", standstill %.0f s (paused, parked or interrupted)", r.StandstillSeconds)
	}
	if r.WallSeconds > 0 {
		fmt.Fprintf(w, "; this command %.0f s", r.WallSeconds)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "  stages    %s, orchestration %.1f%%\n", stageShares(r.StageSeconds), 100*r.OrchestrationShare)
	fmt.Fprintf(w, "work        %d trajectories, %d tool calls, %d tokens sampled\n", r.Trajectories, r.ToolCalls,
		r.Tokens)
	if r.Excluded > 0 {
		fmt.Fprintf(w, "excluded    %d trajectories on which the engine, the sandbox or the reward failed: %s show "+
			"%s --step N shows why\n", r.Excluded, os.Args[0], r.Run)
	}
	fmt.Fprintf(w, "machine     %s, %d cores; %s, %d threads; peak memory %.0f MB\n", r.Machine.CPU, r.Machine.Cores,
		r.Machine.BLAS, r.Machine.Threads, r.PeakRSSMB)
	if r.Machine.Advice != "" {
		fmt.Fprintf(w, "            %s\n", r.Machine.Advice)
	}
	if r.Machine.Engine != "" {
		fmt.Fprintf(w, "engine      %s\n", r.Machine.Engine)
	}
	if r.Machine.Sandbox != "" {
		fmt.Fprintf(w, "sandbox     tier %s\n", r.Machine.Sandbox)
	}
	fmt.Fprintf(w, "record      bucket %s, runs/run=%s/%s\n", address.S3Bucket, r.Run, FolderNote(address))
	fmt.Fprintf(w, "checkpoint  %s\n", r.CheckpointDigest)
	fmt.Fprintf(w, "\nnext:\n  %[1]s report %[2]s -o report.html\n  %[1]s show %[2]s --step %[3]d\n"+
		"  %[1]s sql \"select step, avg(reward) from rewards where run = '%[2]s' group by 1 order by 1\"\n"+
		"  %[1]s verify %[2]s\n", os.Args[0], r.Run, r.Steps)
	if address.UI != "" {
		fmt.Fprintf(w, "  the run in Temporal's UI: %s\n", workflowPage(address, r.Run))
	}
}

// stageShares lists the stages with their seconds, the slowest first.
func stageShares(seconds map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(seconds), func(a, b string) int {
		return cmp.Or(cmp.Compare(seconds[b], seconds[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %.1f", name, seconds[name]))
	}
	return strings.Join(parts, ", ")
}

func workflowPage(address stack.Addresses, run string) string {
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s", strings.TrimSuffix(address.UI, "/"), address.Namespace, run)
}

// WorkflowPage is the address of a run in the UI of the local stack's Temporal, "" if none runs.
func WorkflowPage(run string) string {
	address, running, err := stack.TemporalNow()
	if err != nil || !running || address.UI == "" {
		return ""
	}
	return workflowPage(address, run)
}

// ViewOfRuns is the address of the list of runs in Temporal's UI, without the workflows of steps, shards and replays.
func ViewOfRuns(address stack.Addresses) string {
	return fmt.Sprintf("%s/namespaces/%s/workflows?query=%s", strings.TrimSuffix(address.UI, "/"), address.Namespace,
		url.QueryEscape(workflows.RunsQuery))
}

// FolderNote says where the local stack keeps the bucket as plain files; "" for another server.
func FolderNote(address stack.Addresses) string {
	if address.S3Folder == "" {
		return ""
	}
	return " (plain files under " + address.S3Folder + ")"
}

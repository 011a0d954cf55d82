package importing

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// Report is what `ropewalk import --json` prints.
type Report struct {
	Run          string             `json:"run_id"`
	Trajectories int                `json:"trajectories"`
	ToolCalls    int                `json:"tool_calls"`
	Tasks        int                `json:"tasks,omitempty"`
	PassHatK     map[string]float64 `json:"pass_hat_k,omitempty"`
	RewardMean   float64            `json:"reward_mean"`
	Excluded     int                `json:"excluded"`
	Kept         int                `json:"kept"`
	BatchRows    int                `json:"batch_rows"`
	WallSeconds  float64            `json:"wall_seconds"`

	passes []float64 // PassHatK in order
}

// NewReport collects an import's figures from the workflow and the record.
func NewReport(ctx context.Context, objects store.Store, r workflows.ReprocessResult, wall time.Duration) (Report,
	error) {
	out := Report{
		Run: r.Run, Trajectories: r.Trajectories, ToolCalls: r.ToolCalls, RewardMean: r.Reward, Excluded: r.Excluded,
		Kept: r.Kept, BatchRows: r.BatchRows,
		WallSeconds: wall.Seconds(),
	}
	view, err := analysis.New(objects).Visible(ctx, r.Run)
	if err != nil {
		return out, err
	}
	for _, step := range view.Steps() { // an import has one
		trials, err := view.Trials(ctx, step)
		if err != nil {
			return out, err
		}
		out.Tasks = len(trials)
		if out.passes, err = analysis.PassHatK(trials); err != nil {
			return out, err
		}
	}
	out.PassHatK = make(map[string]float64, len(out.passes))
	for i, p := range out.passes {
		out.PassHatK[strconv.Itoa(i+1)] = p
	}
	return out, nil
}

// WriteText prints the figures.
func (report Report) WriteText(w io.Writer, r workflows.ReprocessResult) {
	fmt.Fprintf(w, "run          %s\n", report.Run)
	fmt.Fprintf(w, "trajectories %d, tool calls %d\n", report.Trajectories, report.ToolCalls)
	fmt.Fprintf(w, "reward       mean %.3f, as the file says; %d of %d trajectories of %d tasks succeed\n",
		report.RewardMean, r.Rewarded, report.Trajectories, report.Tasks)
	fmt.Fprintf(w, "pass^k       %s\n", passWords(report.passes))
	if report.Excluded > 0 {
		fmt.Fprintf(w, "excluded     %d trajectories on which the sandbox or the reward failed: they have no reward "+
			"and no mean includes them\n", report.Excluded)
	}
	fmt.Fprintf(w, "batch        %d rows of %d kept trajectories, in %.1f s\n", report.BatchRows, report.Kept,
		report.WallSeconds)
}

// passWords lists the first eight pass^k.
func passWords(passes []float64) string {
	var parts []string
	for i, p := range passes[:min(8, len(passes))] {
		parts = append(parts, fmt.Sprintf("%d: %.3f", i+1, p))
	}
	return strings.Join(parts, "  ")
}

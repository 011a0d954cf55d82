package runs

import (
	"fmt"
	"io"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// ParkedReport is what a command prints with --json when its run has parked.
type ParkedReport struct {
	Run    string            `json:"run_id"`
	Recipe string            `json:"recipe,omitempty"`
	Seed   uint64            `json:"seed"`
	Status string            `json:"status"`
	Step   int               `json:"step"`
	Steps  int               `json:"steps"` // planned
	Parked *workflows.Parked `json:"parked"`
}

// Report is what a command prints with --json about the parked run.
func (e ParkedError) Report() ParkedReport {
	p := e.Progress
	return ParkedReport{Run: p.Run, Recipe: p.Recipe, Seed: p.Seed, Status: "parked", Step: p.Step, Steps: p.Steps,
		Parked: p.Parked}
}

// DescribeParked prints why a run is parked and the commands by which it can go on.
func DescribeParked(w io.Writer, p workflows.Progress) {
	fmt.Fprintf(w, "\nparked at step %d (%s); the run stays open:\n", p.Step, p.Parked.Kind)
	for _, f := range p.Parked.Failures {
		fmt.Fprintf(w, "  %s\n", f)
	}
	if p.Parked.Kind == api.FailUnconfirmed {
		fmt.Fprintf(w, "choose one of:\n  ropewalk unpark %s --confirm\n", p.Run)
	} else {
		fmt.Fprintf(w, "fix the cause, then choose one of:\n  ropewalk unpark %s --retry    (--set FIELD=VALUE "+
			"changes the recipe)\n", p.Run)
	}
	if p.Parked.NoSkip == "" {
		fmt.Fprintf(w, "  ropewalk unpark %s --skip     (%s)\n", p.Run, p.Parked.Skip)
	} else {
		fmt.Fprintf(w, "  (--skip is not possible: %s)\n", p.Parked.NoSkip)
	}
	fmt.Fprintf(w, "  ropewalk unpark %s --abort    (what is committed is kept)\n", p.Run)
}

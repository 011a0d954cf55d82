package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

func resumeCommand(con *console) *cobra.Command {
	order := priorityOptions{}
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "continue a run from its last committed stage",
		Long: "resume continues a run that was interrupted, cancelled or aborted, or that failed. Stages that have\n" +
			"committed are adopted, not repeated. If the run is open, resume follows it; if it is parked, decide\n" +
			"with `ropewalk unpark`. If it is done, resume prints its result again. A queued run, which has\n" +
			"committed nothing, starts as requested. To continue an import, repeat `ropewalk import` with the same\n" +
			"file and --run-id.",
		Example: "  ropewalk resume quickstart-s1-20260102-030405-k3v9qa",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return resumeRun(con, cmd, args[0], order)
		},
	}
	order.add(cmd.Flags())
	con.jsonFlag(cmd, atTheEnd)
	return cmd
}

func resumeRun(con *console, cmd *cobra.Command, run string, order priorityOptions) error {
	ctx, started := cmd.Context(), time.Now()
	priority, err := order.priority()
	if err != nil {
		return err
	}
	s, err := con.connector().Join(ctx, runs.NeedAll, run)
	if err != nil {
		return err
	}
	defer s.Close()
	last, err := runs.LastOf(ctx, s.Temporal, run)
	if err != nil {
		return err
	}
	request, prepared, err := s.Resumable(ctx, run, last)
	if err != nil {
		return err
	}
	printAddresses(con, s)
	defer s.Hold(run)()
	f := following{console: con, cmd: cmd, session: s, began: started}
	switch {
	case last.Open:
		prepared = last.Workflow
	case prepared != "":
		if err := s.Note(ctx, run, "resume"); err != nil {
			return err
		}
		if err := runs.StartAgain(ctx, s.Temporal, prepared, run, priority); err != nil {
			return f.interrupted(run, err)
		}
	default:
		return f.start(runs.Start{Request: request, Input: request.Input, Summary: "resume " + run, Priority: priority})
	}
	fmt.Fprintf(con.err, "run          %s\n", run)
	return f.follow(run, prepared)
}

func cancelCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "end an open run, or drop a queued one",
		Long: "cancel ends a run's workflow at once. What it has committed is kept, and `ropewalk resume RUN`\n" +
			"continues from there. A queued run, which has committed nothing, is dropped. `ropewalk stop RUN`\n" +
			"ends a run after its current step.",
		Example: "  ropewalk cancel quickstart-s1-20260102-030405-k3v9qa",
		Args:    oneRun,
		RunE:    func(cmd *cobra.Command, args []string) error { return cancelRun(cmd.Context(), con, args[0]) },
	}
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func cancelRun(ctx context.Context, con *console, run string) error {
	known, err := lookUp(ctx, con, run)
	if err != nil {
		return err
	}
	if known.Run.State().State.Finished() && !known.OnServer {
		return badInput("run %s is %s: there is nothing to cancel", run, known.Run.State())
	}
	s, err := con.connector().Join(ctx, runs.NeedTemporal)
	if err != nil {
		return err
	}
	defer s.Close()
	_, queued, err := analysis.New(s.Store).Request(ctx, run)
	if err != nil {
		return err
	}
	last, err := runs.LastOf(ctx, s.Temporal, run)
	if err != nil {
		return err
	}
	if !last.Open && !queued {
		return badInput("run %s is %s, and no workflow of it is open: there is nothing to cancel; it goes on with "+
			"`ropewalk resume %s`", run, known.Run.State(), run)
	}
	if err := s.Note(ctx, run, "cancel"); err != nil {
		return err
	}
	if last.Open {
		if err := s.End(ctx, run, status.Cancelled, "ended by `ropewalk cancel`"); err != nil {
			return fmt.Errorf("end run %s: %w", run, err)
		}
	}
	what := "it has ended; what it had committed is kept"
	if queued {
		if err := s.Store.Delete(ctx, schema.RequestKey(run)); err != nil {
			return fmt.Errorf("drop run %s: %w", run, err)
		}
		what = "it is dropped; it had committed nothing"
	}
	result := map[string]any{"run_id": run, "what": what}
	return con.render(result, func(p *terminal.Printer) { p.Line("run %s: %s", run, what) })
}

// showRequest prints a queued run; found is false if there is none of that name.
func showRequest(ctx context.Context, con *console, record *analysis.Record, run string) (found bool, err error) {
	q, found, err := record.Request(ctx, run)
	if err != nil || !found {
		return false, err
	}
	var sets struct {
		Set []string `json:"set"`
	}
	if err := json.Unmarshal(q.Input, &sets); err != nil {
		return true, fmt.Errorf("read the input of run %s: %w", run, err)
	}
	fmt.Fprintf(con.out, "run %s is queued: it was requested at %s and has committed nothing\n", run, q.Created)
	fmt.Fprintf(con.out, "recipe %s, seed %d, %d steps; %s\n", q.Recipe, q.Seed, q.Steps, q.Workflow)
	for _, s := range sets.Set {
		fmt.Fprintf(con.out, "  --set %s\n", s)
	}
	_, err = fmt.Fprintf(con.out, "ropewalk resume %s starts it, ropewalk cancel %s drops it\n", run, run)
	return true, err
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/preflight"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

func scheduleCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "start runs and evaluations at set times",
		Long: "schedule manages Temporal Schedules that start trainings or evaluations, such as nightly ones. The\n" +
			"schedules are in the Temporal server, and workers start what is due; no command has to run.",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(scheduleCreateCommand(con), scheduleListCommand(con),
		scheduleChange(con, "pause", "skip the runs that are due until the schedule is resumed", "is paused",
			func(ctx context.Context, h client.ScheduleHandle, note string) error {
				return h.Pause(ctx, client.SchedulePauseOptions{Note: note})
			}),
		scheduleChange(con, "resume", "resume a paused schedule", "goes on",
			func(ctx context.Context, h client.ScheduleHandle, note string) error {
				return h.Unpause(ctx, client.ScheduleUnpauseOptions{Note: note})
			}),
		scheduleChange(con, "trigger", "start a run now, in addition to those that are due", "starts a run now",
			func(ctx context.Context, h client.ScheduleHandle, _ string) error {
				return h.Trigger(ctx, client.ScheduleTriggerOptions{})
			}),
		scheduleChange(con, "delete", "remove a schedule; runs that it started go on", "is deleted",
			func(ctx context.Context, h client.ScheduleHandle, _ string) error { return h.Delete(ctx) }))
	return cmd
}

type scheduleOptions struct {
	crons            []string
	every            time.Duration
	zone, overlap    string
	evaluate, naming string
	set              []string
	seed             uint64
	paused           bool
	order            priorityOptions
}

func scheduleCreateCommand(con *console) *cobra.Command {
	o := scheduleOptions{}
	cmd := &cobra.Command{
		Use:   "create NAME [RECIPE]",
		Short: "create a schedule that trains by a recipe, or evaluates a run's policy",
		Long: "create makes a schedule that starts a training by RECIPE at its times, or with --evaluate an\n" +
			"evaluation. RUN means the run's latest policy at that time; RUN@STEP always means the policy after\n" +
			"STEP. A recipe file is read now, and its text becomes part of the schedule.",
		Example: "  ropewalk schedule create nightly quickstart --cron '0 4 * * *' --time-zone Europe/Berlin\n" +
			"  ropewalk schedule create measure --evaluate quickstart-s1-20260102-030405 --every 6h\n" +
			"  ropewalk schedule create nightly recipes/quickstart.yaml --cron '0 2 * * *' --run-id nightly-{date}",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return exactly("NAME", "RECIPE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.create(cmd, con, args) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.crons, "cron", nil, "when: minute, hour, day, month, day of the week; @daily … (repeatable)")
	f.DurationVar(&o.every, "every", 0, "when: an interval, such as 6h")
	f.StringVar(&o.zone, "time-zone", "", "of --cron, such as Europe/Berlin (default: UTC)")
	f.StringVar(&o.overlap, "overlap", "skip", "what happens when a run is due while the previous one is open or "+
		"parked: skip it, buffer it until the previous one ends, cancel the previous one, or allow both")
	f.StringVar(&o.evaluate, "evaluate", "", "evaluate this run's policy, `RUN[@STEP]`, instead of training")
	f.StringVar(&o.naming, "run-id", "", "name of the runs; "+workflows.NameTime+" or "+workflows.NameDate+
		" in it becomes the time at which a run is due, in UTC (default: NAME-"+workflows.NameTime+")")
	setFlag(f, &o.set, "")
	f.Uint64Var(&o.seed, "seed", 0, "the runs' seed (default: the recipe's)")
	f.BoolVar(&o.paused, "paused", false, "create it paused")
	o.order.add(f)
	return cmd
}

func (o scheduleOptions) create(cmd *cobra.Command, con *console, args []string) error {
	ctx := cmd.Context()
	a := runs.Schedule{Name: args[0], Crons: o.crons, Every: o.every, Zone: o.zone, Overlap: o.overlap,
		Paused: o.paused, Evaluates: o.evaluate}
	a.Start.Name = cmp.Or(o.naming, a.Name+"-"+workflows.NameTime)
	var err error
	if a.Priority, err = o.order.priority(); err != nil {
		return err
	}
	if err := a.Check(time.Now()); err != nil {
		return err
	}
	switch {
	case (len(args) == 2) == (o.evaluate != ""):
		return badInput("give a RECIPE to train by, or --evaluate RUN")
	case o.evaluate != "" && cmd.Flags().Changed("seed"):
		return badInput("--seed: an evaluation has the seed of the run's recipe; --set seed=N changes it")
	case len(args) == 2:
		input, resolved, err := runOptions{set: o.set, seed: o.seed}.resolve(cmd, args[1])
		if err != nil {
			return err
		}
		if err := canRun(args[1], resolved); err != nil {
			return err
		}
		if _, err := preflightHere(ctx, &resolved.Recipe); err != nil {
			return err
		}
		a.Start.Train, a.Recipe = &input, resolved
	}
	s, err := con.connector().Join(ctx, runs.NeedTemporal)
	if err != nil {
		return err
	}
	defer s.Close()
	if o.evaluate != "" {
		if err = o.evaluation(ctx, s, &a); err != nil {
			return err
		}
	}
	if err := s.CreateSchedule(ctx, a); err != nil {
		return err
	}
	fmt.Fprintf(con.out, "schedule %s starts runs such as %s\n", a.Name, a.Start.RunAt(time.Now()))
	left, err := s.LeftOut(ctx, a, time.Now())
	if left != "" {
		fmt.Fprintf(con.err, "warning: no run starts on %s; a time that the clock never leaves out avoids this\n", left)
	}
	return err
}

// evaluation has the schedule start the evaluation.
func (o scheduleOptions) evaluation(ctx context.Context, s *runs.Session, a *runs.Schedule) error {
	e, err := chosenPolicy(ctx, analysis.New(s.Store), o.evaluate)
	if err != nil {
		return err
	}
	e.Set = o.set
	ask, resolved, err := e.Start(time.Now())
	if err != nil {
		return err
	}
	if err := canRun(o.evaluate, resolved); err != nil {
		return err
	}
	if err := policyReads(ctx, s.Store, e.Policy, &resolved.Recipe); err != nil {
		return err
	}
	input := ask.Input.(workflows.EvaluateInput) // Start makes no other
	if run, _, fixed := strings.Cut(o.evaluate, "@"); !fixed {
		input.Policy, input.LatestOf = api.PolicyRef{}, run
	}
	a.Start.Evaluate, a.Recipe = &input, resolved
	return nil
}

// policyReads refuses an evaluation whose prompt format the policy's tokenizer does not have.
func policyReads(ctx context.Context, objects store.Store, policy api.PolicyRef, r *recipes.Recipe) error {
	if r.Policy.Checkpoint != "" { // the prompt format is that of its template
		return nil
	}
	record := commit.New(objects)
	m, err := record.Read(ctx, policy.Manifest)
	if err != nil {
		return err
	}
	tokens, err := preflight.Tokenizer(m, func(key, digest string) ([]byte, error) {
		return record.ReadBlob(ctx, key, digest)
	})
	if err != nil {
		return err
	}
	return preflight.Reads(tokens, r)
}

func scheduleListCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the schedules, when each is due next, and what it started last",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := con.connector().Join(cmd.Context(), runs.NeedTemporal)
			if err != nil {
				return err
			}
			defer s.Close()
			all, err := s.Schedules(cmd.Context())
			if err != nil {
				return err
			}
			return con.render(all, func(p *terminal.Printer) { printSchedules(p, all) })
		},
	}
	con.jsonFlag(cmd, oneArray)
	return cmd
}

func printSchedules(p *terminal.Printer, all []runs.Planned) {
	p.Row("schedule", "next", "last", "state")
	for _, s := range all {
		next, last, state := "–", "–", "on"
		if s.Next != nil {
			next = s.Next.UTC().Format(time.RFC3339)
		}
		if n := len(s.Started); n > 0 {
			last = s.Started[n-1].Due.UTC().Format(time.RFC3339)
		}
		if s.Paused {
			state = "paused"
			if s.Note != "" {
				state += ": " + s.Note
			}
		}
		p.Row(s.Name, next, last, state)
	}
}

// scheduleChange makes the command for a change of a schedule.
func scheduleChange(con *console, name, short, done string,
	change func(ctx context.Context, h client.ScheduleHandle, note string) error) *cobra.Command {
	note := ""
	cmd := &cobra.Command{
		Use:     name + " NAME",
		Short:   short,
		Example: "  ropewalk schedule " + name + " nightly",
		Args:    exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := con.connector().Join(cmd.Context(), runs.NeedTemporal)
			if err != nil {
				return err
			}
			defer s.Close()
			err = s.ChangeSchedule(cmd.Context(), args[0], name,
				func(ctx context.Context, h client.ScheduleHandle) error { return change(ctx, h, note) })
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(con.out, "schedule %s %s\n", args[0], done)
			return err
		},
	}
	if name == "pause" || name == "resume" {
		cmd.Flags().StringVar(&note, "note", "", "why; `schedule list` shows it")
	}
	return cmd
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/recipes/smoke"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

type runOptions struct {
	set    []string
	seed   uint64
	id     string
	dryRun bool
	smoke  bool
	onCalc bool
	plan   planOptions
	order  priorityOptions
	metricsOptions
}

func runCommand(con *console) *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use:   "run RECIPE",
		Short: "train a policy by a recipe and follow it",
		Long: "run starts the workflow TrainRun with a recipe (a YAML file, or the name of a built-in recipe) and\n" +
			"shows its progress. Without servers of your own it first starts a local stack.",
		Example: "  ropewalk run recipes/quickstart.yaml\n" +
			"  ropewalk run quickstart --seed 2 --set steps=20 --set optimizer.lr=1e-4\n" +
			"  ropewalk run presets/drgrpo --smoke\n" +
			"  ropewalk run presets/sampo-alfworld --dry-run\n" +
			"  ropewalk run qwen3-4b-spear --dry-run --inventory h200x8",
		Args: exactly("RECIPE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, resolved, err := o.resolve(cmd, args[0])
			if err != nil {
				return err
			}
			if o.dryRun {
				return dryRun(cmd.Context(), con, resolved, o)
			}
			if err := o.plan.unused(); err != nil {
				return err
			}
			if err := canRun(args[0], resolved); err != nil {
				return err
			}
			ask, err := o.ask(input, resolved, time.Now())
			if err != nil {
				return err
			}
			return trainRun(con, cmd, ask, o)
		},
	}
	setFlag(cmd.Flags(), &o.set, "")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "the run's seed (default: the recipe's)")
	cmd.Flags().StringVar(&o.id, "run-id", "", "the run's name (default: recipe, seed, time and random letters)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "validate the recipe, print it with all defaults, list what "+
		"cannot run yet, try the files, code and servers that it names, and plan processes, devices, memory, time and "+
		"bytes; start no run")
	o.plan.flags(cmd)
	cmd.Flags().BoolVar(&o.smoke, "smoke", false, "run the smoke recipe: the same method for three small steps "+
		"in a small version of the recipe's environment, or on calc, with the CPU engine; --set overrides its fields")
	cmd.Flags().BoolVar(&o.onCalc, "twin", false, "run the smoke recipe in its earlier form, on calc")
	if err := cmd.Flags().MarkHidden("twin"); err != nil {
		panic(err) // the flag is defined one line above
	}
	con.jsonFlag(cmd, atTheEnd)
	o.order.add(cmd.Flags())
	o.add(cmd.Flags(), "")
	return cmd
}

// ask names the run and describes its workflow.
func (o runOptions) ask(input workflows.TrainRunInput, r *recipes.Resolved, now time.Time) (runs.Start, error) {
	fresh := input.Run == ""
	if fresh {
		input.Run = runs.NewID(fmt.Sprintf("%s-s%d", r.Recipe.Name, r.Recipe.Seed), now)
	}
	ask, err := runs.NewStart(input.Run, workflows.TrainRunName, "train "+input.Recipe+input.RecipeFile, r, "", input,
		now)
	if err != nil {
		return ask, err
	}
	ask.Fresh = fresh
	ask.Priority, err = o.order.priority()
	return ask, err
}

// resolve reads and validates the recipe before anything starts. The workflow receives the recipe's text and resolves
// it again, so that it does not depend on a file of this machine.
func (o runOptions) resolve(cmd *cobra.Command, recipe string) (workflows.TrainRunInput, *recipes.Resolved, error) {
	input := workflows.TrainRunInput{Run: o.id, Set: o.set}
	if cmd.Flags().Changed("seed") {
		input.Seed = &o.seed
	}
	name, text, err := readRecipe(recipe)
	if err != nil {
		return input, nil, err
	}
	if text == "" {
		input.Recipe = name
	} else {
		input.RecipeYAML, input.RecipeFile = text, name
	}
	if o.smoke || o.onCalc {
		if input.Set, err = smokeSet(cmd, name, text, o); err != nil {
			return input, nil, err
		}
	}
	resolved, err := recipes.Resolve(name, text, input.Set, input.Seed, nil)
	if err != nil {
		return input, nil, badinput.Of(err)
	}
	if resolved.Recipe.Environment.Imported() {
		return input, nil, badInput("%s: environment.name: %s holds imported trajectories, which cannot be "+
			"trained on; use `ropewalk import`", name, resolved.Recipe.Environment.Name)
	}
	if idle := resolved.Recipe.Idle(); len(idle) > 0 {
		return input, nil, badInput("%s: %s", name, strings.Join(idle, "\n"))
	}
	if input.Run != "" {
		if err := schema.CheckRunID(input.Run); err != nil {
			return input, nil, badInput("--run-id: %w", err)
		}
	}
	return input, resolved, nil
}

// smokeSet puts the overrides of a recipe's smoke recipe before the caller's.
func smokeSet(cmd *cobra.Command, name, text string, o runOptions) ([]string, error) {
	flag, small, notes := "--smoke", smoke.Overrides, smoke.Notes
	if o.onCalc {
		flag, small, notes = "--twin", smoke.OverridesOnCalc, smoke.NotesOnCalc
	}
	of, err := recipes.Resolve(name, text, nil, nil, nil)
	if err != nil {
		return nil, badinput.Of(err)
	}
	if of.Recipe.Environment.Imported() {
		return nil, badInput("%s: %s trains nothing: its trajectories are imported", flag, name)
	}
	for _, note := range notes(&of.Recipe) {
		fmt.Fprintf(cmd.ErrOrStderr(), "the smoke recipe %s\n", note)
	}
	return append(small(&of.Recipe), o.set...), nil
}

// canRun refuses a recipe that leaves a needed setting or section out, and lists all of them.
func canRun(name string, resolved *recipes.Resolved) error {
	missing := append(resolved.Recipe.Planned(), resolved.Recipe.Unset()...)
	if len(missing) == 0 {
		return nil
	}
	return badInput("%s: the recipe is valid and cannot run yet:\n%s", name, strings.Join(missing, "\n"))
}

// trainRun starts a run and follows it to its end.
func trainRun(con *console, cmd *cobra.Command, ask runs.Start, o runOptions) error {
	started := time.Now()
	s, err := con.connector().Join(cmd.Context(), runs.NeedAll)
	if err != nil {
		return err
	}
	defer s.Close()
	printAddresses(con, s)
	stop, err := o.monitor(cmd.Context(), con, "run", s)
	if err != nil {
		return err
	}
	defer stop()
	defer s.Hold(ask.Request.Run)()
	return following{console: con, cmd: cmd, session: s, began: started}.start(ask)
}

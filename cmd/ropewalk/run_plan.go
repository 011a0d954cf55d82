package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/plan"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/policy/engines"
	"github.com/ropewalk/ropewalk/recipes"
)

// planOptions say what a dry run plans for.
type planOptions struct {
	inventory string
	assume    []string
	host      device.Options // in tests, another driver
}

func (o *planOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.inventory, "inventory", "", "with --dry-run: plan for these `devices` instead of this "+
		"host's: h200x8, h100x4+l40sx2 (one host), h200x8,h200x8 (two), or a file (docs/plan.md)")
	cmd.Flags().StringSliceVar(&o.assume, "assume", nil, "with --dry-run: `share=value` that the plan counts on: mfu "+
		"(of peak flops), mbu (of peak bandwidth), fill (of token budgets); default mfu=0.4,mbu=0.6,fill=0.5")
}

// unused refuses options that only a dry run has.
func (o planOptions) unused() error {
	switch {
	case o.inventory != "":
		return badInput("--inventory: only with --dry-run, which plans; a run uses the devices of its workers")
	case len(o.assume) > 0:
		return badInput("--assume: only with --dry-run")
	}
	return nil
}

// assumed returns the shares that a plan counts on.
func (o planOptions) assumed() (plan.Assumed, error) {
	a := plan.UsualAssumptions()
	for _, text := range o.assume {
		name, value, _ := strings.Cut(text, "=")
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return a, badInput("--assume %s: want mfu, mbu or fill, an equals sign and a number", text)
		}
		switch name {
		case "mfu":
			a.MFU = x
		case "mbu":
			a.MBU = x
		case "fill":
			a.Fill = x
		default:
			return a, badInput("--assume %s: there is no %s; there are mfu, mbu and fill", text, name)
		}
	}
	if err := a.Validate(); err != nil {
		return a, badInput("--assume: %w", err)
	}
	return a, nil
}

// devices returns the inventory that the plan is made for.
func (o planOptions) devices(ctx context.Context) (plan.Inventory, error) {
	if o.inventory == "" {
		return planning.InventoryHere(ctx, o.host)
	}
	inventory, err := plan.Declared(o.inventory)
	if err != nil {
		return inventory, badInput("--inventory: %w", err)
	}
	return inventory, nil
}

// planOf plans a recipe. The engine is the one that this machine would choose, unless devices are declared: auto then
// means PyTorch.
func (o planOptions) planOf(ctx context.Context, r *recipes.Recipe) (enginepool.Plan, planning.Plan, error) {
	var out planning.Plan
	assumed, err := o.assumed()
	if err != nil {
		return enginepool.Plan{}, out, err
	}
	inventory, err := o.devices(ctx)
	if err != nil {
		return enginepool.Plan{}, out, err
	}
	engine := enginepool.Plan{Kind: r.Engine.Kind}
	if o.inventory == "" {
		if engine, err = enginepool.PlanHere(ctx, r, stateFolder(), modelFolder()); err != nil {
			return engine, out, err
		}
	}
	if engine.Kind == engines.Auto {
		engine.Kind = engines.Usual(inventory.Devices() > 0).Name
	}
	model, source, err := planning.ModelHere(r, modelFolder())
	if err != nil {
		return engine, out, badInput("policy.checkpoint: %w", err)
	}
	return engine, planning.Make(planning.Input{Recipe: r, Kind: engine.Kind, Model: model, ModelSource: source,
		Inventory: inventory, Assumed: assumed, Threads: runtime.GOMAXPROCS(0)}), nil
}

// dryRun prints what a run would do. The recipe goes to standard output, everything else to standard error; with --json
// all of it is one object. If the plan does not fit the inventory, the command fails after printing.
func dryRun(ctx context.Context, con *console, resolved *recipes.Resolved, o runOptions) error {
	r := resolved.Recipe
	notes := resolved.Notes
	if o.plan.inventory == "" { // what is declared is elsewhere, and so may be all that the recipe names
		found, err := preflightHere(ctx, &r)
		if err != nil {
			return err
		}
		notes = append(notes, found...)
	}
	var engine enginepool.Plan
	var planned *planning.Plan
	if !r.Environment.Imported() {
		e, p, err := o.plan.planOf(ctx, &r)
		if err != nil {
			return err
		}
		engine, planned = e, &p
	}
	if con.asJSON {
		if err := con.printJSON(map[string]any{
			"recipe": r.Name, "seed": r.Seed, "digest": resolved.Digest,
			"planned": append([]string{}, r.Planned()...), "unset": append([]string{}, r.Unset()...),
			"notes":  append([]string{}, notes...),
			"engine": engine, "plan": planned, "resolved": json.RawMessage(resolved.JSON),
		}); err != nil {
			return err
		}
		return doesNotFit(r.Name, planned)
	}
	fmt.Fprintf(con.err, "recipe %s is valid: seed %d, %d steps of %d prompts × %d trajectories; digest %s\n",
		r.Name, r.Seed, r.Steps, r.Rollout.Prompts, r.Rollout.SamplesPerPrompt, resolved.Digest)
	for _, missing := range r.Planned() {
		fmt.Fprintf(con.err, "planned: %s\n", missing)
	}
	for _, missing := range r.Unset() {
		fmt.Fprintf(con.err, "unset: %s\n", missing)
	}
	for _, note := range notes {
		fmt.Fprintf(con.err, "note: %s\n", note)
	}
	if !r.Engine.Declaration().Shared && planned != nil && o.plan.inventory == "" {
		fmt.Fprintf(con.err, "engine %s\n", engine)
	}
	if planned != nil {
		if err := planned.WriteText(con.err); err != nil {
			return err
		}
	}
	if _, err := con.out.Write(resolved.JSON); err != nil {
		return err
	}
	return doesNotFit(r.Name, planned)
}

// doesNotFit is the error of a plan that does not fit, or nil.
func doesNotFit(name string, p *planning.Plan) error {
	if p == nil || len(p.Refused) == 0 {
		return nil
	}
	return badinput.Errorf("%s does not fit %s:\n%s", name, p.Inventory, strings.Join(p.Refused, "\n"))
}

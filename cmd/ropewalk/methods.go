package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/method"
)

type methodsOptions struct{ slots, json bool }

func (a *app) methodsCommand() *cobra.Command {
	o := methodsOptions{}
	cmd := &cobra.Command{
		Use:   "methods [NAME]",
		Short: "list the methods that presets are there for, or the choices of one",
		Long: "methods prints each method by ARLArena's four dimensions, and whether it runs. NAME, a method or a\n" +
			"recipe, prints its choice in every slot; --slots prints every choice there is.",
		Example: "  ropewalk methods\n  ropewalk methods sampo\n  ropewalk methods presets/spear-webshop\n  ropewalk methods --slots",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return badInput("unexpected argument %q", args[1])
			}
			if len(args) == 1 && o.slots {
				return badInput("--slots: lists every choice; leave out %q", args[0])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case o.slots:
				return a.printSlots(o.json)
			case len(args) == 1:
				return a.printMethod(args[0], o.json)
			}
			return a.printMethods(o.json)
		},
	}
	cmd.Flags().BoolVar(&o.slots, "slots", false, "print every choice of every slot")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) printMethods(asJSON bool) error {
	rows, err := recipes.MethodTable()
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"methods": rows})
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "method\t%s\t%s\t%s\t%s\tstate\tpresets\n", method.LossAggregation, method.ImportanceClip, method.DynamicFiltering, method.AdvantageDesign)
	for _, r := range rows {
		d := r.Design
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", r.Method, d[method.LossAggregation], d[method.ImportanceClip], d[method.DynamicFiltering], d[method.AdvantageDesign], r.State(), len(r.Presets))
	}
	return t.Flush()
}

// slotLine is a choice made, with the settings that it reads.
type slotLine struct {
	Slot    string `json:"slot"`
	Choice  string `json:"choice"`
	State   string `json:"state"`
	Source  string `json:"source,omitempty"`
	Setting string `json:"settings,omitempty"`
}

func (a *app) printMethod(name string, asJSON bool) error {
	presets := []string{name}
	for _, m := range recipes.Methods() {
		if m.Name == name {
			presets = m.Presets
		}
	}
	name, text, err := readRecipe(presets[0])
	if err != nil {
		return badInput("no method or recipe %s; `ropewalk methods` lists them", presets[0])
	}
	resolved, err := recipes.Resolve(name, text, nil, nil, nil)
	if err != nil {
		return badInputError{err}
	}
	lines := slotLines(&resolved.Recipe)
	planned := resolved.Recipe.Planned()
	if asJSON {
		return a.printJSON(map[string]any{"recipe": name, "presets": presets, "design": resolved.Recipe.Method().Design(),
			"slots": lines, "planned": append([]string{}, planned...)})
	}
	if about := recipes.Comment(name); about != "" && text == "" {
		fmt.Fprintf(a.out, "%s\n\n", about)
	}
	for _, p := range presets {
		fmt.Fprintf(a.out, "preset   %s\n", p)
	}
	for _, d := range method.Dimensions() {
		fmt.Fprintf(a.out, "%-24s %s\n", d, resolved.Recipe.Method().Design()[d])
	}
	fmt.Fprintln(a.out)
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "slot\tchoice\tsettings\tstate\tsource")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.Slot, l.Choice, l.Setting, l.State, l.Source)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, missing := range planned {
		fmt.Fprintf(a.out, "planned: %s\n", missing)
	}
	return nil
}

// slotLines are a recipe's choices in the order of the slot table.
func slotLines(r *recipes.Recipe) []slotLine {
	slots := recipes.Slots()
	var lines []slotLine
	for _, p := range method.PicksOf(*r, slots) {
		s := slots[slices.IndexFunc(slots, func(s method.Slot) bool { return s.Name == p.Slot })]
		c, _ := s.Choice(p.Choice)
		lines = append(lines, slotLine{Slot: p.Slot, Choice: p.Choice, State: recipes.SlotState(p.Slot, p.Choice), Source: c.Source, Setting: r.Settings(s, c)})
	}
	return lines
}

func (a *app) printSlots(asJSON bool) error {
	slots := recipes.Slots()
	if asJSON {
		return a.printJSON(map[string]any{"slots": slots, "pipeline": method.Pipeline()})
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "slot\tchoice\tstate\treads\twhat\tsource")
	for _, s := range slots {
		for _, c := range s.Choices {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, c.Name, recipes.SlotState(s.Name, c.Name), reads(c), c.Doc, c.Source)
		}
	}
	return t.Flush()
}

// reads lists a choice's parameters with the defaults of its own.
func reads(c method.Choice) string {
	parts := make([]string, len(c.Params))
	for i, p := range c.Params {
		parts[i] = p.Name
		if p.Default != "" {
			parts[i] += " " + p.Default
		}
	}
	return strings.Join(parts, ", ")
}

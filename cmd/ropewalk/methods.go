package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/method"
)

type methodsOptions struct{ slots, json bool }

func methodsCommand(con *console) *cobra.Command {
	o := methodsOptions{}
	cmd := &cobra.Command{
		Use:   "methods [NAME]",
		Short: "list the methods that have presets, or the choices of one method",
		Long: "methods lists each method by ARLArena's four dimensions, and whether it can run. With NAME, a method\n" +
			"or a recipe, it prints the choice in every slot; --slots prints all choices of every slot.",
		Example: "  ropewalk methods\n  ropewalk methods sampo\n  ropewalk methods presets/spear-webshop\n  " +
			"ropewalk methods --slots",
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
				return printSlots(con, o.json)
			case len(args) == 1:
				return printMethod(con, args[0], o.json)
			}
			return printMethods(con, o.json)
		},
	}
	cmd.Flags().BoolVar(&o.slots, "slots", false, "print every choice of every slot")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func printMethods(con *console, asJSON bool) error {
	rows, err := recipes.MethodTable()
	if err != nil {
		return err
	}
	if asJSON {
		return con.printJSON(map[string]any{"methods": rows})
	}
	t := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "method\t%s\t%s\t%s\t%s\tstate\tpresets\n", method.LossAggregation, method.ImportanceClip,
		method.DynamicFiltering, method.AdvantageDesign)
	for _, r := range rows {
		d := r.Design
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", r.Method, d[method.LossAggregation], d[method.ImportanceClip],
			d[method.DynamicFiltering], d[method.AdvantageDesign], r.State(), len(r.Presets))
	}
	return t.Flush()
}

// noMethod suggests the methods, then the recipes, that an unknown name may mean.
func noMethod(name string) error {
	var names []string
	for _, m := range recipes.Methods() {
		names = append(names, m.Name)
	}
	meant := spelling.AllNearest(name, names)
	if len(meant) == 0 {
		meant = recipes.Like(name)
	}
	if len(meant) == 0 {
		return badInput("no method or recipe %s; `ropewalk methods` lists them", name)
	}
	return badInput("no method or recipe %s; did you mean %s?", name, spelling.OrList(meant))
}

// slotLine is the choice that a recipe makes in a slot, with the settings that the choice reads.
type slotLine struct {
	Slot    string `json:"slot"`
	Choice  string `json:"choice"`
	State   string `json:"state"`
	Source  string `json:"source,omitempty"`
	Setting string `json:"settings,omitempty"`
}

func printMethod(con *console, name string, asJSON bool) error {
	presets := []string{name}
	for _, m := range recipes.Methods() {
		if m.Name == name {
			presets = m.Presets
		}
	}
	name, text, err := readRecipe(presets[0])
	if err != nil {
		return noMethod(presets[0])
	}
	resolved, err := recipes.Resolve(name, text, nil, nil, nil)
	if err != nil {
		return badinput.Of(err)
	}
	lines := slotLines(&resolved.Recipe)
	planned := resolved.Recipe.Planned()
	if asJSON {
		return con.printJSON(map[string]any{"recipe": name, "presets": presets,
			"design": resolved.Recipe.Method().Design(),
			"slots":  lines, "planned": append([]string{}, planned...)})
	}
	if about := recipes.Comment(name); about != "" && text == "" {
		fmt.Fprintf(con.out, "%s\n\n", about)
	}
	for _, p := range presets {
		fmt.Fprintf(con.out, "preset   %s\n", p)
	}
	for _, d := range method.Dimensions() {
		fmt.Fprintf(con.out, "%-24s %s\n", d, resolved.Recipe.Method().Design()[d])
	}
	fmt.Fprintln(con.out)
	t := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "slot\tchoice\tsettings\tstate\tsource")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.Slot, l.Choice, l.Setting, l.State, l.Source)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, missing := range planned {
		fmt.Fprintf(con.out, "planned: %s\n", missing)
	}
	return nil
}

// slotLines lists a recipe's choices in the order of the slot table.
func slotLines(r *recipes.Recipe) []slotLine {
	slots := recipes.Slots()
	var lines []slotLine
	for _, p := range method.PicksOf(*r, slots) {
		s := slots[slices.IndexFunc(slots, func(s method.Slot) bool { return s.Name == p.Slot })]
		c, _ := s.Choice(p.Choice)
		lines = append(lines, slotLine{Slot: p.Slot, Choice: p.Choice, State: recipes.SlotState(p.Slot, p.Choice),
			Source: c.Source, Setting: r.Settings(s, c)})
	}
	return lines
}

func printSlots(con *console, asJSON bool) error {
	slots := recipes.Slots()
	if asJSON {
		return con.printJSON(map[string]any{"slots": slots, "pipeline": method.Pipeline()})
	}
	t := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "slot\tchoice\tstate\treads\twhat\tsource")
	for _, s := range slots {
		for _, c := range s.Choices {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, c.Name, recipes.SlotState(s.Name, c.Name), reads(c),
				c.Doc, c.Source)
		}
	}
	return t.Flush()
}

// reads lists a choice's parameters with their defaults.
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

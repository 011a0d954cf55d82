package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/method"
)

func methodsCommand(con *console) *cobra.Command {
	slots := false
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
			if len(args) == 1 && slots {
				return badInput("--slots: lists every choice; leave out %q", args[0])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case slots:
				return printSlots(con)
			case len(args) == 1:
				return printMethod(con, args[0])
			}
			return printMethods(con)
		},
	}
	cmd.Flags().BoolVar(&slots, "slots", false, "print every choice of every slot")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func printMethods(con *console) error {
	rows, err := recipes.MethodTable()
	if err != nil {
		return err
	}
	return con.render(map[string]any{"methods": rows}, func(p *terminal.Printer) {
		p.Row("method", method.LossAggregation, method.ImportanceClip, method.DynamicFiltering,
			method.AdvantageDesign, "presets")
		for _, r := range rows {
			d := r.Design
			p.Row(r.Method, d[method.LossAggregation], d[method.ImportanceClip], d[method.DynamicFiltering],
				d[method.AdvantageDesign], len(r.Presets))
		}
	})
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
	Source  string `json:"source,omitempty"`
	Setting string `json:"settings,omitempty"`
}

func printMethod(con *console, name string) error {
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
	lines, planned := slotLines(&resolved.Recipe), resolved.Recipe.Planned()
	design := resolved.Recipe.Method().Design()
	result := map[string]any{"recipe": name, "presets": presets, "design": design, "slots": lines,
		"planned": append([]string{}, planned...)}
	return con.render(result, func(p *terminal.Printer) {
		if about := recipes.Comment(name); about != "" && text == "" {
			p.Line("%s\n", about)
		}
		for _, preset := range presets {
			p.Line("preset   %s", preset)
		}
		for _, d := range method.Dimensions() {
			p.Line("%-24s %s", d, design[d])
		}
		p.Line("")
		p.Row("slot", "choice", "settings", "source")
		for _, l := range lines {
			p.Row(l.Slot, l.Choice, l.Setting, l.Source)
		}
		for _, missing := range planned {
			p.Line("planned: %s", missing)
		}
	})
}

// slotLines lists a recipe's choices in the order of the slot table.
func slotLines(r *recipes.Recipe) []slotLine {
	slots := recipes.Slots()
	var lines []slotLine
	for _, p := range method.PicksOf(*r, slots) {
		s := slots[slices.IndexFunc(slots, func(s method.Slot) bool { return s.Name == p.Slot })]
		c, _ := s.Choice(p.Choice)
		lines = append(lines, slotLine{Slot: p.Slot, Choice: p.Choice, Source: c.Source, Setting: r.Settings(s, c)})
	}
	return lines
}

func printSlots(con *console) error {
	slots := recipes.Slots()
	return con.render(map[string]any{"slots": slots, "pipeline": method.Pipeline()}, func(p *terminal.Printer) {
		p.Row("slot", "choice", "reads", "what", "source")
		for _, s := range slots {
			for _, c := range s.Choices {
				p.Row(s.Name, c.Name, reads(c), c.Doc, c.Source)
			}
		}
	})
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

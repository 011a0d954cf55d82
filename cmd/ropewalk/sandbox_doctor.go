package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/probe"
)

type doctorOptions struct {
	minTier string
	python  string
}

func sandboxDoctorCommand(con *console) *cobra.Command {
	o := doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "show how strongly this machine can isolate calls, and what prevents more",
		Long: "doctor tries every means of isolation that the sandbox uses, runs a call in each tier, and prints\n" +
			"the results. It exits with 1 if the strongest tier is weaker than --min-tier. docs/sandbox.md\n" +
			"explains what each tier prevents.",
		Example: "  ropewalk sandbox doctor\n  ropewalk sandbox doctor --min-tier landlock --json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			least, err := parseMinTier(o.minTier)
			if err != nil {
				return err
			}
			report := probe.Machine(cmd.Context(), sandboxPython(o.python))
			err = con.render(report, func(p *terminal.Printer) { printDoctor(p, report) })
			if err != nil {
				return err
			}
			if !report.Tier.AtLeast(least) {
				return tooWeak(report, least)
			}
			return nil
		},
	}
	minTierFlag(cmd.Flags(), &o.minTier)
	cmd.Flags().StringVar(&o.python, "python", "", "interpreter to use (default: python3, or the system's)")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func tooWeak(r probe.Report, least sandbox.Tier) error {
	if r.Tier == "" {
		return fmt.Errorf("no tier is available: %s", r.Tiers[len(r.Tiers)-1].Reason)
	}
	return fmt.Errorf("this machine grants tier %s, and --min-tier asks for %s", r.Tier, least)
}

func printDoctor(p *terminal.Printer, r probe.Report) {
	p.Row("what", "obtained", "reason", "without it")
	for _, l := range r.Lines {
		without := l.Without
		if l.Obtained {
			without = "-"
		}
		p.Row(l.What, yes(l.Obtained), l.Reason, without)
	}
	for _, t := range r.Tiers {
		p.Row("tier "+t.Tier, yes(t.Obtained), t.Reason, "-")
	}
	if r.Python != "" {
		p.Row("python", "yes", r.Python+", version "+r.Version, "-")
	}
	for _, l := range r.Packages {
		if l.Version == "" {
			p.Row("package "+l.Name, "no", "the interpreter cannot import it", "calls that import it fail")
			continue
		}
		p.Row("package "+l.Name, "yes", "version "+l.Version, "-")
	}
	if r.Tier != "" {
		p.Line("\ntier %s", r.Tier)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/probe"
)

type doctorOptions struct {
	minTier string
	python  string
	json    bool
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
			if o.json {
				err = con.printJSON(report)
			} else {
				err = printDoctor(con.out, report)
			}
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
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func tooWeak(r probe.Report, least sandbox.Tier) error {
	if r.Tier == "" {
		return fmt.Errorf("no tier is available: %s", r.Tiers[len(r.Tiers)-1].Reason)
	}
	return fmt.Errorf("this machine grants tier %s, and --min-tier asks for %s", r.Tier, least)
}

func printDoctor(out io.Writer, r probe.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tobtained\treason\twithout it")
	for _, l := range r.Lines {
		without := l.Without
		if l.Obtained {
			without = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.What, yes(l.Obtained), l.Reason, without)
	}
	for _, t := range r.Tiers {
		fmt.Fprintf(w, "tier %s\t%s\t%s\t-\n", t.Tier, yes(t.Obtained), t.Reason)
	}
	if r.Python != "" {
		fmt.Fprintf(w, "python\tyes\t%s, version %s\t-\n", r.Python, r.Version)
	}
	for _, p := range r.Packages {
		if p.Version == "" {
			fmt.Fprintf(w, "package %s\tno\tthe interpreter cannot import it\tcalls that import it fail\n", p.Name)
			continue
		}
		fmt.Fprintf(w, "package %s\tyes\tversion %s\t-\n", p.Name, p.Version)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	if r.Tier != "" {
		_, err := fmt.Fprintf(out, "\ntier %s\n", r.Tier)
		return err
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

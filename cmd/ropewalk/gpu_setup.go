package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/terminal"
)

type gpuSetupOptions struct {
	python string
	own    bool
	check  bool
	lora   bool
}

func gpuSetupCommand(con *console) *cobra.Command {
	o := gpuSetupOptions{}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "find a Python with PyTorch for the torch engine, or install one",
		Long: "setup looks for a Python that has torch and transformers in versions that the engine works with: " +
			"first the one that\n" +
			"ROPEWALK_PYTHON names, then the program's own environment (.ropewalk/" + setup.Folder +
			"), then python3. If none has them,\n" +
			"setup creates its own environment with pinned versions of torch, transformers, safetensors, peft and " +
			"what they need,\n" +
			"each file checked against its digest (5 GB). It uses the package index that pip and uv are configured " +
			"for.",
		Example: "  ropewalk gpu setup\n  ropewalk gpu setup --check --json\n  ropewalk gpu setup --with-lora\n  " +
			"ropewalk gpu setup --own --python /usr/bin/python3.12",
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return setupGPU(cmd.Context(), con, o) },
	}
	cmd.Flags().StringVar(&o.python, "python", "", "interpreter to create the program's own environment with "+
		"(default: ROPEWALK_PYTHON, else python3)")
	cmd.Flags().BoolVar(&o.own, "own", false, "create the program's own environment even if another Python would do")
	cmd.Flags().BoolVar(&o.check, "check", false, "install nothing; exit with 1 if no Python would do")
	cmd.Flags().BoolVar(&o.lora, "with-lora", false, "accept only a Python that also has peft, which recipes with "+
		"engine.lora need")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

// stateFolder holds what the program keeps on this machine.
func stateFolder() string { return cmp.Or(os.Getenv("ROPEWALK_HOME"), ".ropewalk") }

func setupGPU(ctx context.Context, con *console, o gpuSetupOptions) error {
	if o.check && (o.own || o.python != "") {
		return badInput("--check installs nothing, and --own and --python are about installing")
	}
	var more []setup.Package
	if o.lora {
		more = append(more, setup.Peft())
	}
	python, err := setup.Find(ctx, stateFolder(), more...)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case o.check && err != nil:
		return err
	case err != nil:
		fmt.Fprintf(con.err, "%v\ninstalling PyTorch into %s: 5 GB, a minute or more\n", err, setup.Folder)
		python, err = installPython(ctx, con, o.python)
	case o.own && python.Source != "the own environment" || o.python != "":
		python, err = installPython(ctx, con, o.python)
	}
	if err != nil {
		return err
	}
	return con.render(python, func(p *terminal.Printer) { printPython(p, python) })
}

func installPython(ctx context.Context, con *console, base string) (setup.Python, error) {
	p, err := setup.Install(ctx, stateFolder(), base, con.err)
	if errors.Is(err, setup.ErrNoPython) {
		return p, badinput.Of(err)
	}
	return p, err
}

func printPython(p *terminal.Printer, python setup.Python) {
	p.Line("%s (Python %s, %s)", python.Path, python.Version, python.Source)
	for _, name := range slices.Sorted(maps.Keys(python.Packages)) {
		if version := python.Packages[name]; version != "" {
			p.Line("  %s %s", name, version)
		}
	}
}

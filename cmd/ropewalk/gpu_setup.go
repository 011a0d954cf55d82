package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/versions"
)

type gpuSetupOptions struct {
	python string
	own    bool
	check  bool
	lora   bool
	json   bool
}

func (a *app) gpuSetupCommand() *cobra.Command {
	o := gpuSetupOptions{}
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "find a Python with PyTorch for the torch engine, or install one",
		Long: "setup takes the Python that ROPEWALK_PYTHON names, else that of the own environment (.ropewalk/" + setup.Folder + "), else python3, if\n" +
			"it has torch and transformers in versions that the engine works with. Where none does it makes the own environment: the\n" +
			"pinned versions of torch, transformers, safetensors, peft and what they need, each file held against its digest (5 GB).\n" +
			"The index is the one that pip and uv are configured for.",
		Example: "  ropewalk gpu setup\n  ropewalk gpu setup --check --json\n  ropewalk gpu setup --with-lora\n  ropewalk gpu setup --own --python /usr/bin/python3.12",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.setupGPU(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.python, "python", "", "interpreter that the own environment is made from (default: ROPEWALK_PYTHON, else python3)")
	cmd.Flags().BoolVar(&o.own, "own", false, "make the own environment even where another Python would do")
	cmd.Flags().BoolVar(&o.check, "check", false, "install nothing; exit with 1 where no Python would do")
	cmd.Flags().BoolVar(&o.lora, "with-lora", false, "take only a Python that has peft too, which recipes with engine.lora need")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

// stateFolder holds what the program keeps on this machine.
func stateFolder() string { return cmp.Or(os.Getenv("ROPEWALK_HOME"), ".ropewalk") }

func (a *app) setupGPU(ctx context.Context, o gpuSetupOptions) error {
	if o.check && (o.own || o.python != "") {
		return badInput("--check installs nothing, and --own and --python are about installing")
	}
	var more []versions.Package
	if o.lora {
		more = append(more, versions.Peft())
	}
	python, err := setup.Find(ctx, stateFolder(), more...)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case o.check && err != nil:
		return err
	case err != nil:
		fmt.Fprintf(a.err, "%v\ninstalling PyTorch into %s: 5 GB, a minute or more\n", err, setup.Folder)
		python, err = a.installPython(ctx, o.python)
	case o.own && python.Source != "the own environment" || o.python != "":
		python, err = a.installPython(ctx, o.python)
	}
	if err != nil {
		return err
	}
	if o.json {
		return a.printJSON(python)
	}
	printPython(a.out, python)
	return nil
}

func (a *app) installPython(ctx context.Context, base string) (setup.Python, error) {
	p, err := setup.Install(ctx, stateFolder(), base, a.err)
	if errors.Is(err, setup.ErrNoPython) {
		return p, badInputError{err}
	}
	return p, err
}

func printPython(w io.Writer, p setup.Python) {
	fmt.Fprintf(w, "%s (Python %s, %s)\n", p.Path, p.Version, p.Source)
	for _, name := range slices.Sorted(maps.Keys(p.Packages)) {
		if version := p.Packages[name]; version != "" {
			fmt.Fprintf(w, "  %s %s\n", name, version)
		}
	}
}

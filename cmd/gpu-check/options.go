package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/python"
)

// options are the options of the command line.
type options struct {
	only    []string // names of parts; empty means all
	out     string
	python  string
	device  string // torch.CUDA or torch.CPU
	dir     string // for models; "" is the system's temporary folder
	sizes   []string
	short   bool
	verbose bool
	limit   time.Duration // of a part
}

var errHelp = errors.New("help was asked for")

const usage = `gpu-check measures the PyTorch engine on this machine's GPU and checks its promises.

Usage: gpu-check [--only PART[,PART]] [-o FILE] [--python PY] [--short]

Parts: %s

`

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var only, sizes string
	f := flag.NewFlagSet("gpu-check", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprintf(stderr, usage, strings.Join(partNames(), ", "))
		f.PrintDefaults()
	}
	f.StringVar(&only, "only", "", "run only these parts, separated by commas; other parts in FILE stay there")
	f.StringVar(&o.out, "o", "gpu-check.json", "`FILE` for the outcomes, written after each part")
	f.StringVar(&o.python, "python", cmp.Or(os.Getenv(python.Variable), "python3"),
		"interpreter that has torch and transformers")
	f.StringVar(&o.device, "device", torch.CUDA,
		"cuda, or cpu: the same parts in miniature, whose figures say nothing about a GPU")
	f.StringVar(&o.dir, "dir", "",
		"folder for models, up to 30 GB, which are removed at the end (default the system's temporary folder)")
	f.StringVar(&sizes, "sizes", "", "only these of the sizes 0.6B, 1.7B and 4B, separated by commas")
	f.DurationVar(&o.limit, "limit", 4*time.Minute, "time that a part may take")
	f.BoolVar(&o.short, "short", false, "fewer repetitions")
	f.BoolVar(&o.verbose, "verbose", false, "show what the engine logs")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, errHelp
	} else if err != nil {
		return o, err
	}
	var err error
	if o.only, err = bench.Choose("part", only, partNames()); err != nil {
		return o, fmt.Errorf("--only: %w", err)
	}
	if o.sizes, err = bench.Choose("size", sizes, sizeNames()); err != nil {
		return o, fmt.Errorf("--sizes: %w", err)
	}
	return o, o.check(f.Args())
}

func (o options) check(rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("%q is no flag; parts are named by --only", rest[0])
	}
	if o.device != torch.CUDA && o.device != torch.CPU {
		return fmt.Errorf("--device is %q, want cuda or cpu", o.device)
	}
	if o.limit <= 0 {
		return fmt.Errorf("--limit is %s, it must be positive", o.limit)
	}
	if o.out == "" {
		return errors.New("-o names no file")
	}
	return nil
}

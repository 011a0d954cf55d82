package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// commit names the sources from which the program was built. The linker sets it.
var commit = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program. It returns the exit status: 0 if nothing failed, 1 if a part failed, 2 for bad arguments.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, errHelp) {
		return 0
	}
	var r *report
	if err == nil {
		r, err = openReport(o)
	}
	if err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
		return 2
	}
	l, err := openLab(o, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
		return 1
	}
	defer l.Close()
	if err := runParts(ctx, l, parts(), r, stderr); err != nil {
		fmt.Fprintln(stderr, "gpu-check:", err)
		return 1
	}
	r.print(stdout)
	if r.any(bench.StatusFailed) {
		return 1
	}
	return 0
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/service"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// Exit codes of exec, in addition to the program's own.
const (
	exitTimeout = 124 // as timeout(1) has it
	exitBroken  = 125 // the sandbox gave no verdict
	exitSignal  = 128 // and the signal's number, as shells have it
)

type execOptions struct {
	call      sandbox.Call
	preset    string
	stdin     string
	files     []string
	out       string
	cpu, wall time.Duration
	memoryMB  int64
	outputKB  int
	fileMB    int64
	addresses []string
	python    string
	minTier   string
}

func sandboxExecCommand(con *console) *cobra.Command {
	o := execOptions{}
	cmd := &cobra.Command{
		Use:   "exec FILE|-",
		Short: "run one program in the sandbox",
		Long: "exec runs a program from a file or from standard input. It prints the program's output and, like a\n" +
			"notebook, the value of its last expression. The exit code is the program's; 124 if the program took\n" +
			"too long, 128 plus the signal's number if it was killed, 125 if the sandbox gave no verdict, and 2\n" +
			"for bad input. With --json the exit code is 0 for every verdict.",
		Example: "  echo 'print(6 * 7)' | ropewalk sandbox exec -\n" +
			"  ropewalk sandbox exec solve.py --stdin numbers.txt --cpu 2s --preset rstar2 --json",
		Args: exactly("FILE (- is standard input)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return execSandbox(cmd.Context(), con, o, args[0], cmd.InOrStdin())
		},
	}
	f := cmd.Flags()
	minTierFlag(f, &o.minTier)
	f.StringVar(&o.call.Language, "language", sandbox.Python, "language of the program")
	f.StringVar(&o.call.Packages, "packages", "", "package set: bare, numpy or sympy (default: what the program "+
		"imports)")
	f.StringVar(&o.stdin, "stdin", "", "file with the program's standard input")
	f.StringArrayVar(&o.files, "file", nil, "NAME=PATH: put a file into the work folder; may be repeated")
	f.StringArrayVar(&o.call.Collect, "collect", nil, "name of a file to fetch from the work folder; may be repeated")
	f.StringVar(&o.out, "out", "", "folder for the fetched files")
	f.StringVar(&o.preset, "preset", "", "limits of a published system: rstar2, simpletir, spear")
	f.DurationVar(&o.cpu, "cpu", 0, "CPU time, counted in whole seconds (default: the preset's)")
	f.DurationVar(&o.wall, "wall", 0, "wall-clock time (default: ten times --cpu)")
	f.Int64Var(&o.memoryMB, "memory-mb", 0, "MiB of address space beyond the interpreter's (default: the preset's)")
	f.IntVar(&o.outputKB, "output-kb", 0, "KiB of standard output and of standard error, each (default: the preset's)")
	f.Int64Var(&o.fileMB, "file-mb", 0, "MiB of one file that the program writes (default: the preset's)")
	f.IntVar(&o.call.Limits.Processes, "processes", 0, "processes and threads at once (default: the preset's)")
	f.StringVar(&o.python, "python", "", "interpreter (default: the first python3 that is found)")
	f.StringSliceVar(&o.addresses, "address", nil,
		"run the program in sandbox services at these addresses; "+tokenVariable+" holds their token")
	con.jsonFlag(cmd, oneObject+": the verdict, as the service answers it")
	return cmd
}

func execSandbox(ctx context.Context, con *console, o execOptions, program string, stdin io.Reader) error {
	preset, err := o.read(program, stdin, con.asJSON)
	if err != nil {
		return err
	}
	if err := o.call.Validate(); err != nil {
		return badinput.Of(err)
	}
	result, err := o.run(ctx, preset)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sandbox.ErrBadCall):
		return badinput.Of(err)
	case err != nil:
		fmt.Fprintf(con.err, "ropewalk: %v\n", err)
		return silentError{exitBroken}
	}
	if err := o.keep(result.Files); err != nil {
		return err
	}
	if con.asJSON {
		return con.printJSON(service.ResultOf(result))
	}
	return printVerdict(con, result)
}

// read fills the call with what the flags name.
func (o *execOptions) read(program string, stdin io.Reader, asJSON bool) (preset sandbox.Preset, err error) {
	if preset, err = sandbox.PresetOf(o.preset); err != nil {
		return preset, badInput("--preset: %w", err)
	}
	if len(o.call.Collect) > 0 && o.out == "" && !asJSON {
		return preset, badInput("--collect needs --out, the folder for the files, or --json")
	}
	code, err := readProgram(program, stdin)
	if err != nil {
		return preset, err
	}
	o.call.Code = string(code)
	if o.stdin != "" {
		data, err := os.ReadFile(o.stdin)
		if err != nil {
			return preset, badInput("--stdin: %w", err)
		}
		o.call.Stdin = string(data)
	}
	for _, pair := range o.files {
		name, path, named := strings.Cut(pair, "=")
		if !named {
			return preset, badInput("--file: want NAME=PATH, got %q", pair)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return preset, badInput("--file: %w", err)
		}
		o.call.Files = append(o.call.Files, sandbox.File{Name: name, Content: data})
	}
	l := o.call.Limits
	l.CPU, l.Wall, l.MemoryBytes, l.OutputBytes, l.FileBytes = o.cpu, o.wall, o.memoryMB<<20, o.outputKB<<10,
		o.fileMB<<20
	o.call.Limits = preset.Over(l)
	return preset, nil
}

func readProgram(program string, stdin io.Reader) ([]byte, error) {
	if program == "-" {
		code, err := io.ReadAll(io.LimitReader(stdin, sandbox.MostCode+1))
		if err != nil {
			return nil, fmt.Errorf("read the program from standard input: %w", err)
		}
		return code, nil
	}
	code, err := os.ReadFile(program)
	if err != nil {
		return nil, badInput("read the program: %w", err)
	}
	return code, nil
}

// run runs the call in a sandbox of its own, or in a service.
func (o execOptions) run(ctx context.Context, preset sandbox.Preset) (sandbox.Result, error) {
	executor, err := o.open(ctx, preset)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer executor.Close()
	results, err := executor.Run(ctx, []sandbox.Call{o.call})
	var single sandbox.CallErrors
	if errors.As(err, &single) && len(single) == 1 {
		err = single[0]
	}
	if err != nil {
		return sandbox.Result{}, err
	}
	return results[0], nil
}

func (o execOptions) open(ctx context.Context, preset sandbox.Preset) (sandbox.Executor, error) {
	if len(o.addresses) > 0 {
		return openSandboxClient(ctx, o.addresses, preset)
	}
	tier, err := parseMinTier(o.minTier)
	if err != nil {
		return nil, err
	}
	return zygote.Open(zygote.Options{Python: sandboxPython(o.python), Preferred: toolsPython(), Workers: 1,
		MinTier: tier})
}

// keep writes the fetched files.
func (o execOptions) keep(files []sandbox.File) error {
	if o.out == "" {
		return nil
	}
	for _, f := range files {
		path := filepath.Join(o.out, filepath.FromSlash(f.Name)) // Validate has checked that it stays below the folder
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("keep %s: %w", f.Name, err)
		}
		if err := os.WriteFile(path, f.Content, 0o644); err != nil {
			return fmt.Errorf("keep %s: %w", f.Name, err)
		}
	}
	return nil
}

// printVerdict prints the program's output, and ends the command with the exit code for its verdict.
func printVerdict(con *console, r sandbox.Result) error {
	fmt.Fprint(con.out, r.Stdout)
	fmt.Fprint(con.err, r.Stderr)
	if r.Value != "" {
		fmt.Fprintln(con.out, r.Value)
	}
	code := r.ExitCode
	switch r.Status {
	case sandbox.StatusOK, sandbox.StatusRuntime, sandbox.StatusSyntax:
		if r.Signal != "" {
			code = exitSignal + int(unix.SignalNum(r.Signal))
		}
	case sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutWall:
		code = exitTimeout
	default:
		code = exitSignal + int(unix.SIGKILL)
		if r.Signal != "" {
			code = exitSignal + int(unix.SignalNum(r.Signal))
		}
	}
	if code == 0 {
		return nil
	}
	if r.Status != sandbox.StatusRuntime && r.Status != sandbox.StatusSyntax {
		fmt.Fprintf(con.err, "ropewalk: %s after %s\n", r.Status, r.Timing.Wall.Round(time.Millisecond))
	}
	return silentError{code}
}

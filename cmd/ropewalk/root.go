package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ropewalk/ropewalk/schema"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitBadInput    = 2
	exitParked      = 3 // the run waits for a person's decision
	exitInterrupted = 130
)

// badInputError marks what the caller can mend; the command then exits with 2.
type badInputError struct{ err error }

func (e badInputError) Error() string { return e.err.Error() }
func (e badInputError) Unwrap() error { return e.err }

// badInput is an error that the caller can mend.
func badInput(format string, args ...any) error { return badInputError{fmt.Errorf(format, args...)} }

// app is what every subcommand shares.
type app struct {
	out      io.Writer // results
	err      io.Writer // progress and messages
	verbose  bool
	terminal bool // standard error is a terminal: progress may redraw
	resident bool // standard output and input are a terminal: the stack may stay up
}

// Run executes the command line and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{out: stdout, err: stderr, terminal: isTerminal(stderr)}
	a.resident = isTerminal(stdout) && term.IsTerminal(int(os.Stdin.Fd()))
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "interrupted")
		return exitInterrupted
	}
	var quiet silentError
	if errors.As(err, &quiet) {
		return quiet.code
	}
	fmt.Fprintf(stderr, "ropewalk: %v\n", err)
	var bad badInputError
	if errors.As(err, &bad) {
		return exitBadInput
	}
	return exitFailed
}

// silentError ends the command with a code; what there is to say has been said.
type silentError struct{ code int }

func (e silentError) Error() string { return fmt.Sprintf("exit %d", e.code) }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ropewalk",
		Short: "train tool-using language models through Temporal, S3 and Parquet",
		Long: "Ropewalk trains tool-using language models. Temporal workflows run the stages, object\n" +
			"storage holds the record, engines do the heavy work. Servers that TEMPORAL_ADDRESS and the\n" +
			"AWS_* variables name are used; what is missing is started for the command's duration.",
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,

		SuggestionsMinimumDistance: 2, // edits between a typo and what it may have meant
		PersistentPreRun: func(*cobra.Command, []string) {
			level := slog.LevelWarn
			if a.verbose {
				level = slog.LevelDebug
			}
			slog.SetDefault(slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})))
		},
	}
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "log what happens inside to standard error")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badInputError{err} })
	root.AddCommand(a.steerCommands()...)
	root.AddCommand(a.setCommand(), a.unparkCommand())
	root.AddCommand(a.runCommand(), a.resumeCommand(), a.upCommand(), a.workerCommand(), a.superviseCommand(),
		a.followCommand(), a.runsCommand(), a.showCommand(), a.sqlCommand(), a.importCommand(), a.exportCommand(), a.verifyCommand(), a.schemaCommand(), a.methodsCommand(),
		a.reportCommand(), a.inspectCommand(), a.replayCommand(), a.diffCommand(), a.sandboxCommand(), a.envCommand(), a.gpuCommand())
	return root
}

// exactly wants n positional arguments and names them when they are missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return badInput("missing argument %s", names[len(args)])
		}
		if len(args) > len(names) {
			return badInput("unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// noSuchCommand refuses arguments that are no command, with the nearest ones.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "`ropewalk --help` lists them"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return badInput("unknown command %q; %s", args[0], hint)
}

// oneRun wants a run's name as the one argument.
func oneRun(cmd *cobra.Command, args []string) error {
	if err := exactly("RUN")(cmd, args); err != nil {
		return err
	}
	if err := schema.CheckRunID(args[0]); err != nil {
		return badInputError{err}
	}
	return nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

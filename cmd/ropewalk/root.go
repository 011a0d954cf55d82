package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitBadInput    = 2
	exitParked      = 3 // the run waits for the user's decision
	exitInterrupted = 130
)

// Run executes the command line and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out, messages := terminal.NewWriter(stdout), terminal.NewWriter(stderr)
	defer func() { _, _ = out.Flush(), messages.Flush() }() // no one reads there otherwise
	con := &console{out: out, data: stdout, err: messages, terminal: isTerminal(stderr)}
	if con.terminal {
		con.err = runs.NewScreen(stderr)
	}
	if isTerminal(stdout) {
		con.data = out
	}
	con.resident = isTerminal(stdout) && term.IsTerminal(int(os.Stdin.Fd()))
	root := rootCommand(con)
	unknown := refuseHelpForUnknown(root)
	root.SetArgs(args)
	root.SetOut(con.out)
	root.SetErr(con.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = *unknown
	}
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(con.err, "interrupted")
		return exitInterrupted
	}
	var quiet silentError
	if errors.As(err, &quiet) {
		return quiet.code
	}
	fmt.Fprintf(con.err, "ropewalk: %s\n", logs.Conceal(err.Error()))
	var bad badinput.Error
	if errors.As(err, &bad) {
		return exitBadInput
	}
	return exitFailed
}

// silentError ends the command with an exit code and no further message.
type silentError struct{ code int }

// Error implements error.
func (e silentError) Error() string { return fmt.Sprintf("exit %d", e.code) }

func rootCommand(con *console) *cobra.Command {
	asked := false // for the version
	root := &cobra.Command{
		Use:   "ropewalk",
		Short: "train tool-using language models through Temporal, S3 and Parquet",
		Long: "Ropewalk trains tool-using language models. Temporal workflows run the stages, object storage holds\n" +
			"the record, and engines do the heavy work. Commands use the servers that TEMPORAL_ADDRESS and the\n" +
			"AWS_* variables name, and start the missing ones for as long as they run.",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked {
				return printVersion(con)
			}
			return cmd.Help()
		},
		SilenceUsage:  true,
		SilenceErrors: true,

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			handler, err := con.log(slog.LevelWarn)
			if err != nil {
				return err
			}
			slog.SetDefault(slog.New(handler))
			return noEmptyFlags(cmd)
		},
	}
	root.PersistentFlags().BoolVarP(&con.verbose, "verbose", "v", false, "write a detailed log to standard error")
	con.logFlags(root.PersistentFlags())
	root.Flags().BoolVar(&asked, "version", false, "print which program this is")
	root.SetFlagErrorFunc(flagFault)
	root.SetHelpCommand(helpCommand())
	for _, command := range commands {
		c := command(con)
		c.SuggestFor = meantBy[c.Name()]
		root.AddCommand(c)
	}
	return root
}

// commands are the program's commands. Each parses its flags, calls a package and prints.
var commands = []func(*console) *cobra.Command{
	// runs
	runCommand, forkCommand, resumeCommand, cancelCommand, deleteCommand, followCommand, pauseCommand, unpauseCommand,
	stopCommand, setCommand, unparkCommand, upgradeCommand,
	evaluateCommand, experimentCommand, importCommand, replayCommand, scheduleCommand, quotaCommand,
	// the record
	runsCommand, showCommand, viewCommand, sqlCommand, reportCommand, diffCommand, inspectCommand, exportCommand,
	auditCommand, verifyCommand, restoreCommand, compactCommand, gcCommand,
	// recipes
	methodsCommand, schemaCommand, dataCommand,
	// machines
	upCommand, serveCommand, workerCommand, monitorCommand, setupCommand, superviseCommand, envCommand,
	sandboxCommand, gpuCommand,
	// the program
	versionCommand,
}

// exactly requires these positional arguments, and names a missing one.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return badInput("missing argument %s; usage: %s", names[len(args)], cmd.UseLine())
		}
		if len(args) > len(names) {
			return badInput("unexpected argument %q; usage: %s", args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// oneRun requires a run's name as the only argument.
func oneRun(cmd *cobra.Command, args []string) error {
	if err := exactly("RUN")(cmd, args); err != nil {
		return err
	}
	if err := schema.CheckRunID(args[0]); err != nil {
		return badinput.Of(err)
	}
	return nil
}

// orNone allows no argument in the place of those that args requires.
func orNone(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 {
			return nil
		}
		return args(cmd, given)
	}
}

// someRuns requires the names of one or more runs.
func someRuns(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return badInput("missing argument RUN")
	}
	for _, name := range args {
		if err := schema.CheckRunID(name); err != nil {
			return badinput.Of(err)
		}
	}
	return nil
}

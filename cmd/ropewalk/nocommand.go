package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/spelling"
)

// meantBy lists words of other programs for which a command is suggested.
var meantBy = map[string][]string{
	"run":     {"train", "start", "launch", "fit"},
	"runs":    {"list", "ls", "status", "ps"},
	"follow":  {"log", "logs", "watch", "attach", "tail"},
	"cancel":  {"kill", "abort", "terminate", "end"},
	"resume":  {"continue", "restart"},
	"sql":     {"query", "select"},
	"diff":    {"compare"},
	"verify":  {"check", "validate", "fsck"},
	"gc":      {"clean", "prune"},
	"delete":  {"rm", "remove"},
	"up":      {"ui"},
	"serve":   {"server", "api", "openai"},
	"methods": {"recipes", "presets"},
	"inspect": {"cat", "head"},
}

// noSuchCommand refuses an unknown command and suggests the ones that it may mean.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "`" + cmd.CommandPath() + " --help` lists them"
	if meant := commandsLike(cmd, args[0]); len(meant) > 0 {
		hint = "did you mean " + spelling.OrList(meant) + "?"
	}
	return badInput("unknown command %q; %s", args[0], hint)
}

// refuseHelpForUnknown has --help refuse an unknown command, which is found at the returned place once the command has
// run: the help of a command cannot fail.
func refuseHelpForUnknown(root *cobra.Command) *error {
	var unknown error
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd.HasSubCommands() {
			if unknown = noSuchCommand(cmd, cmd.Flags().Args()); unknown != nil {
				return
			}
		}
		help(cmd, args)
	})
	return &unknown
}

// commandsLike returns the commands that a word may mean: the one of that meaning, else those that it begins, else
// those with the nearest names.
func commandsLike(parent *cobra.Command, word string) []string {
	var names, longer []string
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if slices.Contains(c.SuggestFor, strings.ToLower(word)) {
			return []string{c.Name()}
		}
		names = append(names, c.Name())
		if len(word) > 1 && strings.HasPrefix(c.Name(), strings.ToLower(word)) {
			longer = append(longer, c.Name())
		}
	}
	if len(longer) > 0 {
		return longer
	}
	return spelling.AllNearest(word, names)
}

// helpCommand prints the help of a command, and refuses unknown ones.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "explain a command",
		Long:  "help prints what `ropewalk COMMAND --help` prints.",
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil {
				return noSuchCommand(cmd.Root(), args)
			}
			if len(rest) > 0 {
				if of.HasSubCommands() {
					return noSuchCommand(of, rest)
				}
				return badInput("unexpected argument %q", rest[0])
			}
			return of.Help()
		},
	}
}

package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/recipes"
)

// flagFault names the flag that cannot be read, and the remedy.
func flagFault(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &empty):
		return badInput("--%s: needs a value", empty.GetFlag().Name)
	case errors.As(err, &invalid):
		name := "--" + invalid.GetFlag().Name
		if want := wanted(invalid.GetFlag(), invalid.Unwrap()); want != "" {
			return badInput("%s: must be %s, got %q", name, want, invalid.GetValue())
		}
		return badInput("%s: %w", name, invalid.Unwrap())
	}
	return badinput.Of(err)
}

// wanted says in words what a flag takes, or "" if the cause says it.
func wanted(flag *pflag.Flag, cause error) string {
	long := ""
	if errors.Is(cause, strconv.ErrRange) {
		long = " that fits 64 bits"
	}
	switch flag.Value.Type() {
	case "uint64", "uint":
		return "a whole number ≥ 0" + long
	case "int", "int64":
		return "a whole number" + long
	case "float64":
		return "a number" + long
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 30s, 10m or 2h"
	}
	return ""
}

// unknownFlag suggests the flag of the nearest name. Of a command that changes recipes, it suggests the field.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name, dashes := err.GetSpecifiedName(), "--"
	if short := err.GetSpecifiedShortnames(); short != "" {
		name, dashes = short, "-"
	}
	what := "unknown flag " + dashes + name
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			names = append(names, f.Name)
		}
	})
	if near := spelling.AllNearest(name, names); len(near) > 0 {
		return badInput("%s; did you mean --%s?", what, strings.Join(near, " or --"))
	}
	if field := recipes.FieldLike(name); field != "" && cmd.Flags().Lookup("set") != nil && dashes == "--" {
		return badInput("%s; did you mean --set %s=…?", what, field)
	}
	return badInput("%s; `%s --help` lists the flags", what, cmd.CommandPath())
}

// noEmptyFlags refuses flags that are given an empty text, as by a variable of a script that is not set. They would
// otherwise count as left out.
func noEmptyFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" {
			err = badInput("--%s: is empty; give a value, or leave the flag out", f.Name)
		}
	})
	return err
}

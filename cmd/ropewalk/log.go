package main

import (
	"cmp"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/internal/logs"
)

// Variables that hold the defaults of the log's flags, for workers that the local stack starts.
const (
	logFormatVariable = "ROPEWALK_LOG_FORMAT"
	logLevelVariable  = "ROPEWALK_LOG_LEVEL"
)

// logFlags adds the flags of the log, which every command has.
func (con *console) logFlags(f *pflag.FlagSet) {
	f.StringVar(&con.logForm, "log-format", "", "form of the log: text or json (default: "+logFormatVariable+
		", else text)")
	f.StringVar(&con.logLevel, "log-level", "", "least level that is logged: debug, info, warn or error (default: "+
		logLevelVariable+", else warn)")
}

// log makes the log of a command, which logs from a level on unless a flag or a variable names another. It conceals
// the secrets.
func (con *console) log(level slog.Level, secrets ...string) (slog.Handler, error) {
	name := con.logLevel
	if con.verbose {
		level = slog.LevelDebug
	} else {
		name = cmp.Or(name, os.Getenv(logLevelVariable))
	}
	if name != "" {
		if err := level.UnmarshalText([]byte(name)); err != nil {
			return nil, badInput("--log-level, %s: %q is not one of debug, info, warn, error", logLevelVariable, name)
		}
	}
	handler, err := logs.New(con.err, logs.Options{Format: cmp.Or(con.logForm, os.Getenv(logFormatVariable)),
		Level: level, Secrets: secrets})
	if err != nil {
		return nil, badInput("--log-format, %s: %w", logFormatVariable, err)
	}
	return handler, nil
}

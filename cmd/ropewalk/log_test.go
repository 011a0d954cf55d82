package main

import (
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// A flag goes before the variable, which workers of the local stack inherit: --log-level first, then -v.
func TestTheLevelOfTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		variable, flag string
		verbose        bool
		want           slog.Level
	}{
		"nothing":                    {want: slog.LevelWarn},
		"the variable":               {variable: "info", want: slog.LevelInfo},
		"-v":                         {verbose: true, want: slog.LevelDebug},
		"-v and the variable":        {variable: "info", verbose: true, want: slog.LevelDebug},
		"--log-level and the others": {variable: "info", flag: "error", verbose: true, want: slog.LevelError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(logLevelVariable, c.variable)
			con := &console{err: io.Discard, logLevel: c.flag, verbose: c.verbose}
			handler, err := con.log(slog.LevelWarn)
			require.NoError(t, err)
			require.True(t, handler.Enabled(t.Context(), c.want))
			require.False(t, handler.Enabled(t.Context(), c.want-1))
		})
	}
}

package stack

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/temporalconf"
)

// A database keeps the fairness that it was made with, since the server would lose sight of the tasks that wait in it.
func TestFairnessIsThatOfTheDatabase(t *testing.T) {
	conf := func(on any) temporalconf.Config {
		return temporalconf.Config{DynamicConfig: map[string]any{fairness: on, "other": 1}}
	}
	for _, tt := range []struct {
		name         string
		made, now    any
		before, want bool // whether the database is older than the setting, and what the server gets
	}{
		{"new, with it", true, true, false, true},
		{"new, without it", false, false, false, false},
		{"turned on later", false, true, false, false},
		{"turned off later", true, false, false, true},
		{"older than the setting", nil, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			made, now := conf(tt.made), conf(tt.now)
			server := &temporalServer{supervisor: &supervisor{files: layout{t.TempDir()},
				order: order{Options: Options{Temporal: &made}}}}
			if !tt.before {
				got, err := server.withFairness()
				require.NoError(t, err)
				require.Equal(t, conf(tt.made), got)
			}
			require.NoError(t, os.WriteFile(server.files.database(), nil, 0o600))
			server.Options.Temporal = &now
			got, err := server.withFairness()
			require.NoError(t, err)
			require.Equal(t, conf(tt.want), got)
			require.Equal(t, conf(tt.now), now, "the configuration itself is left alone")
			require.NoError(t, os.Remove(server.files.database()))
			got, err = server.withFairness()
			require.NoError(t, err)
			require.Equal(t, conf(tt.now), got, "a new database is made as the configuration says")
		})
	}
}

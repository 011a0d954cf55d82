package runs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The clock of a zone goes forward by an hour, by half of one, or never.
func TestTheNextGapOfAZonesClock(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 34, 56, 0, time.UTC)
	for name, c := range map[string]struct {
		at string // local, after the gap
		by time.Duration
	}{
		"Europe/Berlin":       {"2027-03-28 03:00", time.Hour},
		"America/New_York":    {"2027-03-14 03:00", time.Hour},
		"Australia/Lord_Howe": {"2027-10-03 02:30", 30 * time.Minute},
		"UTC":                 {},
		"Asia/Kolkata":        {},
	} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		g, found := nextGap(zone, now)
		require.Equal(t, c.by > 0, found, name)
		if found {
			require.Equal(t, c.at, g.at.Format("2006-01-02 15:04"), name)
			require.Equal(t, c.by, g.by, name)
		}
	}
}

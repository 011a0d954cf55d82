package device

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJudgePolled(t *testing.T) {
	at := time.Unix(0, 0)
	unread := Device{Faults: map[string]string{"memory": "ERROR_UNKNOWN"}}
	up := func(n int64) Device { return Device{Links: Links{Total: Some(int64(18)), Active: Some(n)}} }
	for _, c := range []struct {
		name  string
		polls []Device
		state State
		kinds []Kind // of the last poll
	}{
		{"nothing is supported", []Device{{}}, Healthy, nil},
		{"lost", []Device{{Lost: "fallen off the bus"}}, Failed, []Kind{KindLost}},
		{"reset required", []Device{{Lost: "reset required"}}, Failed, []Kind{KindResetRequired}},
		{"came back", []Device{{Lost: "fallen off the bus"}, {}}, Healthy, nil},
		{"no recovery needed", []Device{{Recovery: Some("none")}}, Healthy, nil},
		{"driver asks for a reset", []Device{{Recovery: Some("drain_and_reset")}}, Failed, []Kind{KindResetRequired}},
		{"driver asks for a restart", []Device{{Recovery: Some("reboot")}}, Failed, []Kind{KindRebootRequired}},
		{"driver asks to drain", []Device{{Recovery: Some("drain_p2p")}}, Degraded, []Kind{KindDrain}},
		{"errors of old", []Device{{ECC: ECC{Uncorrected: Some(int64(1))}}}, Degraded, []Kind{KindDoubleBit}},
		{
			"corrected errors", []Device{{ECC: ECC{Corrected: Some(int64(1000)), Uncorrected: Some(int64(0))}}},
			Healthy, nil,
		},
		{
			"row pending and failed", []Device{{Rows: Rows{Pending: Some(true), Failed: Some(true)}}}, Failed,
			[]Kind{KindRemapFailed, KindRemapPending},
		},
		{"page pending", []Device{{Rows: Rows{PagePending: Some(true)}}}, Degraded, []Kind{KindRemapPending}},
		{"unread once", []Device{unread}, Healthy, nil},
		{"unread, read, unread twice", []Device{unread, {}, unread, unread}, Healthy, nil},
		{"unread three times", []Device{unread, unread, unread}, Failed, []Kind{KindUnreadable}},
		{"links up from the start", []Device{up(18)}, Healthy, nil},
		{"links that were never up", []Device{up(12), up(12)}, Healthy, nil},
		{"a link goes down", []Device{up(18), up(17)}, Degraded, []Kind{KindLinkDown}},
		{"a link comes back", []Device{up(18), up(17), up(18)}, Healthy, nil},
		{"all links go down", []Device{up(18), up(0)}, Degraded, []Kind{KindLinkDown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJudge()
			var h Health
			for i, d := range c.polls {
				h = healthOf(j.polled(d, at.Add(time.Duration(i)*time.Minute)))
			}
			var kinds []Kind
			for _, r := range h.Reasons {
				kinds = append(kinds, r.Kind)
				require.NotEmpty(t, r.Detail)
			}
			require.Equal(t, c.state, h.State)
			require.Equal(t, c.kinds, kinds)
		})
	}
}

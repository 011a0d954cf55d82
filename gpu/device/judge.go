package device

import (
	"cmp"
	"fmt"
	"time"
)

// judge keeps the state that a single reading of a device cannot show.
type judge struct {
	thermal, power window
	links          int64 // most links that were ever up
	unread         int   // polls one after the other with fields that could not be read
}

// unreadLimit is how many consecutive polls may fail before the device counts as failed.
const unreadLimit = 3

func newJudge() *judge {
	return &judge{thermal: window{span: throttleSpan}, power: window{span: throttleSpan}}
}

// Assess lists the faults that one reading of a device shows. It finds no Xids and no faults that show only over time.
func Assess(d Device) Health { return healthOf(newJudge().polled(d, time.Time{})) }

// polled lists the faults that a poll's readings show.
func (j *judge) polled(d Device, at time.Time) []Reason {
	var out []Reason
	add := func(when bool, kind Kind, state State, format string, args ...any) {
		if when {
			out = append(out, Reason{kind, state, fmt.Sprintf(format, args...)})
		}
	}
	if d.Lost != "" {
		kind := KindLost
		if d.Lost == resetRequired {
			kind = KindResetRequired
		}
		add(true, kind, Failed, "%s", d.Lost)
		return out
	}
	add(
		j.unreadable(d), KindUnreadable, Failed, "%d polls one after the other failed: %s", j.unread,
		cmp.Or(d.Faults[noHandle], d.Faults["memory"]),
	)
	switch d.Recovery.Value {
	case "reset", "drain_and_reset":
		add(true, KindResetRequired, Failed, "the driver asks for a reset")
	case "reboot":
		add(true, KindRebootRequired, Failed, "the driver asks for a restart of the machine")
	case "drain_p2p":
		add(true, KindDrain, Degraded, "the driver asks to end peer-to-peer traffic")
	}
	add(d.ECC.Uncorrected.Value > 0, KindDoubleBit, Degraded, "%d since the driver was loaded", d.ECC.Uncorrected.Value)
	add(d.Rows.Pending.Value, KindRemapPending, Degraded, "a memory row is replaced at the next reset")
	add(d.Rows.PagePending.Value, KindRemapPending, Degraded, "a memory page is retired at the next reset")
	add(d.Rows.Failed.Value, KindRemapFailed, Failed, "a memory row could not be replaced")
	j.links = max(j.links, d.Links.Active.Value)
	add(
		d.Links.Active.OK && d.Links.Active.Value < j.links, KindLinkDown, Degraded, "%d of %d links are up",
		d.Links.Active.Value, j.links,
	)
	return append(out, j.throttling(d, at)...)
}

// unreadable reports that the device, or its memory, which every device has, could not be read for too long.
func (j *judge) unreadable(d Device) bool {
	if d.Faults[noHandle] != "" || d.Faults["memory"] != "" {
		j.unread++
	} else {
		j.unread = 0
	}
	return j.unread >= unreadLimit
}

func (j *judge) throttling(d Device, at time.Time) (out []Reason) {
	if !d.Clocks.Reasons.OK {
		return nil
	}
	thermal, power := throttled(d.Clocks.Reasons.Value)
	j.thermal.add(at, thermal)
	j.power.add(at, power)
	for _, w := range []struct {
		kind   Kind
		window *window
		by     string
	}{{KindThrottleThermal, &j.thermal, "heat"}, {KindThrottlePower, &j.power, "a power brake"}} {
		if w.window.raised {
			share, _ := w.window.share()
			out = append(
				out,
				Reason{
					w.kind, Degraded,
					fmt.Sprintf("clocks lowered by %s for %.0f%% of the last %s", w.by, 100*share, throttleSpan),
				},
			)
		}
	}
	return out
}

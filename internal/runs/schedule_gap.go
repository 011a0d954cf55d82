package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// gap is when a zone's clock goes forward: at an instant, by a time that it leaves out.
type gap struct {
	at time.Time // in the zone
	by time.Duration
}

// nextGap finds the first time within a year at which a zone's clock goes forward.
func nextGap(zone *time.Location, now time.Time) (gap, bool) {
	offset := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	from := now.Truncate(time.Minute)
	for range 366 * 24 {
		to := from.Add(time.Hour)
		if by := offset(to) - offset(from); by > 0 {
			for offset(from.Add(time.Minute)) == offset(to)-by {
				from = from.Add(time.Minute)
			}
			return gap{from.Add(time.Minute).In(zone), by}, true
		}
		from = to
	}
	return gap{}, false
}

// LeftOut returns the times that a schedule leaves out within a year, because the clock of its zone goes forward over
// them, in words; "" if there is none.
func (s *Session) LeftOut(ctx context.Context, a Schedule, now time.Time) (string, error) {
	zone, err := time.LoadLocation(a.Zone)
	if err != nil || a.Zone == "" || len(a.Crons) == 0 {
		return "", nil // a zone that only the server knows
	}
	g, found := nextGap(zone, now)
	if !found {
		return "", nil
	}
	const week = 7 * 24 * time.Hour
	before, err := s.dueWithin(ctx, a.Name, g.at.Add(-week), g.by)
	if err != nil {
		return "", err
	}
	due, err := s.dueWithin(ctx, a.Name, g.at, g.by)
	if err != nil {
		return "", err
	}
	for _, t := range before { // the same clock time a week later, as if the clock had not changed
		if next := t.Add(week); !slices.ContainsFunc(due, next.Equal) {
			return fmt.Sprintf("%s at %s: the clock of %s goes from %s to %s", g.at.Format("2 January 2006"),
				t.In(zone).Format("15:04"), a.Zone, g.at.Add(-week).Format("15:04"), g.at.Format("15:04")), nil
		}
	}
	return "", nil
}

// dueWithin lists the times at which a schedule is due from a time on.
func (s *Session) dueWithin(ctx context.Context, name string, from time.Time, within time.Duration) ([]time.Time,
	error) {
	got, err := s.Temporal.WorkflowService().ListScheduleMatchingTimes(ctx,
		&workflowservice.ListScheduleMatchingTimesRequest{Namespace: s.Lease.Addresses().Namespace, ScheduleId: name,
			StartTime: timestamppb.New(from.Add(-time.Second)),
			EndTime:   timestamppb.New(from.Add(within - time.Second))})
	if err != nil {
		return nil, fmt.Errorf("look up when the schedule %s is due: %w", name, err)
	}
	var out []time.Time
	for _, t := range got.GetStartTime() {
		out = append(out, t.AsTime())
	}
	return out, nil
}

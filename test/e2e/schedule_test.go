package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// planned is a schedule as `schedule list --json` prints it.
type planned struct {
	Name    string
	Paused  bool
	Note    string
	Next    *time.Time
	Started []struct {
		Workflow string `json:"workflow_id"`
	}
}

func (h *home) schedules(t *testing.T) map[string]planned {
	t.Helper()
	var all []planned
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "schedule", "list", "--json").ok(t).out), &all))
	out := map[string]planned{}
	for _, p := range all {
		out[p.Name] = p
	}
	return out
}

// runsNamed lists the runs in the record whose names begin so.
func (h *home) runsNamed(prefix string) (out []string) {
	for _, key := range h.record().keys(schema.CataloguePrefix) {
		name := strings.TrimSuffix(filepath.Base(key), ".json")
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}

// Schedules start trainings and evaluations under names of their own, are told to skip what overlaps, and can be
// paused, resumed, triggered and deleted.
func TestSchedulesStartRuns(t *testing.T) {
	h, want := needs(t, ownNamespace)
	h.ensureUp(t)
	c := h.dial(t)
	h.run(t, "schedule", "create", "nightly", tiny(), "--every", "1000h", "--priority", "4").ok(t)
	made := h.run(t, "schedule", "create", "measure", "--evaluate", "base", "--cron", "0 2 * * *", "--time-zone",
		"Europe/Berlin", "--run-id", "measured-{date}", "--set", "evaluation.problems=6").ok(t)
	require.Regexp(t, `measured-\d{8}`, made.out)
	require.Regexp(t, `warning: no run starts on \d+ March \d{4} at 02:00: the clock of Europe/Berlin goes from `+
		`02:00 to 03:00;`, made.err)
	require.Equal(t, 2, h.run(t, "schedule", "create", "nightly", tiny(), "--every", "1h").code, "the name is taken")
	eventually(t, func() bool { return len(h.schedules(t)) == 2 }, "both schedules to be listed") // visibility lags
	require.NotNil(t, h.schedules(t)["measure"].Next)
	nightly := c.ScheduleClient().GetHandle(t.Context(), "nightly")
	require.NoError(t, nightly.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	eventually(t, func() bool { return len(h.runsNamed("nightly-")) > 0 }, "the first run")
	first := h.runsNamed("nightly-")[0]
	require.Equal(t, want.Digest, h.run(t, "resume", first, "--json").ok(t).report(t).Digest)
	h.run(t, "schedule", "trigger", "measure").ok(t)
	eventually(t, func() bool { return len(h.runsNamed("measured-")) > 0 }, "the evaluation")
	measured := h.runsNamed("measured-")[0]
	require.Regexp(t, `^measured-\d{8}$`, measured)
	shown := h.run(t, "resume", measured).ok(t).out
	require.Contains(t, shown, "evaluate, step 4", "it measured the policy after the last step")
	d, err := nightly.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, d.Schedule.Policy.Overlap)
	require.Len(t, h.runsNamed("nightly-"), 1)
	if *update {
		action := h.schedules(t)["nightly"].Started[0].Workflow
		require.NoError(t, c.GetWorkflow(t.Context(), action, "").Get(t.Context(), nil))
		save(t, h, action, "", "scheduled.json")
	}
	w, err := c.DescribeWorkflowExecution(t.Context(), first, "")
	require.NoError(t, err)
	require.EqualValues(t, 4, w.GetWorkflowExecutionInfo().GetPriority().GetPriorityKey())

	h.run(t, "schedule", "pause", "nightly", "--note", "the cluster is full").ok(t)
	eventually(t, func() bool {
		p := h.schedules(t)["nightly"]
		return p.Paused && p.Note == "the cluster is full" && p.Next == nil
	}, "the schedule to be paused")
	h.run(t, "schedule", "resume", "nightly").ok(t)
	eventually(t, func() bool { return !h.schedules(t)["nightly"].Paused }, "the schedule to go on")
	h.run(t, "schedule", "delete", "nightly").ok(t)
	r := h.run(t, "schedule", "trigger", "nightly")
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, r.err, `there is no schedule "nightly"`)
	deeds := h.run(t, "audit").ok(t).out
	for _, deed := range []string{"create", "trigger", "pause", "resume", "delete"} {
		require.Regexp(t, `(?m) schedule `+deed+` +{.*"schedule":"(nightly|measure)"`, deeds)
	}
	require.Equal(t, 1, strings.Count(deeds, " schedule delete "), "what was refused is not among them")
	require.Regexp(t, `(?m) schedule create +{"schedule":"nightly","run_id":"nightly-{time}","recipe":"tiny",`+
		`"digest":"[0-9a-f]{64}","every":"1000h0m0s","overlap":"skip"}$`, deeds)
	require.Regexp(t, `(?m) schedule create +{"schedule":"measure",.*"digest":"[0-9a-f]{64}","evaluates":"base",`,
		deeds)
	for run, schedule := range map[string]string{first: "nightly", measured: "measure"} {
		start := h.deeds(t, run)[0]
		require.Equal(t, []string{"start", "schedule " + schedule}, []string{start.Action, start.Actor})
		require.Contains(t, start.Detail, `"digest":"`)
	}
}

// What no schedule can do is refused before a server is asked, if possible.
func TestSchedulesThatCannotBe(t *testing.T) {
	h, _ := needs(t, sharedStack)
	for _, c := range []struct{ args, want string }{
		{"a quickstart", "--cron, --every: give one of them"},
		{"a quickstart --every 1h --cron @daily", "--cron, --every: give one of them"},
		{"a quickstart --every 1h --run-id fixed", "--run-id: must have {time} or {date} in it"},
		{"a quickstart --every 1h --run-id X{time}", "--run-id: run id"},
		{"A quickstart --every 1h", "NAME: run id"},
		{"a quickstart --every 1h --overlap wait", "--overlap: must be skip, buffer, cancel or allow"},
		{"a quickstart --every 1h --priority 6", "--priority: must be 1 to 5, got 6"},
		{"a quickstart --every 1h --evaluate base", "give a RECIPE to train by, or --evaluate RUN"},
		{"a --every 1h", "give a RECIPE to train by, or --evaluate RUN"},
		{"a --every 1h --evaluate nothing", "nothing"},
		{"a quickstart --every 1h --set optimizer.lr=-1", "optimizer.lr"},
		{"a quickstart --cron monday", "--cron, --every, --time-zone:"},
	} {
		r := h.run(t, append([]string{"schedule", "create"}, strings.Fields(c.args)...)...)
		require.Equal(t, 2, r.code, "%s: %s", c.args, r.err)
		require.Contains(t, r.err, c.want, c.args)
	}
}

// Updates of several runs wait in the queue gpu, which has no worker. When one comes, it takes that of the run with the
// highest priority first, although that run came last. Child workflows and activities have their run's priority.
func TestTheRunWithTheHighestPriorityGoesFirst(t *testing.T) {
	h, _ := needs(t, ownNamespace)
	h = h.with("ROPEWALK_NO_WORKER=1")
	c := h.dial(t)
	rest := h.startWorker(t, "--queues", "cpu,rollout,sandbox")
	waits := func(run string) (found bool) {
		for _, workflow := range []string{run, workflows.StepWorkflowID(run, 1)} {
			d, err := c.DescribeWorkflowExecution(t.Context(), workflow, "")
			if err != nil {
				continue
			}
			for _, a := range d.GetPendingActivities() {
				found = found || a.GetActivityType().GetName() == api.WarmStart
			}
		}
		return found
	}
	runs := []string{"low-1", "low-2", "low-3", "high"}
	var commands []*command
	for _, run := range runs {
		order := []string{"--priority", "5", "--fairness-key", "team"}
		if run == "high" {
			order = []string{"--priority", "1"}
		}
		commands = append(commands, h.start(t, recipe(run, order...)...))
		eventually(t, func() bool { return waits(run) }, "the warm start of %s to wait", run)
	}
	eventually(t, func() bool { return h.queue(t, c, "gpu").GetStats().GetApproximateBacklogCount() == 4 },
		"the last task to reach its queue")
	gpu := h.startWorker(t, "--queues", "gpu")
	started := map[string]time.Time{}
	for _, run := range runs {
		eventually(t, func() bool {
			e := startEvent(t, c, run, api.WarmStart)
			if e != nil {
				started[run] = e.GetEventTime().AsTime()
			}
			return e != nil
		}, "the warm start of %s", run)
	}
	for _, run := range runs[:3] {
		require.True(t, started["high"].Before(started[run]), "%s began before the run of a higher priority", run)
	}
	eventually(t, func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), workflows.StepWorkflowID("low-1", 1), "")
		p := d.GetWorkflowExecutionInfo().GetPriority()
		return err == nil && p.GetPriorityKey() == 5 && p.GetFairnessKey() == "team"
	}, "a step with its run's priority and key")
	for _, w := range append(commands, gpu, rest) {
		w.signal(t, syscall.SIGKILL)
		w.wait(t)
	}
}

// startEvent returns the event with which an activity of a workflow was started; nil if it was not.
func startEvent(t *testing.T, c client.Client, workflow, name string) *historypb.HistoryEvent {
	t.Helper()
	scheduled := map[int64]bool{}
	for events := fetch(c, workflow, ""); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == name {
			scheduled[e.GetEventId()] = true
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED &&
			scheduled[e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()] {
			return e
		}
	}
	return nil
}

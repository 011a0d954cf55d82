package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/ropewalk/ropewalk/schema"
)

// A worker is killed three times in the middle of steps. The run's command needs no server of its own: the worker is
// all that it starts.
func TestKilledWorkerLosesNothing(t *testing.T) {
	h, want := needs(t, ownNamespace)
	run := h.start(t, recipe("worker-killed")...)
	for range 3 {
		worker := h.freezeInMidStep(t, "worker-killed")
		require.Equal(t, map[string]int{"worker": worker}, h.state(t).Parts)
		require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
		eventually(t, func() bool { now := h.state(t).Parts["worker"]; return now > 0 && now != worker },
			"the worker to be started again")
	}
	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
}

// freezeInMidStep stops the worker's process in the middle of a step, and returns its process id.
func (h *home) freezeInMidStep(t *testing.T, run string) int {
	t.Helper()
	return h.freezeWhile(t, func() bool { return h.record().partialStep(run) > 0 }, "a step of "+run+" to be half done")
}

// freezeWhile stops the worker's process while the record meets a condition, and returns its process id. An object that
// was on its way to the store may still arrive.
func (h *home) freezeWhile(t *testing.T, so func() bool, what string) int {
	t.Helper()
	worker := 0
	eventually(t, func() bool {
		if !so() {
			return false
		}
		if worker = h.state(t).Parts["worker"]; worker <= 0 { // it is being started again
			return false
		}
		require.NoError(t, syscall.Kill(worker, syscall.SIGSTOP))
		if so() {
			return true
		}
		require.NoError(t, syscall.Kill(worker, syscall.SIGCONT))
		return false
	}, "%s", what)
	return worker
}

// The servers, their supervisors and the command are killed one after the other, each in the middle of a step. Then
// Temporal's database is damaged, which the error says, and what to do. The run needs only the record.
func TestABrokenStackLosesNothing(t *testing.T) {
	h, want := needs(t, ownServers("it kills them, and damages Temporal's database"))
	const name = "broken"
	run := h.start(t, recipe(name)...)
	halfDone := func() {
		t.Helper()
		eventually(t, func() bool { return h.record().partialStep(name) > 0 || !run.running() }, "a half done step")
		require.True(t, run.running(), "too late to prove anything: %s", run.err.String())
	}
	for _, part := range []string{"s3", "temporal"} {
		halfDone()
		pid := h.state(t).Parts[part]
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		eventually(t, func() bool { now := h.state(t).Parts[part]; return now > 0 && now != pid },
			"%s to be started again", part)
	}

	// Both servers and the worker die with their supervisors. The command joins the next ones.
	halfDone()
	was := h.state(t)
	require.Len(t, was.Supervisors, 3)
	for _, pid := range was.Supervisors {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	for name, title := range map[string]string{"temporal": "Temporal", "s3": "S3", "worker": "the worker"} {
		run.says(t, "the supervisor of "+title+" has died: joining the next one")
		eventually(t, func() bool {
			now := h.state(t)
			return now.Supervisors[name] != was.Supervisors[name] && now.Parts[name] > 0
		}, "the next supervisor to have %s", title)
	}
	eventually(t, func() bool { return h.state(t).Addresses == was.Addresses }, "the servers to be where they were")
	h.interrupt(t, run, "ropewalk resume "+name)

	db := filepath.Join(h.dir, "temporal.db")
	require.NoError(t, os.WriteFile(db, []byte("what a failing disk gave back"), 0o600))
	r := h.run(t, "resume", name, "--json")
	require.Equal(t, 1, r.code, r.err)
	require.Contains(t, r.err, "ropewalk up --reset-temporal")
	scratch := t.TempDir()
	up := h.with("TMPDIR=" + scratch)
	up.up = up.start(t, "up", "--reset-temporal")
	up.up.says(t, "the stack stays up")
	require.Contains(t, up.up.err.String(), "Temporal's database is now "+db+".aside-")
	c := h.dial(t)
	run = h.start(t, "resume", name, "--json")
	eventually(t, func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), name, "")
		return err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	}, "the run to go on")
	run.signal(t, syscall.SIGINT)
	require.Equal(t, 130, run.wait(t).code)
	require.Equal(t, "its command was interrupted; go on with: ropewalk resume "+name, h.cancelledBecause(t, name))
	h.undisturbed(t, want, h.run(t, "resume", name, "--json").ok(t).report(t))

	var pids []int
	for _, pid := range h.state(t).Parts {
		pids = append(pids, pid)
	}
	require.Len(t, pids, 3)
	up.ensureDown(t)
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	left, err := os.ReadDir(scratch)
	require.NoError(t, err)
	require.Empty(t, left, "scratch folders are removed")
}

// A reset ends the execution that the command follows. The command continues with the execution that the reset made.
func TestInterruptByResetIsFollowed(t *testing.T) {
	h, want := needs(t, ownNamespace)
	run := h.start(t, recipe("reset")...)
	worker := h.freezeWhile(t, func() bool { return h.record().heads("reset") > 0 }, "the first step")
	c := h.dial(t)
	at := int64(0)
	for events := fetch(c, "reset", ""); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED && at == 0 {
			at = e.GetEventId()
		}
	}
	require.Positive(t, at)
	_, err := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: h.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "reset"},
		Reason: "a test", WorkflowTaskFinishEventId: at, RequestId: "reset",
	})
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(worker, syscall.SIGCONT))
	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
}

// cancelledBecause returns the reason that Temporal shows for a run's only cancelled execution.
func (h *home) cancelledBecause(t *testing.T, run string) string {
	t.Helper()
	c := h.dial(t)
	var found []*workflowpb.WorkflowExecutionInfo
	eventually(t, func() bool { // visibility lags behind
		list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf(`WorkflowId="%s" and ExecutionStatus="Canceled"`, run)})
		require.NoError(t, err)
		found = list.GetExecutions()
		return len(found) > 0
	}, "a cancelled execution of %s", run)
	require.Len(t, found, 1)
	for events := fetch(c, run, found[0].GetExecution().GetRunId()); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		if a := e.GetWorkflowExecutionCancelRequestedEventAttributes(); a != nil {
			return a.GetCause()
		}
	}
	require.Fail(t, "the history has no request to cancel")
	return ""
}

// stamps returns when each committed manifest of a run was written.
func (h *home) stamps(t *testing.T, run string) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	for _, key := range h.record().keys(schema.ManifestsPrefix(run)) {
		info, err := os.Stat(h.record().path(key))
		require.NoError(t, err)
		out[key] = info.ModTime()
	}
	require.NotEmpty(t, out)
	return out
}

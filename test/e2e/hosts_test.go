package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/authority"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/workflows"
)

// onTwoHosts are settings of a run whose model is sharded over two hosts, with one rank on each. Every group counts, so
// that updates learn.
var onTwoHosts = []string{
	"--set", "engine={kind: torch, hosts: 2}", "--set", "steps=2", "--set", "warm_start.steps=6", "--set",
	"warm_start.optimizer.warmup_steps=2",
	"--set", "rollout.prompts=4", "--set", "rollout.samples_per_prompt=4", "--set", "rollout.shard_groups=2", "--set",
	"evaluation.problems=3",
	"--set", "resample.vspo=null", "--set", "resample.roc=null", "--set", "loss.entropy=0.01", "--set",
	"loss.old_log_probs=recompute",
	"--set", "optimizer.minibatches=2", "--set", "optimizer.epochs=8",
}

// lostHosts asks for TestOneModelOnTwoHosts (`make test-hosts`). In `make test`, gpu/torch and gpu/gang test shared
// models and lost hosts with fewer PyTorch processes.
const lostHosts = "ROPEWALK_TEST_LOST_HOSTS"

// TestOneModelOnTwoHosts completes runs on two workers that act as hosts: without TLS, with TLS among strangers and,
// with lostHosts, with the second host's ranks killed in the middle of an update, and with the first host's worker
// killed in the middle of an update and never restarted. It also cancels a run.
func TestOneModelOnTwoHosts(t *testing.T) {
	longform.Need(t, lostHosts, "test-hosts")
	h, _ := needs(t, emptyNamespace)
	python, err := filepath.Abs(pythontest.Need(t, "TORCH", "torch", "transformers", "safetensors"))
	require.NoError(t, err)
	h = h.with("ROPEWALK_NO_WORKER=1", "ROPEWALK_PYTHON="+python)
	c := h.dial(t)
	a := h.startWorker(t, "-v", "--threads", "1", "--host", "a")
	a.says(t, "queue=gpu.a")
	b := h.startWorker(t, "-v", "--threads", "1", "--host", "b", "--queues", "gpu")
	want := h.digest(t, h.start(t, recipe("without-tls", onTwoHosts...)...))
	require.Contains(t, a.err.String()+b.err.String(), "hosts that share a model speak without TLS")
	a.end(t)
	b.end(t)

	ours, others := newAuthority(t), newAuthority(t)
	a = h.startWorker(t, append(secured(t, ours, "a"), "-v", "--threads", "1")...)
	a.says(t, "queue=gpu.a")
	run := h.start(t, recipe("two-hosts", onTwoHosts...)...)
	h.refuseStrangers(t, c, a, others)
	b = h.startWorker(t, append(secured(t, ours, "b"), "-v", "--threads", "1", "--queues", "gpu")...)
	require.Equal(t, want, h.digest(t, run))
	for _, w := range []*command{a, b} {
		require.NotContains(t, w.err.String(), "connect ranks with rank 0")
		require.Equal(t, 1, strings.Count(w.err.String(), "Gloo does not encrypt the tensors"))
		require.NotContains(t, w.err.String(), "PRIVATE KEY")
	}
	leader, member := inOrder(a, b)
	require.Len(t, ranksOf(leader), 1)
	require.Len(t, ranksOf(member), 1)
	require.Contains(t, member.err.String(), "serve an engine's ranks")
	queues := h.queues(t, c, "two-hosts/step=2")
	queues[api.GenerateRollouts] = h.queues(t, c, "two-hosts/step=2/shard=0")[api.GenerateRollouts]
	home := map[*command]string{a: "gpu.a", b: "gpu.b"}[leader]
	for _, name := range []string{api.GenerateRollouts, api.ComputeTokenOutputs, api.UpdatePolicy,
		api.PublishPolicy} {
		require.Equal(t, []string{home}, queues[name], name)
	}

	t.Run("a member's ranks die", func(t *testing.T) {
		run := h.start(t, recipe("member-lost", onTwoHosts...)...)
		h.inUpdate(t, c, "member-lost")
		for _, pid := range ranksOf(member) {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		require.Equal(t, want, h.digest(t, run))
		require.Equal(t, 2, strings.Count(leader.err.String(), "engine started"))
	})

	t.Run("the run is cancelled", func(t *testing.T) {
		run := h.start(t, recipe("cancelled", append(onTwoHosts, "--set", "optimizer.epochs=500")...)...)
		h.inUpdate(t, c, "cancelled")
		require.NoError(t, c.CancelWorkflow(context.Background(), "cancelled", ""))
		began := time.Now()
		eventually(t, func() bool { return len(ranksOf(a))+len(ranksOf(b)) == 0 }, "all ranks to end")
		t.Logf("all ranks of both hosts had ended %.1f s after the cancellation", time.Since(began).Seconds())
		require.NotZero(t, run.wait(t).code)
		h.noRanks(t, c)
	})

	t.Run("the leader is killed", func(t *testing.T) {
		run := h.start(t, recipe("leader-lost", onTwoHosts...)...)
		h.inUpdate(t, c, "leader-lost")
		leader, member := inOrder(a, b) // either worker may have led the previous run
		require.NoError(t, leader.cmd.Process.Kill())
		began := time.Now()
		eventually(t, func() bool { return len(ranksOf(member)) == 0 }, "the member's ranks to end")
		t.Logf("the member's ranks had ended %.1f s after the leader", time.Since(began).Seconds())
		third := h.startWorker(t, append(secured(t, ours, "c"), "-v", "--threads", "1")...)
		require.Equal(t, want, h.digest(t, run))
		require.Contains(t, member.err.String()+third.err.String(), "engine started")
		queues := h.queues(t, c, "leader-lost/step=1")
		require.Equal(t, []string{workflows.QueueGPU}, queues[api.FindHome],
			"once its home was gone, the run found another")
		require.Len(t, queues[api.UpdatePolicy], 2)
		require.Equal(t, map[*command]string{a: "gpu.a", b: "gpu.b"}[leader], queues[api.UpdatePolicy][0])
		h.run(t, "verify", "leader-lost").ok(t)
		third.end(t)
		member.end(t)
	})
}

// secured are the flags of a worker that acts as a host with a certificate of the authority.
func secured(t *testing.T, by *authority.Authority, host string) []string {
	t.Helper()
	pair := issue(t, by, host)
	return []string{"--host", host, "--host-tls-cert", pair.Cert, "--host-tls-key", pair.Key, "--host-tls-ca", by.File}
}

// refuseStrangers has hosts with a certificate of another authority, and without any, ask for the place that the
// leader's engine waits to fill.
func (h *home) refuseStrangers(t *testing.T, c client.Client, leader *command, others *authority.Authority) {
	t.Helper()
	eventually(t, func() bool {
		n, err := c.CountWorkflow(context.Background(), countOpen(workflows.ServeRanksName))
		return err == nil && n.GetCount() == 1
	}, "the leader to ask for another host")
	for _, x := range []struct {
		flags          []string
		member, leader string
	}{
		{secured(t, others, "other"), "certificate signed by unknown authority", "bad certificate"},
		{[]string{"--host", "plain"}, "host a demands TLS and a certificate", "it uses no TLS, this host demands it"},
	} {
		stranger := h.startWorker(t, append(x.flags, "-v", "--threads", "1", "--queues", "gpu")...)
		stranger.says(t, x.member)
		leader.says(t, x.leader)
		stranger.end(t)
	}
}

// digest is the checkpoint of a run, once it has ended.
func (h *home) digest(t *testing.T, run *command) string {
	t.Helper()
	var out report
	r := run.wait(t).ok(t)
	require.NoError(t, json.Unmarshal([]byte(r.out), &out), "%s", r.out)
	require.NotEmpty(t, out.Digest)
	return out.Digest
}

// inOrder returns first the worker that opened the last engine, which is the one that took the stage.
func inOrder(a, b *command) (leader, member *command) {
	started, serves := strings.LastIndex(b.err.String(), "engine started"), strings.LastIndex(b.err.String(),
		"serve an engine's ranks")
	if started > serves {
		return b, a
	}
	return a, b
}

// inUpdate waits until the update of a run's first step has begun.
func (h *home) inUpdate(t *testing.T, c client.Client, run string) {
	t.Helper()
	eventually(t, func() bool {
		d, err := c.DescribeWorkflowExecution(context.Background(), workflows.StepWorkflowID(run, 1), "")
		if err != nil {
			return false // it has not begun
		}
		for _, a := range d.GetPendingActivities() {
			if a.GetActivityType().GetName() == api.UpdatePolicy &&
				a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
				return true
			}
		}
		return false
	}, "the first update of %s", run)
}

// queues returns the queues of a workflow's activities, by name, each once.
func (h *home) queues(t *testing.T, c client.Client, workflow string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for events := fetch(c, workflow, ""); events.HasNext(); {
		event, err := events.Next()
		require.NoError(t, err)
		if a := event.GetActivityTaskScheduledEventAttributes(); a != nil {
			name, queue := a.GetActivityType().GetName(), a.GetTaskQueue().GetName()
			if known := out[name]; len(known) == 0 || known[len(known)-1] != queue {
				out[name] = append(known, queue)
			}
		}
	}
	return out
}

// noRanks requires that no workflow of ranks is open.
func (h *home) noRanks(t *testing.T, c client.Client) {
	t.Helper()
	eventually(t, func() bool {
		n, err := c.CountWorkflow(context.Background(), countOpen(workflows.ServeRanksName))
		return err == nil && n.GetCount() == 0
	}, "the workflows of ranks to end")
}

// ranksOf are the processes of engines' ranks below a worker.
func ranksOf(worker *command) (out []int) {
	parents, ranks := map[int]int{}, []int{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
		if parents[pid], err = strconv.Atoi(fields[1]); err != nil || fields[0] == "Z" {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(line), "engine/main.py") && !strings.Contains(string(line), "engine/agent.py") {
			ranks = append(ranks, pid)
		}
	}
	for _, pid := range ranks {
		p := pid
		for p > 1 && p != worker.cmd.Process.Pid {
			p = parents[p]
		}
		if p == worker.cmd.Process.Pid {
			out = append(out, pid)
		}
	}
	return out
}

func countOpen(workflow string) *workflowservice.CountWorkflowExecutionsRequest {
	return &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = '" + workflow +
		"' and ExecutionStatus = 'Running'"}
}

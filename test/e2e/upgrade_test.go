package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// anotherBuild is the command under test with another digest.
func anotherBuild(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(binary())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "ropewalk")
	require.NoError(t, os.WriteFile(path, append(text, "another build"...), 0o755))
	return path
}

// codeOf is the digest that a program's manifests have.
func (h *home) codeOf(t *testing.T) string {
	t.Helper()
	var v struct{ Code string }
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "version", "--json").ok(t).out), &v))
	return v.Code
}

// superseded is a run on the first of two builds of a deployment, of which the second has become the current one before
// the run's first step. The worker of the first is stopped (SIGSTOP).
type superseded struct {
	home        *home
	want        report // of the same run without builds
	c           client.Client
	second      *home // with the program of the second build
	old, recent *command
	training    *command
}

func startSuperseded(t *testing.T, deployment, name string) superseded {
	t.Helper()
	h, want := needs(t, ownNamespace)
	h = h.with("ROPEWALK_NO_WORKER=1")
	s := superseded{home: h, want: want, c: h.dial(t), second: h.with()}
	s.second.program = anotherBuild(t)
	s.old = h.startWorker(t, "--deployment", deployment, "--build-id", "one")
	h.run(t, "upgrade", deployment, "one").ok(t)
	s.recent = s.second.startWorker(t, "--deployment", deployment, "--build-id", "two")
	eventually(t, func() bool { // at first the server may not find the deployment that it has just made
		r := h.run(t, "upgrade", deployment)
		return r.code == 0 && strings.Contains(r.out, "two")
	}, "build two to be known")

	s.training = h.start(t, recipe(name)...)
	prepared := schema.AtInit(name, schema.StagePrepare).ManifestKey()
	eventually(t, func() bool { return h.record().has(prepared) || !s.training.running() }, "the run to be prepared")
	s.old.signal(t, syscall.SIGSTOP)
	eventually(t, func() bool {
		_, err := s.c.WorkerDeploymentClient().GetHandle(deployment).SetCurrentVersion(t.Context(),
			client.WorkerDeploymentSetCurrentVersionOptions{BuildID: "two"})
		return err == nil
	}, "all queues of build two to be known")
	require.Zero(t, h.record().heads(name), "the second build became current too late to prove anything")
	return s
}

// A run begins on one build of a deployment and stays there although another build has become the current one, until it
// is told to go on with that. Then nothing of the first build is needed, and the weights are those of a run without
// builds.
func TestARunChangesBuildsBetweenSteps(t *testing.T) {
	longform.Need(t, upgradesVariable, "test-upgrades")
	s := startSuperseded(t, "rl", "upgraded")
	h, c, old, run := s.home, s.c, s.old, s.training
	require.Contains(t, h.run(t, "upgrade", "rl").ok(t).out, "upgraded")
	old.signal(t, syscall.SIGCONT)
	eventually(t, func() bool { return h.record().heads("upgraded") > 0 || !run.running() }, "the first step")
	_, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{WorkflowID: "upgraded",
		UpdateName: workflows.UpdatePause, WaitForStage: client.WorkflowUpdateStageCompleted})
	require.NoError(t, err)
	var answer struct {
		Moved []struct {
			Run  string `json:"run_id"`
			From string
			Step int
		}
	}
	text := h.run(t, "upgrade", "rl", "two", "--json").ok(t).out
	require.NoError(t, json.Unmarshal([]byte(text), &answer))
	require.Len(t, answer.Moved, 1, text)
	moved := answer.Moved[0]
	require.Equal(t, "upgraded", moved.Run)
	require.Equal(t, "one", moved.From)
	require.Greater(t, moved.Step, 1)
	require.LessOrEqual(t, moved.Step, steps, "told too late to prove anything")
	h.run(t, "unpause", "upgraded").ok(t)
	eventually(t, func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), "upgraded", "")
		on := d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion()
		return err == nil && on.GetBuildId() == "two"
	}, "the run to be on build two")
	old.signal(t, syscall.SIGKILL)

	require.Equal(t, s.want.Digest, run.wait(t).ok(t).report(t).Digest)
	h.run(t, "verify", "upgraded").ok(t)
	codes := map[bool]string{true: h.codeOf(t), false: s.second.codeOf(t)}
	require.NotEqual(t, codes[true], codes[false])
	for step := 1; step <= steps; step++ {
		for _, stage := range []string{schema.StageUpdate, schema.StagePublish} {
			m := h.record().manifest(t, schema.At("upgraded", step, stage).ManifestKey())
			require.Equal(t, codes[step < moved.Step], m.Code, "step %d, %s", step, stage)
		}
	}
	require.Regexp(t, `(?m) upgrade +{"build_id":"two","deployment":"rl"}$`, h.run(t, "audit").ok(t).out)
	require.Contains(t, h.run(t, "audit", "upgraded").ok(t).out, " upgrade ")
	builds := h.run(t, "upgrade", "rl").ok(t).out
	for line := range strings.Lines(builds) {
		require.NotContains(t, line, "upgraded", "an ended run is on no build")
	}
	require.Regexp(t, `two +current`, builds)
	s.recent.end(t)
	if *update {
		hop := save(t, h, "upgraded", "", "train-upgraded.json")
		first := save(t, h, "upgraded", hop, "hand-over.json")
		save(t, h, "upgraded", first, "train-hands-over.json")
	}
}

// A run goes on with the build that Temporal's UI, command line or worker controller has made current: no one tells it
// to.
func TestARunFollowsTheCurrentBuild(t *testing.T) {
	longform.Need(t, upgradesVariable, "test-upgrades")
	s := startSuperseded(t, "followed", "follows")
	h, c, old, run := s.home, s.c, s.old, s.training
	old.signal(t, syscall.SIGCONT)

	// While the run is paused, the times of its last step are recorded, by the first build.
	eventually(t, func() bool { return h.record().heads("follows") > 0 || !run.running() }, "the first step")
	asked, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{WorkflowID: "follows",
		UpdateName: workflows.UpdatePause, WaitForStage: client.WorkflowUpdateStageCompleted})
	require.NoError(t, err)
	var paused workflows.Steered
	require.NoError(t, asked.Get(t.Context(), &paused))
	require.LessOrEqual(t, paused.Step, steps, "paused too late to prove anything")
	times := schema.At("follows", paused.Step-1, "timings_step").ManifestKey()
	eventually(t, func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), "follows", "")
		return h.record().has(times) && err == nil && len(d.GetPendingActivities()) == 0
	}, "the times of the step before the pause")
	h.run(t, "unpause", "follows").ok(t)
	eventually(t, func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), "follows", "")
		on := d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion()
		return err == nil && on.GetBuildId() == "two"
	}, "the run to be on build two")
	old.signal(t, syscall.SIGKILL)

	require.Equal(t, s.want.Digest, run.wait(t).ok(t).report(t).Digest)
	h.run(t, "verify", "follows").ok(t)
	codes := map[bool]string{true: h.codeOf(t), false: s.second.codeOf(t)}
	for step := 1; step <= steps; step++ {
		m := h.record().manifest(t, schema.At("follows", step, schema.StageUpdate).ManifestKey())
		require.Equal(t, codes[step < paused.Step], m.Code, "step %d", step)
	}
	s.recent.end(t)
	if *update {
		save(t, h, "follows", asked.RunID(), "train-superseded.json")
	}
}

// What no one can upgrade to, or from, is said.
func TestUpgradesThatCannotBe(t *testing.T) {
	h, _ := needs(t, sharedStack)
	for args, want := range map[string]string{
		"upgrade nothing":                    `there is no deployment "nothing"`,
		"upgrade":                            "missing argument DEPLOYMENT",
		"worker --build-id 1":                "--build-id: it needs --deployment",
		"worker --deployment a.b":            "--deployment, TEMPORAL_DEPLOYMENT_NAME: must match",
		"worker --deployment a --build-id /": "--build-id, TEMPORAL_WORKER_BUILD_ID: must match",
	} {
		r := h.run(t, strings.Fields(args)...)
		require.Equal(t, 2, r.code, fmt.Sprint(args, r.err))
		require.Contains(t, r.err, want)
	}
}

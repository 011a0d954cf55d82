package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// flip changes one byte in the middle of an object and returns a function that restores it.
func (r record) flip(t *testing.T, key string) (restore func()) {
	t.Helper()
	text, err := os.ReadFile(r.path(key))
	require.NoError(t, err)
	info, err := os.Stat(r.path(key))
	require.NoError(t, err)
	write := func() {
		// In place, because the server keeps its own notes with the file.
		f, err := os.OpenFile(r.path(key), os.O_WRONLY, info.Mode())
		require.NoError(t, err)
		_, err = f.WriteAt(text, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	text[len(text)/2] ^= 0x40
	write()
	return func() { text[len(text)/2] ^= 0x40; write() }
}

// unfinish removes a run's last step from a stage on, as if the run had been stopped there.
func (r record) unfinish(t *testing.T, run string, stages ...string) {
	t.Helper()
	remove := []string{schema.HeadKey(run, "4"), schema.At(run, steps, schema.StageEvaluate).ManifestKey(),
		schema.At(run, steps, schema.StageEnd).ManifestKey()}
	for _, stage := range stages {
		remove = append(remove, schema.At(run, steps, stage).ManifestKey())
	}
	for _, key := range remove {
		require.NoError(t, os.Remove(r.path(key)), key)
	}
}

// A damaged shard and a damaged checkpoint are named, and a run that needs them parks until they are restored.
func TestDamageIsNamedAndRefused(t *testing.T) {
	h, want := needs(t, ownNamespace)
	h.ensureUp(t)
	whole := h.record().outline(t, "base")
	for name, damage := range map[string]func(*testing.T, *home, string) report{
		"shard": damagedShard, "checkpoint": damagedCheckpoint,
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, want.Digest, damage(t, h, "base").Digest)
			require.Equal(t, whole, h.record().outline(t, "base"))
			h.run(t, "verify", "base").ok(t)
		})
	}
}

// damagedShard damages a shard of a run that lacks its last step's end, and restores it.
func damagedShard(t *testing.T, h *home, run string) report {
	turns := h.record().manifest(t,
		schema.At(run, steps, schema.StageRollout).WithTurn(0).WithShard(1).ManifestKey()).ShardsOf(schema.Turns)
	require.Len(t, turns, 1)
	restore := h.record().flip(t, turns[0].Key)

	v := h.run(t, "verify", run)
	require.Equal(t, 1, v.code, v.err)
	require.Contains(t, v.out, turns[0].Key)
	require.Contains(t, v.out, "what to do")
	require.Equal(t, 1, strings.Count(v.out, turns[0].Key), "one fault, told once:\n%s", v.out)
	require.NoError(t, os.RemoveAll(filepath.Join(h.dir, "cache"))) // it may hold the right bytes, by their digest
	q := h.run(t, "sql", "--run", run, "select sum(len(token_ids)) from turns")
	require.Equal(t, 1, q.code, q.err)
	require.Contains(t, q.err, turns[0].Key)

	h.record().unfinish(t, run, schema.StageAdvantage, schema.StageUpdate, schema.StagePublish)
	r := h.run(t, "resume", run, "--json")
	p := r.parked(t)
	require.Equal(t, api.FailCorrupt, p.Parked.Kind)
	require.Equal(t, schema.StageAdvantage, p.Parked.Failures[0].Stage)
	for _, part := range []string{"step 4", api.ComputeAdvantages, turns[0].Key, "restore the object from a copy",
		"ropewalk unpark " + run + " --retry"} {
		require.Contains(t, r.err, part)
	}
	require.NotContains(t, r.err, "retryable")
	skip := h.run(t, "unpark", run, "--skip")
	require.Equal(t, 2, skip.code, skip.err)
	require.Contains(t, skip.err, "advantage is one piece for the whole step")
	again := h.run(t, "unpark", run, "--retry", "--json") // nothing is repaired yet
	require.Equal(t, p.Parked.Failures[0].Text, again.parked(t).Parked.Failures[0].Text)

	restore()
	ended := h.run(t, "unpark", run, "--retry", "--json").ok(t).report(t)
	late := h.run(t, "unpark", run, "--retry")
	require.Equal(t, 2, late.code, late.err)
	require.Contains(t, late.err, "is not open")
	return ended
}

// damagedCheckpoint is the same with the checkpoint that the last step starts from.
func damagedCheckpoint(t *testing.T, h *home, run string) report {
	checkpoint := h.record().manifest(t, schema.At(run, steps-1, schema.StageUpdate).ManifestKey()).Checkpoint
	weights := checkpoint.Prefix + "model.safetensors"
	require.True(t, h.record().has(weights), "keep_last keeps the step before the last")
	restore := h.record().flip(t, weights)
	v := h.run(t, "verify", run)
	require.Equal(t, 1, v.code)
	require.Contains(t, v.out, weights)

	h.record().unfinish(t, run, schema.StageUpdate, schema.StagePublish)
	r := h.run(t, "resume", run, "--json")
	r.parked(t)
	for _, part := range []string{"step 4", api.UpdatePolicy, weights, "restore the object from a copy"} {
		require.Contains(t, r.err, part)
	}
	h.run(t, "unpark", run, "--abort").ok(t)
	follow := h.run(t, "follow", run)
	require.Equal(t, 1, follow.code, follow.err)
	require.Contains(t, follow.err, "step 4: aborted: update: "+api.UpdatePolicy)
	require.Contains(t, follow.err, "ropewalk resume "+run)
	restore()
	return h.run(t, "resume", run, "--json").ok(t).report(t)
}

func TestMissingPythonIsSaid(t *testing.T) {
	h, _ := needs(t, noServers)
	h.wrap = hidePython(t)
	programs := t.TempDir()
	for _, folder := range needServers(t) {
		for _, name := range []string{"temporal", "versitygw"} {
			if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
				_ = os.Symlink(filepath.Join(folder, name), filepath.Join(programs, name)) // both may lie in both
			}
		}
	}
	r := h.with("PATH="+programs).run(t, recipe("x")...)
	require.Equal(t, 1, r.code, r.err)
	require.Contains(t, r.err, "install Python 3.8 or later (Debian: apt-get install python3)")
}

// hidePython returns a command prefix. The prefix mounts other files over the interpreters that the sandbox tries in
// addition to PATH, so that the command does not find them.
func hidePython(t *testing.T) []string {
	t.Helper()
	programs := map[string]string{"unshare": "", "mount": "", "sh": ""} // the command's PATH has none of them
	for name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("cannot hide /usr/bin/python3: %v", err)
		}
		programs[name] = path
	}
	script := ""
	for _, usual := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if path, err := filepath.EvalSymlinks(usual); err == nil {
			script += programs["mount"] + " --bind /dev/null " + path + " && "
		}
	}
	wrap := []string{programs["unshare"], "--map-root-user", "--mount", programs["sh"], "-c", script + `exec "$@"`,
		"sh"}
	if out, err := exec.Command(wrap[0], append(wrap[1:], "/bin/true")...).CombinedOutput(); err != nil {
		t.Skipf("cannot hide /usr/bin/python3: %v: %s", err, out)
	}
	return wrap
}

package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/folder"
	"github.com/ropewalk/ropewalk/store/s3"
)

// deeds are those that audit lists.
func (h *home) deeds(t *testing.T, args ...string) (all []schema.Deed) {
	t.Helper()
	text := h.run(t, append([]string{"audit", "--json"}, args...)...).ok(t).out
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	return all
}

// newest matches the keys of what the steps after the first one have made.
var newest = regexp.MustCompile(`/step=[2-9][./]|/checkpoints/0*[2-9]-`)

// deleteNewest deletes the objects of a run that its later steps have made and that are chosen, and returns their
// number.
func deleteNewest(t *testing.T, objects store.Store, run string, chosen func(key string) bool) (n int) {
	t.Helper()
	all, err := objects.List(t.Context(), schema.RunPrefix(run))
	require.NoError(t, err)
	for _, o := range all {
		if newest.MatchString(o.Key) && chosen(o.Key) {
			require.NoError(t, objects.Delete(t.Context(), o.Key))
			n++
		}
	}
	require.Positive(t, n)
	return n
}

// The newest part of a bucket with versioning is lost: what manifests name, which verify finds, or the manifests as
// well. All of it can be restored.
func TestTheNewestHourOfTheBucketIsLost(t *testing.T) {
	needs(t, sharedStack)
	server := storetest.VersitygwWith(t, storetest.Setup{Versions: true}) // the shared server keeps no versions
	objects, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: stack.DefaultBucket,
		AccessKey: server.AccessKey, SecretKey: server.SecretKey})
	require.NoError(t, err)
	require.NoError(t, objects.EnsureBucket(t.Context()))
	require.NoError(t, objects.EnableVersioning(t.Context()))
	copyRun(t, "base", shared.home.record(), objects, func(string) bool { return true })
	h := newHome(t, t.TempDir(), "AWS_ENDPOINT_URL_S3="+server.Endpoint, "AWS_ACCESS_KEY_ID="+server.AccessKey,
		"AWS_SECRET_ACCESS_KEY="+server.SecretKey)

	lost := deleteNewest(t, objects, "base", func(key string) bool { return strings.Contains(key, "/table=") })
	r := h.run(t, "verify", "base")
	require.Equal(t, 1, r.code, r.err)
	listed := h.run(t, "restore", "base", "--dry-run").ok(t)
	require.Equal(t, lost, strings.Count(listed.out, "\n"))
	require.Equal(t, 1, h.run(t, "verify", "base").code, "--dry-run restores nothing")
	require.Equal(t, listed.out, h.run(t, "restore", "base", "--within", "30m").ok(t).out)
	h.run(t, "verify", "base").ok(t)
	require.NotContains(t, h.run(t, "restore", "--within", "30m").ok(t).out, "run=base/", "a second call finds nothing")

	noted := h.deeds(t, "base")
	require.Equal(t, "start", noted[0].Action)
	lost = deleteNewest(t, objects, "base", func(string) bool { return true })
	for _, prefix := range []string{schema.DeedsPrefix, schema.StatesPrefix} {
		notes, err := objects.List(t.Context(), prefix+"base/")
		require.NoError(t, err)
		require.NotEmpty(t, notes, prefix)
		for _, o := range notes {
			require.NoError(t, objects.Delete(t.Context(), o.Key))
		}
		lost += len(notes)
	}
	require.Equal(t, 2, h.run(t, "audit", "base").code, "the deeds are lost, too")
	require.Equal(t, lost, strings.Count(h.run(t, "restore", "base").ok(t).out, "\n"))
	require.Equal(t, noted, h.deeds(t, "base")[:len(noted)], "what was noted before is there again")
	require.Regexp(t, `(?m) restore +{"within":"30m0s"}$(.|\n)* restore +{"within":"1h0m0s"}$`,
		h.run(t, "audit", "base").ok(t).out)
	require.Regexp(t, `(?m) restore +{"within":"30m0s"}$`, h.run(t, "audit").ok(t).out)
	h.run(t, "verify", "base").ok(t)
}

// copyRun copies what a bucket holds of a run to another one, as any S3 client may.
func copyRun(t *testing.T, run string, from record, to store.Store, chosen func(key string) bool) {
	t.Helper()
	here := folder.New(from.folder)
	for _, prefix := range append(schema.RecordPrefixes(), schema.StatesPrefix, schema.DeedsPrefix) {
		all, err := here.List(t.Context(), prefix)
		require.NoError(t, err)
		for _, o := range all {
			ours := strings.HasPrefix(o.Key, "warmstarts/") || slices.ContainsFunc([]string{schema.RunPrefix(run),
				schema.CatalogueKey(run), schema.StatesPrefix + run + "/", schema.DeedsPrefix + run + "/"},
				func(p string) bool { return strings.HasPrefix(o.Key, p) })
			if !ours || !chosen(o.Key) {
				continue
			}
			text, err := here.Get(t.Context(), o.Key)
			require.NoError(t, err)
			require.NoError(t, to.Put(t.Context(), o.Key, text))
		}
	}
}

// A run is interrupted, goes on, and its command is killed. Then it goes on in another bucket, with a Temporal that
// does not know it. What the step in progress had committed was lost on the way: the run makes it again. Nothing else
// is made again, and the weights are those of an undisturbed run.
func TestAnInterruptedRunGoesOnElsewhere(t *testing.T) {
	longform.Need(t, killsVariable, "test-kills")
	h, want := needs(t, ownNamespace)
	const name = "moved"
	run := h.start(t, recipe(name)...)
	eventually(t, func() bool { return h.record().partialStep(name) > 0 || !run.running() }, "a half done step")
	h.interrupt(t, run, "the run goes on at the server: ropewalk follow "+name)

	run = h.start(t, "resume", name, "--json")
	worker := h.freezeWhile(t, func() bool {
		require.True(t, run.running(), "too late to prove anything: %s", run.err.String())
		return h.record().heads(name) > 0 && h.record().partialStep(name) > 0
	}, "a half done step after a finished one")
	run.signal(t, syscall.SIGKILL)
	run.wait(t)
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	h.ended(t)
	done := h.record().heads(name)
	require.Less(t, done, steps)

	elsewhere, _ := emptyNamespace(t)
	lost := 0
	copyRun(t, name, h.record(), elsewhere.store(t), func(key string) bool {
		inProgress := strings.Contains(key, fmt.Sprintf("/step=%d/", done+1))
		if inProgress {
			lost++
		}
		return !inProgress
	})
	require.Positive(t, lost, "the step that was in progress had committed nothing")
	before := elsewhere.stamps(t, name)
	elsewhere = elsewhere.with("ROPEWALK_ACTOR=the operator")
	r := elsewhere.run(t, "resume", name, "--json").ok(t)
	require.Equal(t, want.Digest, r.report(t).Digest)
	require.Equal(t, shared.home.record().outline(t, "base"), elsewhere.record().outline(t, name))
	elsewhere.run(t, "verify", name).ok(t)
	after := elsewhere.stamps(t, name)
	for key, stamp := range before {
		require.Equal(t, stamp, after[key], "%s was committed and is written again", key)
	}
	require.Equal(t, done, h.record().heads(name), "the first bucket is as it was")

	deeds := elsewhere.run(t, "audit", name).ok(t).out
	require.Len(t, regexp.MustCompile(`(?m)^\S+ +the operator +\S+ +resume`).FindAllString(deeds, -1), 1, deeds)
	require.Contains(t, deeds, "start", "what was done before the move is there, too")
	r = elsewhere.run(t, "restore", name)
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, r.err, "has no versioning, so that what was deleted is lost")
}

package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/folder"
	"github.com/ropewalk/ropewalk/store/s3"
	"github.com/ropewalk/ropewalk/store/storetest"
)

// bucketOf opens the default bucket of a test's server.
func bucketOf(t *testing.T, s storetest.Server) *s3.Store {
	t.Helper()
	objects, err := s3.New(s3.Options{Endpoint: s.Endpoint, Bucket: "ropewalk", AccessKey: s.AccessKey,
		SecretKey: s.SecretKey})
	require.NoError(t, err)
	require.NoError(t, objects.EnsureBucket(t.Context()))
	return objects
}

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
	t.Parallel()
	want := baseReport(t)
	server := storetest.VersitygwWith(t, storetest.Setup{Versions: true})
	objects := bucketOf(t, server)
	lendBase(t, server)
	require.NoError(t, objects.EnableVersioning(t.Context()))
	h := newHome(t, t.TempDir(), append(awsEnv(server), "TEMPORAL_ADDRESS="+temporalServer(t))...)
	require.Equal(t, want.Digest, h.train(t, "hour").Digest)

	lost := deleteNewest(t, objects, "hour", func(key string) bool { return strings.Contains(key, "/table=") })
	r := h.run(t, "verify", "hour")
	require.Equal(t, 1, r.code, r.err)
	listed := h.run(t, "restore", "hour", "--dry-run").ok(t)
	require.Equal(t, lost, strings.Count(listed.out, "\n"))
	require.Equal(t, 1, h.run(t, "verify", "hour").code, "--dry-run restores nothing")
	require.Equal(t, listed.out, h.run(t, "restore", "hour", "--within", "30m").ok(t).out)
	h.run(t, "verify", "hour").ok(t)
	require.NotContains(t, h.run(t, "restore", "--within", "30m").ok(t).out, "run=hour/", "a second call finds nothing")

	noted := h.deeds(t, "hour")
	require.Equal(t, "start", noted[0].Action)
	lost = deleteNewest(t, objects, "hour", func(string) bool { return true })
	for _, prefix := range []string{schema.DeedsPrefix, schema.StatesPrefix} {
		notes, err := objects.List(t.Context(), prefix+"hour/")
		require.NoError(t, err)
		require.NotEmpty(t, notes, prefix)
		for _, o := range notes {
			require.NoError(t, objects.Delete(t.Context(), o.Key))
		}
		lost += len(notes)
	}
	require.Equal(t, 2, h.run(t, "audit", "hour").code, "the deeds are lost, too")
	require.Equal(t, lost, strings.Count(h.run(t, "restore", "hour").ok(t).out, "\n"))
	require.Equal(t, noted, h.deeds(t, "hour")[:len(noted)], "what was noted before is there again")
	require.Regexp(t, `(?m) restore +{"within":"30m0s"}$(.|\n)* restore +{"within":"1h0m0s"}$`,
		h.run(t, "audit", "hour").ok(t).out)
	require.Regexp(t, `(?m) restore +{"within":"30m0s"}$`, h.run(t, "audit").ok(t).out)
	h.run(t, "verify", "hour").ok(t)
	require.Equal(t, want.Digest, h.run(t, "resume", "hour", "--json").ok(t).report(t).Digest)
}

// A run that was interrupted goes on in another bucket, on another S3 server, with another Temporal that does not know
// it. What the step in progress had committed was lost on the way: the run makes it again, with the same weights.
func TestARunMovesToAnotherCluster(t *testing.T) {
	t.Parallel()
	h, want := withBase(t)
	h.interrupt(t, "moved")
	done := h.record().heads("moved")
	require.Less(t, done, steps, "interrupted too late to prove anything")
	server := storetest.Versitygw(t)
	there := bucketOf(t, server)
	lost := 0
	here := folder.New(h.record().folder)
	for _, prefix := range append(schema.RecordPrefixes(), schema.StatesPrefix, schema.DeedsPrefix) {
		all, err := here.List(t.Context(), prefix)
		require.NoError(t, err)
		for _, o := range all {
			if strings.Contains(o.Key, fmt.Sprintf("/step=%d/", done+1)) {
				lost++
				continue
			}
			text, err := here.Get(t.Context(), o.Key)
			require.NoError(t, err)
			require.NoError(t, there.Put(t.Context(), o.Key, text))
		}
	}
	require.Positive(t, lost, "the step that was in progress had committed nothing")
	elsewhere := newHome(t, t.TempDir(), append(awsEnv(server), "TEMPORAL_ADDRESS="+temporalServer(t),
		"ROPEWALK_ACTOR=the operator")...)
	r := elsewhere.run(t, "resume", "moved", "--json").ok(t)
	require.Equal(t, want.Digest, r.report(t).Digest)
	elsewhere.run(t, "verify", "moved").ok(t)
	require.Equal(t, done, h.record().heads("moved"), "the first bucket is as it was")

	deeds := elsewhere.run(t, "audit", "moved").ok(t).out
	require.Len(t, regexp.MustCompile(`(?m)^\S+ +the operator +\S+ +resume`).FindAllString(deeds, -1), 1, deeds)
	require.Contains(t, deeds, "start", "what was done before the move is there, too")
	r = elsewhere.run(t, "restore", "moved")
	require.Equal(t, 2, r.code, r.err)
	require.Contains(t, r.err, "has no versioning, so that what was deleted is lost")
}

package s3_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

// roles are the accounts of deploy/roles.
var roles = []string{"reader", "operator", "worker"}

const bucketOfRoles = "record-of-a-team"

// TestRoles has a real server enforce the policies of deploy/roles. Each role does what it may do, and is refused all
// else.
func TestRoles(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"stranger": "stranger-secret-4711"}
	for _, role := range roles {
		secrets[role] = role + "-secret-4711"
	}
	server := storetest.VersitygwWith(t, storetest.Setup{Accounts: secrets, Versions: true})
	owner := open(t, server, bucketOfRoles, nil)
	require.NoError(t, owner.EnableVersioning(t.Context()))
	require.NoError(t, owner.PutPolicy(t.Context(), rolesPolicy(t, "--bucket", bucketOfRoles, "reader=reader",
		"operator=operator", "worker=worker")))

	const run = "runs/run=a/"
	put := func(key string) attempt {
		return func(ctx context.Context, c *minio.Core, _ string) error {
			_, err := c.Client.PutObject(ctx, bucketOfRoles, key, strings.NewReader("new"), 3, minio.PutObjectOptions{})
			return err
		}
	}
	remove := func(key string) attempt {
		return func(ctx context.Context, c *minio.Core, _ string) error {
			return c.RemoveObject(ctx, bucketOfRoles, key, minio.RemoveObjectOptions{})
		}
	}
	reading, all := roles, slices.Clone(roles)
	for _, one := range []struct {
		what string
		try  attempt
		may  []string
	}{
		{"list", func(ctx context.Context, c *minio.Core, _ string) error {
			_, err := c.ListObjectsV2(bucketOfRoles, "runs/", "", "", "", 10)
			return err
		}, all},
		{"read", func(ctx context.Context, c *minio.Core, _ string) error {
			_, err := c.StatObject(ctx, bucketOfRoles, run+"heads/step=1.json", minio.StatObjectOptions{})
			return err
		}, reading},
		{"write a shard", put(run + "table=turns/step=1/gen=0/00000-0123456789abcdef.parquet"),
			[]string{"operator", "worker"}}, // commands compact runs
		{"commit a manifest", put(run + "manifests/step=1/rollout/gen=0.json"),
			[]string{"operator", "worker"}},
		{"sign a manifest", put(run + "signatures/manifests/step=1/rollout/gen=0.json/a"),
			[]string{"operator", "worker"}},
		{"note a call", put(run + "calls/step=1/begun.json"), []string{"operator", "worker"}},
		{"write a checkpoint", put(run + "checkpoints/1-a/config.json"), []string{"operator", "worker"}},
		{"write a head", put(run + "heads/step=1.json"), []string{"operator", "worker"}},
		{"write a warm start", put("warmstarts/a/manifest.json"), []string{"worker"}},
		{"list a run", put("catalogue/a.json"), []string{"worker"}},
		{"describe the format", put("format/README.md"), []string{"worker"}},
		{"note a hub's revision", put("models/hub/o/n/r/c"), []string{"worker"}},
		{"probe the store", put(".ropewalk-probe/a"), []string{"worker"}},
		{"ask for a run", put("requests/a.json"), []string{"operator"}},
		{"upload a file", put("imports/a.jsonl"), []string{"operator"}},
		{"note who asked", put("deeds/a/t-x.json"), []string{"operator", "worker"}},
		{"note a state", put("states/a/t-running.json"), []string{"operator", "worker"}},
		{"write elsewhere", put("elsewhere/a"), nil},
		{"delete a head", remove(run + "heads/step=1.json"), []string{"operator"}}, // garbage collection
		{"delete a manifest", remove(run + "manifests/step=1/rollout/gen=0.json"), []string{"operator"}},
		{"delete a shard", remove(run + "table=turns/a"), []string{"operator"}},
		{"prune a checkpoint", remove(run + "checkpoints/1-a/model.safetensors"), []string{"operator", "worker"}},
		{"delete a segment", remove(run + "segments/step=1/gen=0/shard=0/a/000001-turns.parquet"),
			[]string{"operator", "worker"}},
		{"take a request", remove("requests/a.json"), []string{"operator", "worker"}},
		{"delete who asked", remove("deeds/a/t-x.json"), nil},
		{"delete a catalogue's entry", remove("catalogue/a.json"), nil},
		{"delete an upload", remove("imports/a.jsonl"), nil},
		{"delete a version", func(ctx context.Context, c *minio.Core, version string) error {
			return c.RemoveObject(ctx, bucketOfRoles, run+"heads/step=1.json",
				minio.RemoveObjectOptions{VersionID: version})
		}, nil},
		{"stop versioning", func(ctx context.Context, c *minio.Core, _ string) error {
			return c.SuspendVersioning(ctx, bucketOfRoles)
		}, nil},
		{"lock objects", func(ctx context.Context, c *minio.Core, _ string) error {
			mode, days, unit := minio.Governance, uint(1), minio.Days
			return c.SetBucketObjectLockConfig(ctx, bucketOfRoles, &mode, &days, &unit)
		}, nil},
		{"change the policy", func(ctx context.Context, c *minio.Core, _ string) error {
			return c.SetBucketPolicy(ctx, bucketOfRoles, `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
				"Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::`+bucketOfRoles+`/*"}]}`)
		}, nil},
		{"delete the bucket", func(ctx context.Context, c *minio.Core, _ string) error {
			return c.RemoveBucket(ctx, bucketOfRoles)
		}, nil},
	} {
		t.Run(strings.ReplaceAll(one.what, " ", "-"), func(t *testing.T) {
			for _, role := range append(all, "stranger") {
				version := seed(t, server)
				err := one.try(t.Context(), client(t, server, role, secrets[role]), version)
				if slices.Contains(one.may, role) {
					require.NoError(t, err, role)
					continue
				}
				require.Equal(t, minio.AccessDenied, minio.ToErrorResponse(err).Code, "%s: %v", role, err)
			}
		})
	}
}

// commit-once.json closes the objects that a program puts once, those of the audit log too, and no others. The test's
// server does not know its condition, so its patterns are matched here.
func TestCommitOnceClosesWhatIsPutOnce(t *testing.T) {
	text, err := os.ReadFile("../../deploy/roles/commit-once.json")
	require.NoError(t, err)
	var policy struct {
		Statement []struct {
			Effect           string
			Action, Resource []string
			Condition        map[string]map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(text, &policy))
	require.Len(t, policy.Statement, 2)
	s, kept := policy.Statement[0], policy.Statement[1]
	require.Equal(t, "Deny", kept.Effect)
	require.Equal(t, []string{"s3:DeleteObject", "s3:DeleteObjectVersion"}, kept.Action)
	require.Equal(t, s.Resource, kept.Resource, "what is deleted could be put again")
	require.Empty(t, kept.Condition)
	require.Equal(t, "Deny", s.Effect)
	require.Equal(t, []string{"s3:PutObject"}, s.Action)
	require.Equal(t, map[string]map[string]string{"Null": {"s3:if-none-match": "true"}}, s.Condition)
	closed := func(key string) bool {
		return slices.ContainsFunc(s.Resource, func(pattern string) bool {
			form := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
			return regexp.MustCompile("^" + form + "$").MatchString("arn:aws:s3:::ropewalk/" + key)
		})
	}
	deed := schema.NewDeed("start", "", "ada", "host", time.Now())
	shard := schema.At("a", 1, schema.StageRollout).WithShard(0).WithTurn(0)
	for _, key := range []string{schema.DeedKey("a", deed, "x"), schema.DeedKey(schema.NoRun, deed, "x"),
		schema.HeadKey("a", "1"), shard.ManifestKey(), schema.AtInit("a", schema.StageAmend).WithTry(0).ManifestKey(),
		schema.AtWarmStart(strings.Repeat("a", 64)).ManifestKey(), schema.CatalogueKey("a")} {
		require.True(t, closed(key), key)
	}
	for _, key := range []string{shard.DataKey(schema.Turns, strings.Repeat("a", 16), "parquet"),
		shard.CheckpointPrefix("1-a") + "model.safetensors", schema.RequestKey("a"), ".ropewalk-probe/a"} {
		require.False(t, closed(key), key)
	}
}

// attempt tries one operation. version is a version of the run's head.
type attempt func(ctx context.Context, c *minio.Core, version string) error

// seed writes as the owner what the attempts read and delete.
func seed(t *testing.T, server storetest.Server) (version string) {
	t.Helper()
	c := client(t, server, server.AccessKey, server.SecretKey)
	put, err := c.Client.PutObject(t.Context(), bucketOfRoles, "runs/run=a/heads/step=1.json", strings.NewReader("{}"),
		2, minio.PutObjectOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, put.VersionID)
	return put.VersionID
}

func client(t *testing.T, server storetest.Server, key, secret string) *minio.Core {
	t.Helper()
	c, err := minio.NewCore(strings.TrimPrefix(server.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(key, secret, ""), Region: s3.DefaultRegion, MaxRetries: 1})
	require.NoError(t, err)
	return c
}

// rolesPolicy has the documented program merge the roles' policies.
func rolesPolicy(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("python3", append([]string{"../../deploy/roles/bucket-policy.py"}, args...)...).Output()
	require.NoError(t, err)
	return string(out)
}

// A worker's start and a large object's upload in parts need no more than the worker's policy.
func TestAWorkersPolicySuffices(t *testing.T) {
	t.Parallel()
	server := storetest.VersitygwWith(t, storetest.Setup{Accounts: map[string]string{"worker": "worker-secret-4711"}})
	owner := open(t, server, bucketOfRoles, nil)
	require.NoError(t, owner.PutPolicy(t.Context(), rolesPolicy(t, "--bucket", bucketOfRoles, "worker=worker")))
	worker, err := s3.New(s3.Options{Endpoint: server.Endpoint, Bucket: bucketOfRoles, AccessKey: "worker",
		SecretKey: "worker-secret-4711", PartSize: 5 << 20})
	require.NoError(t, err)
	large := strings.Repeat("0123456789abcdef", 12<<20/16)
	const key = "runs/run=a/checkpoints/1-a/model.safetensors"
	require.NoError(t, worker.PutFrom(t.Context(), key, strings.NewReader(large), int64(len(large))))
	data, err := worker.Get(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, data, len(large))
	n, err := worker.AbortUploads(t.Context(), "", time.Now())
	require.NoError(t, err)
	require.Zero(t, n)
	err = worker.Delete(t.Context(), "runs/run=a/manifests/step=1/rollout/gen=0.json")
	require.ErrorIs(t, err, store.ErrCredentials)
}

// In a bucket that locks versions, what is deleted is gone from listings. Its versions stay, even if the owner deletes
// them.
func TestALockedBucket(t *testing.T) {
	t.Parallel()
	server := storetest.VersitygwWith(t, storetest.Setup{Versions: true})
	const bucket, key = "locked", "runs/run=a/heads/step=1.json"
	s := open(t, server, bucket, nil)
	require.NoError(t, s.EnableVersioning(t.Context()))
	require.NoError(t, s.PutLock(t.Context(), 7))
	b, err := s.Bucket(t.Context())
	require.NoError(t, err)
	require.Equal(t, s3.Lock{Mode: "GOVERNANCE", Days: 7}, b.Lock)

	require.NoError(t, s.PutIfAbsent(t.Context(), key, []byte("{}")))
	require.ErrorIs(t, s.PutIfAbsent(t.Context(), key, []byte("{1}")), store.ErrExists)
	c := client(t, server, server.AccessKey, server.SecretKey)
	info, err := c.StatObject(t.Context(), bucket, key, minio.StatObjectOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), key))
	_, err = s.Get(t.Context(), key)
	require.ErrorIs(t, err, store.ErrNotFound)
	left, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, left)

	old := minio.RemoveObjectOptions{VersionID: info.VersionID}
	require.ErrorContains(t, c.RemoveObject(t.Context(), bucket, key, old), "object protected by object lock")
	_, err = c.StatObject(t.Context(), bucket, key, minio.StatObjectOptions{VersionID: info.VersionID})
	require.NoError(t, err, "it can be restored")
}

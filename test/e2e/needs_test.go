package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/s3"
)

// A need is what a test needs of Temporal and of the object store. It returns a home that has it, and the report of the
// base run. The needs are noServers, sharedStack, ownNamespace, emptyNamespace and ownServers.
type need func(t *testing.T) (*home, report)

// needs declares what a test needs, in its first line, and lets it run in parallel with others.
func needs(t *testing.T, what need) (*home, report) {
	t.Helper()
	t.Parallel()
	return what(t)
}

// noServers is a home in which no command may start anything.
func noServers(t *testing.T) (*home, report) {
	t.Helper()
	return newHome(t, t.TempDir()), report{}
}

// shared is the stack of the whole package, which runs until the last test has ended. Its home holds the base run.
var shared struct {
	once    sync.Once
	home    *home
	servers []string // the environment that selects its servers
	base    report
	said    result // of the base run's command

	namespaces atomic.Int64 // made so far
}

// sharedStack is the shared home, whose stack is up, with a working folder of the test's own. A test reads the record
// and adds runs under names of its own. It stops, damages and deletes nothing.
func sharedStack(t *testing.T) (*home, report) {
	t.Helper()
	needServers(t)
	shared.once.Do(func() {
		h := newHome(t, filepath.Join(work, "shared"))
		shared.home = h
		h.ensureUp(t)
		shared.servers = strings.Fields(h.run(t, "env").ok(t).out)
		shared.said = h.run(t, recipe("base")...).ok(t)
		shared.base = shared.said.report(t)
	})
	require.NotEmpty(t, shared.base.Digest, "the base run failed in another test")
	h := *shared.home
	h.cwd = t.TempDir() // where the test may write files
	return &h, shared.base
}

// ownNamespace is a home with a namespace and a bucket of its own on the shared servers. The bucket holds a copy of the
// base run, so that runs need no warm start and tests can damage it. The home's own stack is a worker. It is not up.
func ownNamespace(t *testing.T) (*home, report) {
	t.Helper()
	h, want := emptyNamespace(t)
	copyBase(t, shared.home.dir, h.namespace)
	return h, want
}

// emptyNamespace is ownNamespace without the base run.
func emptyNamespace(t *testing.T) (*home, report) {
	t.Helper()
	_, want := sharedStack(t)
	name := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	name = fmt.Sprintf("%s-%d", name[:min(len(name), 50)], shared.namespaces.Add(1))
	h := newHome(t, t.TempDir(), append(append([]string(nil), shared.servers...), "TEMPORAL_NAMESPACE="+name,
		"ROPEWALK_S3_BUCKET="+name)...)
	h.namespace, h.objects = name, filepath.Join(shared.home.dir, "s3", name)

	conf, err := temporalconf.Load("")
	require.NoError(t, err)
	options := client.Options{HostPort: shared.home.state(t).Addresses.Temporal, Namespace: name,
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))}
	c, err := client.Dial(options)
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, stack.PrepareTemporal(ctx, c, options, conf))
	require.NoError(t, h.store(t).EnsureBucket(ctx))
	return h, want
}

// store opens the bucket of a home on the shared servers.
func (h *home) store(t *testing.T) *s3.Store {
	t.Helper()
	get := func(name string) string { return variable(h.env, name) }
	objects, err := s3.New(s3.Options{Endpoint: get("AWS_ENDPOINT_URL_S3"), Bucket: get("ROPEWALK_S3_BUCKET"),
		AccessKey: get("AWS_ACCESS_KEY_ID"), SecretKey: get("AWS_SECRET_ACCESS_KEY")})
	require.NoError(t, err)
	return objects
}

// variable is the last value of a variable in an environment.
func variable(env []string, name string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// ownServers is a home whose stack starts servers of its own. It holds a copy of the base run. The stack is not up. The
// reason says what the test does to the servers that other tests would not survive.
func ownServers(reason string) need {
	return func(t *testing.T) (*home, report) {
		t.Helper()
		require.NotEmpty(t, reason)
		_, want := sharedStack(t)
		h := newHome(t, t.TempDir())
		copyBase(t, h.dir, stack.DefaultBucket)
		return h, want
	}
}

// baseParts are what the base run and its warm start have put into a bucket.
var baseParts = []string{"warmstarts", schema.RunPrefix("base"), schema.CatalogueKey("base"),
	schema.StatesPrefix + "base", schema.DeedsPrefix + "base"}

// copyBase copies the base run into a bucket below a home's folder. The S3 server keeps notes of its own on each file:
// as attributes, or below objectmeta.
func copyBase(t *testing.T, dir, bucket string) {
	t.Helper()
	for _, part := range baseParts {
		for _, tree := range []string{"s3", "objectmeta"} {
			from := filepath.Join(shared.home.dir, tree, stack.DefaultBucket, part)
			if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
				require.NotEqual(t, "s3", tree, "the base run left no %s", part)
				continue
			}
			to := filepath.Join(dir, tree, bucket, part)
			require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
			out, err := exec.Command("cp", "--archive", "--no-target-directory", from, to).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
}

// The variables of long forms that several tests share.
const (
	killsVariable        = "ROPEWALK_TEST_KILLS"
	environmentsVariable = "ROPEWALK_TEST_ENVIRONMENTS"
	upgradesVariable     = "ROPEWALK_TEST_UPGRADES"
	experimentsVariable  = "ROPEWALK_TEST_EXPERIMENTS"
	packageVariable      = "ROPEWALK_TEST_PYTHON_PACKAGE"
)

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/download"
	"github.com/ropewalk/ropewalk/internal/metrics"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/spelling"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

// checkQueues refuses names that are no queues of temporal.yaml.
func (o workerOptions) checkQueues(conf temporalconf.Config) error {
	var names []string
	for _, q := range conf.Queues.All() {
		names = append(names, q.Name)
	}
	for _, q := range o.queues {
		if slices.Contains(names, q) {
			continue
		}
		if near := spelling.Nearest(q, names); near != "" {
			return badInput("--queues: there is no queue %q; did you mean %s?", q, near)
		}
		return badInput("--queues: there is no queue %q; there are %s", q, strings.Join(names, ", "))
	}
	return nil
}

// startPauses are the pauses after which a worker that starts asks a server once more: a connection may break in the
// middle of a question.
var startPauses = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// persist asks a server that could not be reached again.
func persist(ctx context.Context, ask func() error) error {
	for _, pause := range startPauses {
		err := ask()
		var away *serviceerror.Unavailable
		if !errors.Is(err, store.ErrUnreachable) && !errors.As(err, &away) {
			return err
		}
		slog.Warn("a server cannot be reached, which may pass", "error", err, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
	return ask()
}

// connectTemporal connects to the Temporal server that the environment names and checks that it has the namespace.
func connectTemporal(ctx context.Context, conf temporalconf.Config, counts *metrics.Process) (client.Client,
	client.Options, error) {
	options, err := temporalOptions(conf)
	if err != nil {
		return nil, options, err
	}
	options.MetricsHandler = counts.Temporal()
	var c client.Client
	if err := persist(ctx, func() (err error) {
		c, err = client.DialContext(ctx, options)
		return err
	}); err != nil {
		return nil, options, stack.Unanswered(ctx, options.HostPort, err)
	}
	if err := stack.CheckNamespace(ctx, c, options, conf); err != nil {
		c.Close()
		return nil, options, err
	}
	return c, options, nil
}

// temporalOptions reads the connection to Temporal from the environment. The namespace is that of temporal.yaml, as it
// is for commands, unless the environment names another.
func temporalOptions(conf temporalconf.Config) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, badInput("read Temporal's environment configuration: %w", err)
	}
	options.HostPort = cmp.Or(options.HostPort, client.DefaultHostPort)
	options.Namespace = cmp.Or(options.Namespace, conf.Namespace)
	options.Logger = sdklog.NewStructuredLogger(slog.Default())
	options.FailureConverter = failure.NewKinds()
	return options, nil
}

// openStore opens the store that the AWS_* variables name. requests counts what is asked of it.
func (o workerOptions) openStore(ctx context.Context, requests *metrics.Requests) (store.Store, error) {
	options, err := s3.FromEnv()
	if err != nil {
		return nil, badInput("%w\na worker connects to the servers that the environment names; for those of the "+
			"running local stack: env $(ropewalk env) ropewalk worker", err)
	}
	options.Observer = requests
	if err := runs.Sign(&options); err != nil {
		return nil, badinput.Of(err)
	}
	objects, err := s3.New(options)
	if err != nil {
		return nil, err
	}
	if _, err := objects.List(ctx, schema.CataloguePrefix); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	// Uploads that a killed worker began and no other continued take space that no listing shows.
	switch n, err := objects.AbortUploads(ctx, "", time.Now().Add(-staleUpload)); {
	case err != nil:
		slog.Warn("abort unfinished uploads", "error", err)
	case n > 0:
		slog.Info("aborted unfinished uploads", "uploads", n, "older_than", staleUpload)
	}
	return objects, nil
}

// remoteFiles opens remote files of tasks: dataset.Fetch.
var remoteFiles = download.Opener{Bucket: openBucket}.Open

// openBucket opens another bucket on the S3 server that the environment names.
func openBucket(name string) (store.Store, error) {
	options, err := s3.FromEnv()
	if err != nil {
		return nil, err
	}
	options.Bucket = name
	return s3.New(options)
}

// staleUpload is the age at which a starting worker aborts an unfinished upload.
const staleUpload = 7 * 24 * time.Hour

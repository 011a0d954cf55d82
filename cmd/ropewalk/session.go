package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/cache"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/folder"
	"github.com/ropewalk/ropewalk/store/s3"
)

// What a command needs of the stack.
var (
	needAll     = stack.Everything
	needServers = stack.Need{Temporal: true, S3: true, Worker: true}
	needStore   = stack.Need{S3: true}
)

// session is a command's hold on the servers: those that the environment names, or the local
// stack, joined when it runs and started when it does not.
type session struct {
	lease    *stack.Lease  // nil where no server is needed
	temporal client.Client // nil unless needed
	store    store.Store
}

// join joins the running stack or starts what the command needs for its own duration.
func (a *app) join(ctx context.Context, need stack.Need) (*session, error) {
	lease, err := stack.Join(ctx, stack.Options{Need: need, Progress: func(line string) { fmt.Fprintln(a.err, line) }})
	if err != nil {
		return nil, err
	}
	s := &session{lease: lease}
	if err := s.open(ctx, need); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// read opens the record for a command that only reads. The local stack's is read where it lies, as
// plain files: no server has to run for it, and nothing is copied.
func (a *app) read(ctx context.Context) (*session, error) {
	bucket, local, err := stack.LocalBucket()
	if err != nil {
		return nil, err
	}
	if local {
		return &session{store: folder.New(bucket)}, nil
	}
	return a.join(ctx, needStore)
}

// record reads the session's store through the cache on the local disk.
func (s *session) record() (*analysis.Record, error) {
	files, err := cache.Open(cacheFolder())
	if err != nil {
		return nil, err
	}
	return analysis.New(s.store).WithCache(files), nil
}

func (s *session) open(ctx context.Context, need stack.Need) error {
	address := s.lease.Addresses()
	var err error
	if need.S3 {
		options := s3.Options{
			Endpoint: address.S3Endpoint, Region: address.Region, Bucket: address.S3Bucket,
			AccessKey: address.AccessKey, SecretKey: address.SecretKey,
		}
		if address.S3Folder == "" { // the user's own server
			options.SessionToken = os.Getenv("AWS_SESSION_TOKEN")
		}
		s.store, err = s3.New(options)
		if err != nil {
			return err
		}
	}
	if !need.Temporal {
		return nil
	}
	options, err := address.ClientOptions()
	if err != nil {
		return err
	}
	options.Logger = sdklog.NewStructuredLogger(slog.Default())
	s.temporal, err = client.DialContext(ctx, options)
	if err != nil {
		return fmt.Errorf("connect to Temporal at %s: %w", address.Temporal, err)
	}
	return nil
}

// lost says why the stack went away under the command.
func (s *session) lost() error {
	if err := s.lease.Err(); err != nil {
		return fmt.Errorf("the stack was lost: %w", err)
	}
	return errors.New("the stack was lost")
}

// local reports whether Temporal is the local stack's.
func (s *session) local() bool { return s.lease.Addresses().UI != "" }

func (s *session) close() {
	if s.temporal != nil {
		s.temporal.Close()
	}
	if s.lease == nil {
		return
	}
	if err := s.lease.Close(); err != nil {
		slog.Warn("leave the stack", "error", err)
	}
}

package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/folder"
	"github.com/ropewalk/ropewalk/store/s3"
)

// The servers that a command needs.
var (
	NeedAll      = stack.Everything
	NeedServers  = stack.Need{Temporal: true, S3: true, Worker: true}
	NeedTemporal = stack.Need{Temporal: true, S3: true} // to end workflows; no worker runs any
	NeedStore    = stack.Need{S3: true}
)

// Session is a command's connection to the servers: those that the environment names, or the local stack. Close it.
type Session struct {
	Lease    *stack.Lease  // nil where no server is needed
	Temporal client.Client // nil unless needed
	Store    store.Store
}

// Connector opens sessions for a command.
type Connector struct {
	Messages io.Writer                  // progress of starting servers, and what happens to runs left behind
	Confirm  func(question string) bool // asks the user; false where no one can answer
}

// Join joins the running stack, or starts the servers that the command needs while it runs. Runs whose commands were
// killed are ended before a worker starts, except for those that this command is about.
func (c Connector) Join(ctx context.Context, need stack.Need, about ...string) (*Session, error) {
	if need.Worker { // a stack that starts would end again because of it
		if err := python.CheckNamed(ctx); err != nil {
			return nil, badinput.Of(err)
		}
	}
	left, end, err := leftBehind(need, about)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 && end {
		before, err := c.endLeftBehind(ctx, left)
		if err != nil {
			return nil, err
		}
		defer before.Close()
	}
	s, err := c.join(ctx, need)
	if err != nil || end {
		return s, err
	}
	if err := c.reportLeftBehind(ctx, s, left); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (c Connector) join(ctx context.Context, need stack.Need) (*Session, error) {
	options := stack.Options{Need: need, Progress: func(line string) { fmt.Fprintln(c.Messages, line) }}
	lease, err := stack.Join(ctx, options)
	var damaged *stack.DamagedError
	if errors.As(err, &damaged) && c.Confirm(damaged.Error()+"\nMove it aside and go on?") {
		if err := c.ResetTemporal(ctx); err != nil {
			return nil, err
		}
		lease, err = stack.Join(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	s := &Session{Lease: lease}
	if err := s.open(ctx, need); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Read opens the record for a command that only reads. The local stack's record is read from its folder as plain files:
// no server has to run, and nothing is copied.
func (c Connector) Read(ctx context.Context) (*Session, error) {
	bucket, local, err := stack.LocalBucket()
	if err != nil {
		return nil, err
	}
	if local {
		return &Session{Store: folder.New(bucket)}, nil
	}
	return c.Join(ctx, NeedStore)
}

// ReadBucket opens the record in a bucket of the S3 server that the environment selects, or the usual record if the
// bucket is "". It starts nothing.
func (c Connector) ReadBucket(ctx context.Context, bucket string) (*Session, error) {
	if bucket == "" {
		return c.Read(ctx)
	}
	address, err := stack.ExistingS3(bucket)
	if err != nil {
		return nil, badinput.Errorf("s3://%s: %w", bucket, err)
	}
	objects, err := openS3(address)
	if err != nil {
		return nil, err
	}
	return &Session{Store: objects}, nil
}

// openS3 opens the bucket at an address.
func openS3(address stack.Addresses) (store.Store, error) {
	options := s3.Options{
		Endpoint: address.S3Endpoint, Region: address.Region, Bucket: address.S3Bucket,
		AccessKey: address.AccessKey, SecretKey: address.SecretKey,
	}
	if address.S3Folder == "" { // the user's own server
		options.SessionToken = os.Getenv("AWS_SESSION_TOKEN")
	}
	if err := Sign(&options); err != nil {
		return nil, badinput.Of(err)
	}
	return s3.New(options)
}

// Sign has a store sign the documents that it commits, if the environment names a key.
func Sign(o *s3.Options) error {
	signer, err := signing.FromEnv()
	if err == nil && signer != nil { // an interface with a nil pointer in it is not nil
		o.Signer = signer
	}
	return err
}

// ResetTemporal moves the local Temporal's database aside and prints where it is.
func (c Connector) ResetTemporal(ctx context.Context) error {
	moved, err := stack.ResetTemporal(ctx, stack.Options{})
	if err != nil {
		return err
	}
	if moved == "" {
		fmt.Fprintln(c.Messages, "the local Temporal has no database yet: there is nothing to move aside")
		return nil
	}
	fmt.Fprintf(c.Messages, "Temporal's database is now %s; remove it when it is no longer needed\n", moved)
	return nil
}

func (s *Session) open(ctx context.Context, need stack.Need) error {
	address := s.Lease.Addresses()
	var err error
	if need.S3 {
		if s.Store, err = openS3(address); err != nil {
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
	// The stack has just found the server healthy, so one that is slow to answer is under load.
	err = s.retryTransient(ctx, func(ctx context.Context) (err error) {
		s.Temporal, err = client.DialContext(ctx, options)
		return err
	})
	if err != nil {
		return fmt.Errorf("connect to Temporal at %s: %w", address.Temporal, err)
	}
	return nil
}

// Lost returns the reason why the stack went away during the command.
func (s *Session) Lost() error {
	if err := s.Lease.Err(); err != nil {
		return fmt.Errorf("the stack was lost: %w", err)
	}
	return errors.New("the stack was lost")
}

// Local reports whether Temporal is the local stack's.
func (s *Session) Local() bool { return s.Lease.Addresses().UI != "" }

// Close closes the connections and leaves the stack, which stops when its last command has left.
func (s *Session) Close() {
	if s.Temporal != nil {
		s.Temporal.Close()
	}
	if s.Lease == nil {
		return
	}
	if err := s.Lease.Close(); err != nil {
		slog.Warn("leave the stack", "error", err)
	}
}

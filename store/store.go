// Package store is the object store behind the record.
//
// An *object* is bytes under a key; it is immutable once put. A *conditional put*
// (PutIfAbsent) is how a manifest commits: of any number of concurrent attempts exactly one
// wins, the others get ErrExists. Implementations: mem (tests), s3 (minio-go); they pass the
// same conformance suite (storetest). folder reads a local server's bucket without the server.
package store

import (
	"context"
	"errors"
)

// Object describes one stored object.
type Object struct {
	Key  string
	Size int64
}

// Store keeps immutable objects by key. Keys are slash-separated, without a leading slash.
// Every method is safe for concurrent use and retries passing faults itself until its context
// ends; an error that it returns is final for that call.
type Store interface {
	// Get returns the whole object, or ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores the object, verified by size and checksum; putting the same bytes again is harmless.
	// It is for content-addressed keys only.
	Put(ctx context.Context, key string, data []byte) error
	// PutIfAbsent stores the object only if the key is free, else returns ErrExists. Its own
	// success that comes back as a conflict (a retried request) is recognised by the bytes and is success.
	PutIfAbsent(ctx context.Context, key string, data []byte) error
	// List returns the objects whose keys start with prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object; deleting an absent one succeeds. Only pruning and garbage collection use it.
	Delete(ctx context.Context, key string) error
	// String names the store for messages: e.g. s3://bucket at http://127.0.0.1:7070. No secrets.
	String() string
}

// Files is implemented by stores whose objects are files of this machine, for readers that would
// otherwise copy them there.
type Files interface {
	// File returns the absolute path of the object's file, whether or not there is one.
	File(key string) string
	// Root returns the folder that holds all of them.
	Root() string
}

// Sentinels; test with errors.Is.
var (
	ErrNotFound = errors.New("object not found")
	ErrExists   = errors.New("object already exists")
	// ErrNoBucket, ErrCredentials and ErrUnreachable are permanent until somebody acts: the text says what to do.
	ErrNoBucket    = errors.New("bucket does not exist")
	ErrCredentials = errors.New("credentials refused")
	ErrUnreachable = errors.New("object store unreachable")
	ErrNoSpace     = errors.New("object store is full")
	// ErrUnconditional is Probe's finding that the store does not honour conditional puts.
	ErrUnconditional = errors.New("object store does not honour conditional puts")
)

// Package store defines the object store that holds the record.
//
// An *object* is a sequence of bytes under a key; it is immutable once put. A *conditional put* (PutIfAbsent) commits a
// manifest: of any number of concurrent attempts exactly one wins, and the others get ErrExists. The implementations
// mem (for tests) and s3 (over minio-go) pass the same conformance suite (storetest). The implementation folder reads
// the bucket of a local server without the server.
package store

import (
	"context"
	"errors"
	"io"
	"time"
)

// Object describes one stored object.
type Object struct {
	Key  string
	Size int64
	// Modified is when the object was last put, by the store's clock.
	Modified time.Time
}

// Upload is an unfinished upload: a writer is still putting its parts, or died and left them.
type Upload struct {
	Key, ID string
	Begun   time.Time
}

// Uploads is implemented by stores that put large objects in parts.
type Uploads interface {
	// Uploads lists the uploads that have been neither completed nor aborted, sorted by key.
	Uploads(ctx context.Context) ([]Upload, error)
	// Abort ends an upload and frees its parts. It succeeds if the upload no longer exists.
	Abort(ctx context.Context, u Upload) error
}

// Store keeps immutable objects by key. Keys are slash-separated, without a leading slash. Every method is safe for
// concurrent use. It retries transient faults itself until its context ends; an error that it returns is final for that
// call.
type Store interface {
	// Get returns the whole object, or ErrNotFound.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores the object and verifies its size and checksum. Putting the same bytes again is harmless and renews the
	// object's age. A writer whose object is about to be named by a manifest must put it even if it exists, so that
	// garbage collection regards it as young. Use Put for content-addressed keys only.
	Put(ctx context.Context, key string, data []byte) error
	// PutFrom is Put for size bytes of content, for objects that should not be held in memory: it holds at most a few
	// parts of them. It reads content more than once and at several offsets concurrently; content must not change until
	// PutFrom returns. A call that was interrupted leaves no object. If the store supports it, a later call with the
	// same key and content continues from the parts that the earlier call stored. An object larger than MaxObject is
	// refused with ErrTooLarge.
	PutFrom(ctx context.Context, key string, content io.ReaderAt, size int64) error
	// GetRange returns length bytes of the object, starting at offset, or as many as there are: none at or after its
	// end. It returns ErrNotFound if there is no object.
	GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error)
	// MaxObject returns the size of the largest object that the store can hold, in bytes.
	MaxObject() int64
	// PutIfAbsent stores the object only if the key is free, and otherwise returns ErrExists. If a retried request
	// conflicts with the object that the same call stored before, PutIfAbsent recognises its own bytes and succeeds.
	PutIfAbsent(ctx context.Context, key string, data []byte) error
	// List returns the objects whose keys start with prefix, sorted by key.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object; deleting an absent object succeeds. Only pruning, garbage collection and the removal of
	// requests use it.
	Delete(ctx context.Context, key string) error
	// String names the store for messages, without secrets: for example s3://bucket at http://127.0.0.1:7070.
	String() string
}

// Files is implemented by stores whose objects are files on this machine, so that readers need not copy them.
type Files interface {
	// File returns the absolute path of the object's file. The file need not exist.
	File(key string) string
	// Root returns the folder that holds all objects.
	Root() string
}

// Sentinel errors; test for them with errors.Is.
var (
	ErrNotFound = errors.New("object not found")
	ErrExists   = errors.New("object already exists")
	// ErrNoBucket, ErrCredentials, ErrUnreachable and ErrNoSpace are permanent until someone acts; the text says what
	// to do.
	ErrNoBucket    = errors.New("bucket does not exist")
	ErrCredentials = errors.New("credentials refused")
	ErrUnreachable = errors.New("object store unreachable")
	ErrNoSpace     = errors.New("object store is full")
	// ErrTooLarge is permanent: the store cannot hold an object of that size.
	ErrTooLarge = errors.New("object is too large for the store")
	// ErrUnconditional is returned by Probe if the store does not honour conditional puts.
	ErrUnconditional = errors.New("object store does not honour conditional puts")
)

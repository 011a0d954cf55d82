package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ropewalk/ropewalk/store"
)

// findings collects what the checks find. It is safe for concurrent use.
type findings struct {
	objects store.Store

	mu    sync.Mutex
	out   Report
	named map[string]bool // keys that something names
}

func (f *findings) fault(kind FaultKind, key, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out.Faults = append(f.out.Faults, Fault{Key: key, Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// get returns an object's bytes. A problem with this one object is a fault, and the bytes are then nil; a store that
// does not answer is an error.
func (f *findings) get(ctx context.Context, key, namedBy string) ([]byte, error) {
	data, err := f.objects.Get(ctx, key)
	if err != nil {
		return nil, f.unread(ctx, key, namedBy, err)
	}
	return data, nil
}

// unread turns an error about one object into a fault, and returns the error of a store that does not answer.
func (f *findings) unread(ctx context.Context, key, namedBy string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		f.fault(FaultMissing, key, "does not exist, but %s names it", namedBy)
		return nil
	case ctx.Err() != nil, errors.Is(err, store.ErrUnreachable), errors.Is(err, store.ErrCredentials),
		errors.Is(err, store.ErrNoBucket):
		return err
	}
	f.fault(FaultDamaged, key, "cannot be read: %v", err)
	return nil
}

// name notes that something names a key, so that the object under it is no orphan.
func (f *findings) name(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.named[key] = true
}

// whole compares bytes with what a manifest says about them.
func (f *findings) whole(key, owner string, n int64, got, digest string, size int64) bool {
	switch {
	case n > size: // the rest was not read
		f.fault(FaultDamaged, key, "has more than %d bytes, but %s says %d bytes of digest %s", size, owner, size,
			digest)
		return false
	case got != digest || n != size:
		f.fault(FaultDamaged, key, "has %d bytes of digest %s, but %s says %d bytes of digest %s", n, got, owner, size,
			digest)
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out.Bytes += size
	return true
}

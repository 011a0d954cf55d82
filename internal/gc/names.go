package gc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/internal/rescue"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// fetches is the number of manifests that are read concurrently.
const fetches = 16

// name represents a key in 16 bytes, because a store may hold millions of keys.
type name [16]byte

func nameOf(key string) name {
	sum := sha256.Sum256([]byte(key))
	return name(sum[:16])
}

// names holds the keys that manifests name, and the manifests that were read.
type names struct {
	objects store.Store

	mu    sync.Mutex
	named map[name]bool
	read  map[string]bool // manifests' keys
}

func newNames(objects store.Store) *names {
	return &names{objects: objects, named: map[name]bool{}, read: map[string]bool{}}
}

// add reads the manifests among the listed objects that have not been read yet.
func (n *names) add(ctx context.Context, listed []store.Object) error {
	g, ctx := rescue.WithContext(ctx)
	g.SetLimit(fetches)
	for _, o := range listed {
		if n.read[o.Key] || !isManifest(o.Key) {
			continue
		}
		n.read[o.Key] = true
		g.Go(func() error { return n.manifest(ctx, o.Key) })
	}
	return g.Wait()
}

// isManifest reports whether only a manifest may have this key.
func isManifest(key string) bool {
	if strings.HasPrefix(key, "warmstarts/") {
		return strings.HasSuffix(key, "/manifest.json")
	}
	run, rest, ok := strings.Cut(strings.TrimPrefix(key, runs), "/")
	return ok && strings.HasPrefix(key, runs) && run != "" && strings.HasPrefix(rest, "manifests/")
}

func (n *names) manifest(ctx context.Context, key string) error {
	data, err := n.objects.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("collect orphans: manifest %s disappeared while the store was read; nothing was deleted, "+
			"try again: %w", key, err)
	}
	if err != nil {
		return fmt.Errorf("collect orphans: read manifest: %w", err)
	}
	m, err := schema.DecodeManifest(data)
	if err != nil {
		return fmt.Errorf("collect orphans: %s cannot be read, so what it names is not known and nothing is deleted; "+
			"`ropewalk verify` says more: %w", key, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range m.Shards {
		n.named[nameOf(s.Key)] = true
	}
	for _, c := range m.Checkpoints() {
		for _, f := range c.Files {
			n.named[nameOf(c.Key(f))] = true
			n.named[nameOf(c.Prefix+f.Name)] = true
		}
	}
	return nil
}

func (n *names) has(key string) bool { return n.named[nameOf(key)] }

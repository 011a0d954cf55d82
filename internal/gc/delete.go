package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Removed is what DeleteRun has deleted, or would delete.
type Removed struct {
	Objects    int   `json:"objects"`
	Bytes      int64 `json:"bytes"`
	WarmStarts int   `json:"warm_starts"` // that no other run begins with
	// Kept counts the objects of the run that stay, because these other runs name them.
	Kept int      `json:"kept"`
	For  []string `json:"kept_for"`
}

// Removal says how a run is deleted.
type Removal struct {
	// WarmStarts also deletes the warm starts and models that no other run begins with. No other run may be open, since
	// one that begins may be about to name them.
	WarmStarts bool
	Delete     bool // otherwise only count
}

// DeleteRun deletes a run that is not open: its record, its entry in the catalogue, its request and its states. The
// audit log stays. A manifest that another run was made from stays, with the data that it names: the
// policy that an evaluation measures, for example. The entry goes first and data last, so that no manifest names what
// is gone; a second call goes on where an interrupted one has stopped.
func DeleteRun(ctx context.Context, objects store.Store, run string, o Removal) (Removed, error) {
	d := deletion{objects: objects, run: run, refs: map[string]string{}, used: map[string]bool{},
		begins: map[string]bool{}, keep: map[string]bool{}}
	if err := d.survey(ctx); err != nil {
		return d.out, err
	}
	ordered, err := d.order(ctx, o.WarmStarts)
	if err != nil {
		return d.out, err
	}
	d.out.For = slices.Sorted(maps.Values(d.refs))
	d.out.For = slices.Compact(d.out.For)
	for _, group := range ordered {
		for _, object := range group {
			d.out.Objects, d.out.Bytes = d.out.Objects+1, d.out.Bytes+object.Size
		}
	}
	if !o.Delete {
		return d.out, nil
	}
	for _, group := range ordered {
		if err := d.delete(ctx, group); err != nil {
			return d.out, err
		}
	}
	return d.out, nil
}

// deletion is the deletion of one run.
type deletion struct {
	objects store.Store
	run     string
	own     []store.Object    // of the run's prefix
	refs    map[string]string // keys of the run's manifests and files that others name → which run does
	used    map[string]bool   // digests of warm starts that others name
	begins  map[string]bool   // digests of warm starts that the run names
	forks   []string          // runs that share its steps
	note    string            // key of the note that the run is a fork; "" if it is none
	keep    map[string]bool   // keys that stay
	out     Removed
}

// survey reads the manifests of all other runs, and the run's own ones as far as others name them.
func (d *deletion) survey(ctx context.Context) error {
	listed, err := d.objects.List(ctx, runs)
	if err != nil {
		return fmt.Errorf("delete run %s: %w", d.run, err)
	}
	prefix := schema.RunPrefix(d.run)
	read := make([]schema.Manifest, len(listed))
	g, ctx := rescue.WithContext(ctx)
	g.SetLimit(fetches)
	for i, o := range listed {
		own := strings.HasPrefix(o.Key, prefix)
		if own {
			d.own = append(d.own, o)
		}
		if isManifest(o.Key) {
			g.Go(func() (err error) {
				read[i], err = d.manifest(ctx, o.Key)
				if own { // a damaged run can be deleted
					return ctx.Err()
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, m := range read {
		own := strings.HasPrefix(listed[i].Key, prefix)
		if err := d.forked(m, own); err != nil {
			return err
		}
		d.named(m, own)
	}
	if len(d.forks) > 0 {
		return badinput.Errorf("run %s shares its steps with its forks: delete %s first", d.run,
			strings.Join(d.forks, " and "))
	}
	for i, m := range read {
		if key := listed[i].Key; d.refs[key] != "" {
			d.keepManifest(key, m)
		}
	}
	return nil
}

func (d *deletion) manifest(ctx context.Context, key string) (m schema.Manifest, err error) {
	data, err := d.objects.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return m, nil
	}
	if err == nil {
		m, err = schema.DecodeManifest(data)
	}
	if err != nil {
		return m, fmt.Errorf("delete run %s: %s cannot be read, so it is not known whether it names anything of the "+
			"run; `ropewalk verify` says more: %w", d.run, key, err)
	}
	return m, nil
}

// forked notes whether a manifest prepares a fork of the run, or the run as a fork.
func (d *deletion) forked(m schema.Manifest, own bool) error {
	f, err := m.Fork()
	switch {
	case err != nil && !own: // a damaged run can be deleted
		return fmt.Errorf("delete run %s: %w", d.run, err)
	case f.Run == d.run:
		d.forks = append(d.forks, m.Run)
	case f.Run != "" && own:
		d.note = f.ForkKey(d.run)
	}
	return nil
}

// named notes what a manifest names of the run, and of warm starts.
func (d *deletion) named(m schema.Manifest, own bool) {
	keys := []string{}
	for _, ref := range slices.Concat(m.Inputs, m.Parts) {
		keys = append(keys, ref.Key)
	}
	for _, c := range m.Checkpoints() {
		for _, f := range c.Files {
			keys = append(keys, c.Key(f))
		}
	}
	for _, key := range keys {
		digest, _, ok := strings.Cut(strings.TrimPrefix(key, warm), "/")
		switch {
		case ok && strings.HasPrefix(key, warm) && own:
			d.begins[digest] = true
		case ok && strings.HasPrefix(key, warm):
			d.used[digest] = true
		case !own && strings.HasPrefix(key, schema.RunPrefix(d.run)):
			d.refs[key] = m.Run
			d.keep[key] = true
		}
	}
}

// keepManifest keeps a manifest of the run with what it names, and with its signatures.
func (d *deletion) keepManifest(key string, m schema.Manifest) {
	for _, s := range m.Shards {
		d.keep[s.Key] = true
	}
	for _, c := range m.Checkpoints() {
		for _, f := range c.Files {
			d.keep[c.Key(f)] = true
			if digest, _, ok := strings.Cut(strings.TrimPrefix(c.Key(f), warm), "/"); ok {
				d.used[digest] = true
			}
		}
	}
	if signed := schema.SignaturesPrefix(key); signed != "" {
		for _, o := range d.own {
			if strings.HasPrefix(o.Key, signed) {
				d.keep[o.Key] = true
			}
		}
	}
}

// order returns what is to be deleted, in groups that are deleted one after the other.
func (d *deletion) order(ctx context.Context, warmStarts bool) ([][]store.Object, error) {
	groups := make([][]store.Object, 4)
	add := func(i int, prefix string, exact bool) error {
		listed, err := d.objects.List(ctx, prefix)
		for _, o := range listed {
			if exact && o.Key == prefix || !exact && !isManifest(o.Key) {
				groups[i] = append(groups[i], o)
			}
		}
		return err
	}
	err := errors.Join(add(0, schema.RequestKey(d.run), true), add(0, schema.CatalogueKey(d.run), true),
		add(0, schema.StatesPrefix+d.run+"/", false))
	if d.note != "" {
		err = errors.Join(err, add(3, d.note, true))
	}
	for _, o := range d.own {
		switch {
		case d.keep[o.Key]:
			d.out.Kept++
		case strings.HasPrefix(o.Key, schema.HeadsPrefix(d.run)):
			groups[1] = append(groups[1], o)
		case isManifest(o.Key):
			groups[2] = append(groups[2], o)
		default:
			groups[3] = append(groups[3], o)
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(d.begins)) {
		if !warmStarts || d.used[digest] {
			continue
		}
		d.out.WarmStarts++
		place := schema.AtWarmStart(digest)
		err = errors.Join(err, add(2, place.ManifestKey(), true), add(3, schema.WarmStartPrefix(digest), false))
	}
	return groups, err
}

func (d *deletion) delete(ctx context.Context, group []store.Object) error {
	err := rescue.Each(ctx, fetches, len(group), func(ctx context.Context, i int) error {
		if err := d.objects.Delete(ctx, group[i].Key); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("delete run %s: %w", d.run, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w; the same command goes on", err)
	}
	return nil
}

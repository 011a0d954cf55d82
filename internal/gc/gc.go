package gc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// Options says what is collected.
type Options struct {
	MinAge time.Duration // younger objects are kept
	Delete bool          // delete what is collected; otherwise only plan
	// Unfinished also collects, by age alone, keys that a manifest may still come to name. No worker may run at the
	// same time.
	Unfinished bool
	Now        func() time.Time // nil: time.Now
}

// Item is one orphan or leftover.
type Item struct {
	Key      string    `json:"key"`
	Upload   string    `json:"upload,omitempty"` // the id of an upload in parts
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	Why      string    `json:"why"` // why it is collected or kept
	Deleted  bool      `json:"deleted"`
}

// Result is what a collection found and did.
type Result struct {
	Manifests int    `json:"manifests"` // read
	Collect   []Item `json:"collect"`   // to be deleted, or deleted
	Keep      []Item `json:"keep"`      // not named by a manifest, but kept
	Unknown   int    `json:"unknown"`   // objects with keys that are not the record's; they are never touched
}

// Bytes returns the total size of what is collected.
func (r Result) Bytes() int64 {
	n := int64(0)
	for _, item := range r.Collect {
		n += item.Bytes
	}
	return n
}

// Deleted returns the number of objects that were deleted.
func (r Result) Deleted() int {
	n := 0
	for _, item := range r.Collect {
		if item.Deleted {
			n++
		}
	}
	return n
}

// Collect finds the orphans of a store and deletes them if the options say so. After an error the result says what was
// deleted before it; a second call continues.
func Collect(ctx context.Context, objects store.Store, o Options) (Result, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MinAge < 0 {
		return Result{}, fmt.Errorf("collect orphans: minimum age must be ≥ 0, got %s", o.MinAge)
	}
	c := &collector{Options: o, objects: objects, names: newNames(objects)}
	if err := c.plan(ctx); err != nil {
		return c.out, err
	}
	if o.Delete {
		return c.out, c.delete(ctx)
	}
	return c.out, nil
}

type collector struct {
	Options
	objects store.Store
	names   *names
	out     Result
}

// survey lists all objects that are considered and reads every manifest that it has not read yet.
func (c *collector) survey(ctx context.Context) (listed []store.Object, shape *record, err error) {
	for _, prefix := range []string{runs, warm, probes} {
		some, err := c.objects.List(ctx, prefix)
		if err != nil {
			return nil, nil, fmt.Errorf("collect orphans: %w", err)
		}
		listed = append(listed, some...)
	}
	if err := c.names.add(ctx, listed); err != nil {
		return nil, nil, err
	}
	c.out.Manifests = len(c.names.read)
	return listed, shapeOf(c.objects, listed), nil
}

// plan divides the objects that no manifest names into those to collect and those to keep.
func (c *collector) plan(ctx context.Context) error {
	listed, shape, err := c.survey(ctx)
	if err != nil {
		return err
	}
	for _, o := range listed {
		if err := c.sort(ctx, shape, o); err != nil {
			return err
		}
	}
	return c.planUploads(ctx)
}

// shapeOf returns the manifests and heads in a listing.
func shapeOf(objects store.Store, listed []store.Object) *record {
	r := &record{objects: objects, there: map[string]bool{}, heads: map[string]*schema.Head{},
		deleted: map[string]bool{}}
	for _, o := range listed {
		if isManifest(o.Key) || strings.Contains(o.Key, "/heads/") {
			r.there[o.Key] = true
		}
	}
	return r
}

func (c *collector) sort(ctx context.Context, shape *record, o store.Object) error {
	switch kindOf(o.Key) {
	case other:
		if !shape.there[o.Key] && !strings.HasSuffix(o.Key, "/"+schema.PrunedFile) && !schema.IsNote(o.Key) &&
			!schema.IsSignature(o.Key) {
			c.out.Unknown++
		}
		return nil
	case shard, checkpoint:
		if c.names.has(o.Key) {
			return nil
		}
	}
	item := Item{Key: o.Key, Bytes: o.Size, Modified: o.Modified, Why: "no manifest names it"}
	settled, why, err := shape.settled(ctx, o.Key)
	switch {
	case err != nil:
		return err
	case !c.old(o.Modified):
		item.Why = "it is younger than " + c.MinAge.String()
	case !settled && !c.Unfinished:
		item.Why = why
	case !settled:
		item.Why += "; " + why
		c.out.Collect = append(c.out.Collect, item)
		return nil
	default:
		c.out.Collect = append(c.out.Collect, item)
		return nil
	}
	c.out.Keep = append(c.out.Keep, item)
	return nil
}

// old reports whether an object is old enough. An object without a time, or with a time in the future, is not.
func (c *collector) old(modified time.Time) bool {
	age := c.Now().Sub(modified)
	return !modified.IsZero() && age >= 0 && age >= c.MinAge
}

func (c *collector) planUploads(ctx context.Context) error {
	uploads, ok := c.objects.(store.Uploads)
	if !ok {
		return nil
	}
	all, err := uploads.Uploads(ctx)
	if err != nil {
		return fmt.Errorf("collect orphans: %w", err)
	}
	for _, u := range all {
		item := Item{Key: u.Key, Upload: u.ID, Modified: u.Begun, Why: "an upload in parts that was not completed"}
		switch {
		case kindOf(u.Key) == other:
			c.out.Unknown++
		case c.old(u.Begun):
			c.out.Collect = append(c.out.Collect, item)
		default:
			item.Why = "an upload that is younger than " + c.MinAge.String()
			c.out.Keep = append(c.out.Keep, item)
		}
	}
	return nil
}

// delete checks a second time and deletes what is still an orphan.
func (c *collector) delete(ctx context.Context) error {
	_, shape, err := c.survey(ctx)
	if err != nil {
		return err
	}
	planned := c.out.Collect
	c.out.Collect = nil
	for i, item := range planned {
		done, err := c.deleteOne(ctx, shape, &item)
		if err != nil {
			c.out.Collect = append(c.out.Collect, planned[i:]...)
			return err
		}
		if done {
			c.out.Collect = append(c.out.Collect, item)
		} else {
			c.out.Keep = append(c.out.Keep, item)
		}
	}
	return nil
}

// deleteOne deletes an orphan unless it was named or put again since the plan.
func (c *collector) deleteOne(ctx context.Context, shape *record, item *Item) (bool, error) {
	if item.Upload != "" {
		upload := store.Upload{Key: item.Key, ID: item.Upload, Begun: item.Modified}
		if err := c.objects.(store.Uploads).Abort(ctx, upload); err != nil {
			return false, fmt.Errorf("collect orphans: %w", err)
		}
		item.Deleted = true
		return true, nil
	}
	if kindOf(item.Key) != probe && c.names.has(item.Key) {
		item.Why = "a manifest has named it since the plan"
		return false, nil
	}
	settled, why, err := shape.settled(ctx, item.Key)
	if err != nil {
		return false, err
	}
	if !settled && !c.Unfinished { // a person deleted a head or manifest, so that a stage is run again
		item.Why = why
		return false, nil
	}
	listed, err := c.objects.List(ctx, item.Key)
	if err != nil {
		return false, fmt.Errorf("collect orphans: check %s again: %w", item.Key, err)
	}
	i := slices.IndexFunc(listed, func(o store.Object) bool { return o.Key == item.Key })
	if i < 0 {
		item.Why = "it has disappeared since the plan"
		return false, nil
	}
	if !c.old(listed[i].Modified) || !listed[i].Modified.Equal(item.Modified) {
		item.Why = "it has been put again since the plan"
		return false, nil
	}
	if err := c.objects.Delete(ctx, item.Key); err != nil {
		return false, fmt.Errorf("collect orphans: %w", err)
	}
	item.Deleted = true
	return true, nil
}

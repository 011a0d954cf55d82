package setup

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/s3"
)

// uploadDays is the age at which unfinished uploads are ended: that at which a starting worker ends them, too.
const uploadDays = 7

// IDs of the lifecycle rules that CreateStore makes.
const (
	uploadsRule    = "ropewalk-unfinished-uploads"
	noncurrentRule = "ropewalk-deleted-versions"
)

// StoreOptions say what is wanted of a bucket beyond what the record needs.
type StoreOptions struct {
	// KeepDeleted is for how many days the bucket keeps what is deleted or replaced, as versions; 0 wants no versions.
	KeepDeleted int
	// Probe tries conditional puts, which writes an object and deletes it.
	Probe bool
}

// OfStore compares a bucket with what the record needs.
func OfStore(ctx context.Context, s *s3.Store, o StoreOptions) (f Findings, err error) {
	b, err := s.Bucket(ctx)
	if err != nil {
		return nil, err
	}
	if !b.Exists {
		f.add(Missing, "bucket", "exists", none, "")
		f.add(Note, "conditional puts", "one winner", "not tried", "the bucket must exist first")
		f.add(Note, "versioning", o.versions(), none, "")
		return f, nil
	}
	f.add(OK, "bucket", "exists", "exists", "")
	if err := f.conditional(ctx, s, o); err != nil {
		return nil, err
	}
	f.versioning(b, o)
	f.lifecycle(b, o)
	return f, nil
}

func (f *Findings) conditional(ctx context.Context, s *s3.Store, o StoreOptions) error {
	const what, need = "conditional puts", "one winner"
	if !o.Probe {
		f.add(Note, what, need, "not tried", "a trial writes an object and deletes it")
		return nil
	}
	switch err := store.Probe(ctx, s); {
	case errors.Is(err, store.ErrUnconditional):
		f.add(Conflict, what, need, "not honoured", err.Error())
	case err != nil:
		return err
	default:
		f.add(OK, what, need, "one winner of 32", "")
	}
	return nil
}

func (o StoreOptions) versions() string {
	if o.KeepDeleted == 0 {
		return "not asked for"
	}
	return s3.VersioningEnabled
}

func (f *Findings) versioning(b s3.Bucket, o StoreOptions) {
	const what = "versioning"
	switch {
	case o.KeepDeleted == 0 && b.Versioning == s3.VersioningEnabled:
		f.add(OK, what, o.versions(), b.Versioning, "")
	case o.KeepDeleted == 0:
		f.add(Note, what, o.versions(), b.Versioning,
			"what is deleted by mistake cannot be restored; --keep-deleted DAYS turns it on")
	case b.Versioning == s3.VersioningEnabled:
		f.add(OK, what, o.versions(), b.Versioning, "")
	case b.Versioning == s3.VersioningUnsupported:
		f.add(Conflict, what, o.versions(), b.Versioning, "the server has no versions: leave --keep-deleted out")
	default:
		f.add(Missing, what, o.versions(), b.Versioning, "")
	}
}

// lifecycle compares rules. A rule that deletes current objects deletes the record: no age makes an object useless,
// since a later step may name it as long as its run exists.
func (f *Findings) lifecycle(b s3.Bucket, o StoreOptions) {
	if !b.HasRules {
		f.add(Note, "lifecycle", "unfinished uploads end", "no rules on this server",
			"workers end unfinished uploads when they start")
		return
	}
	var ends, drops int
	for _, r := range b.Rules {
		if r.Expires {
			f.add(Conflict, "lifecycle rule "+r.ID, "deletes nothing that is current",
				fmt.Sprintf("deletes current objects under %q", r.Prefix),
				"remove the rule, or let it name a prefix without the record")
		}
		if r.Prefix == "" && r.AbortDays > 0 {
			ends = r.AbortDays
		}
		if r.Prefix == "" && r.NoncurrentDays > 0 {
			drops = r.NoncurrentDays
		}
	}
	f.days("lifecycle of unfinished uploads", uploadDays, ends)
	if o.KeepDeleted > 0 || drops > 0 {
		f.days("lifecycle of deleted versions", o.KeepDeleted, drops)
	}
}

// days compares a rule's age with the one that CreateStore gives it. Another age is the owner's choice.
func (f *Findings) days(what string, need, have int) {
	switch {
	case have == 0:
		f.add(Missing, what, "end after "+count(need, "day"), none, "")
	case need > 0 && have != need:
		f.add(Note, what, "end after "+count(need, "day"), count(have, "day"), "the rule that is there is kept")
	default:
		f.add(OK, what, "end after some days", count(have, "day"), "")
	}
}

// CreateStore creates what OfStore calls missing: the bucket, versioning, the lifecycle rules.
func CreateStore(ctx context.Context, s *s3.Store, o StoreOptions) error {
	if err := s.EnsureBucket(ctx); err != nil {
		return err
	}
	f, err := OfStore(ctx, s, StoreOptions{KeepDeleted: o.KeepDeleted})
	if err != nil {
		return err
	}
	var rules []s3.Rule
	for _, one := range f {
		if one.State != Missing {
			continue
		}
		switch one.What {
		case "versioning":
			if err := s.EnableVersioning(ctx); errors.Is(err, s3.ErrUnsupported) {
				return fmt.Errorf("%w: leave --keep-deleted out", err)
			} else if err != nil {
				return err
			}
		case "lifecycle of unfinished uploads":
			rules = append(rules, s3.Rule{ID: uploadsRule, AbortDays: uploadDays})
		case "lifecycle of deleted versions":
			rules = append(rules, s3.Rule{ID: noncurrentRule, NoncurrentDays: o.KeepDeleted})
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return s.PutRules(ctx, rules...)
}

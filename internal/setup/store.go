package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

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
	// LockDays is for how many days no one may delete a version; 0 asks for no lock.
	LockDays int
	// Probe tries conditional puts, which writes an object and deletes it.
	Probe bool
	// Policy is the bucket policy that is wanted, as JSON; "" wants none and looks at none.
	Policy string
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
		if o.LockDays > 0 {
			f.add(Missing, lockFinding, o.locked(), none, "")
		}
		if o.Policy != "" {
			f.add(Missing, policyFinding, policyNeeded, none, "")
		}
		return f, nil
	}
	f.add(OK, "bucket", "exists", "exists", "")
	if err := f.conditional(ctx, s, o); err != nil {
		return nil, err
	}
	f.versioning(b, o)
	f.lock(b, o)
	f.lifecycle(b, o)
	return f, f.policy(ctx, s, o)
}

const policyFinding, policyNeeded = "bucket policy", "the given one"

// policy compares the bucket's policy with the one that is wanted. Another one is its owner's.
func (f *Findings) policy(ctx context.Context, s *s3.Store, o StoreOptions) error {
	if o.Policy == "" {
		return nil
	}
	have, err := s.Policy(ctx)
	switch {
	case errors.Is(err, s3.ErrUnsupported):
		f.add(Conflict, policyFinding, policyNeeded, "not on this server", "leave --policy out")
	case err != nil:
		return err
	case have == "":
		f.add(Missing, policyFinding, policyNeeded, none, "")
	case !sameJSON(have, o.Policy):
		f.add(Conflict, policyFinding, policyNeeded, "another one", "remove it, or add its statements to the file")
	default:
		f.add(OK, policyFinding, policyNeeded, "the given one", "")
	}
	return nil
}

// sameJSON reports whether two texts are the same JSON document.
func sameJSON(a, b string) bool {
	var left, right any
	return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil &&
		reflect.DeepEqual(left, right)
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

const lockFinding = "object lock"

// locked is the lock that is wanted.
func (o StoreOptions) locked() string { return count(o.LockDays, "day") }

// lock compares the bucket's default retention. A longer one stays.
func (f *Findings) lock(b s3.Bucket, o StoreOptions) {
	have := none
	if b.Lock.Days > 0 {
		have = count(b.Lock.Days, "day") + ", " + b.Lock.Mode
	}
	switch {
	case o.LockDays == 0 && b.Lock.Days > 0:
		f.add(OK, lockFinding, "not asked for", have, "")
	case o.LockDays == 0: // nothing to say
	case !b.HasLocks:
		f.add(Conflict, lockFinding, o.locked(), "not on this server", "leave --lock out")
	case b.Lock.Days >= o.LockDays:
		f.add(OK, lockFinding, o.locked(), have, "")
	case b.Lock.Mode == "COMPLIANCE":
		f.add(Conflict, lockFinding, o.locked(), have, "the owner chose this mode: raise it there")
	default:
		f.add(Missing, lockFinding, o.locked(), have, "")
	}
}

func (o StoreOptions) versions() string {
	if o.KeepDeleted == 0 && o.LockDays == 0 {
		return "not asked for"
	}
	return s3.VersioningEnabled
}

func (f *Findings) versioning(b s3.Bucket, o StoreOptions) {
	const what = "versioning"
	switch {
	case b.Versioning == s3.VersioningEnabled:
		f.add(OK, what, o.versions(), b.Versioning, "")
	case o.KeepDeleted == 0 && o.LockDays == 0:
		f.add(Note, what, o.versions(), b.Versioning,
			"what is deleted by mistake cannot be restored; --keep-deleted DAYS turns it on")
	case b.Versioning == s3.VersioningUnsupported:
		f.add(Conflict, what, o.versions(), b.Versioning,
			"the server has no versions: leave --keep-deleted and --lock out")
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
	o.Probe = false
	f, err := OfStore(ctx, s, o)
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
				return fmt.Errorf("%w: leave --keep-deleted and --lock out", err)
			} else if err != nil {
				return err
			}
		case lockFinding: // versions are on by now
			if err := s.PutLock(ctx, o.LockDays); err != nil {
				return err
			}
		case policyFinding:
			if err := s.PutPolicy(ctx, o.Policy); err != nil {
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

package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/lifecycle"
)

// Bucket is how a bucket is set up. A server that has no versions or no lifecycle rules is not at fault; it then keeps
// every object until it is deleted, and nothing longer.
type Bucket struct {
	Exists     bool
	Versioning string // Enabled, Suspended, Off or Unsupported
	// Rules are the bucket's lifecycle rules; HasRules says whether the server has such rules at all.
	Rules    []Rule
	HasRules bool
	// Lock is how long new versions are locked; HasLocks says whether the server has locks at all.
	Lock     Lock
	HasLocks bool
}

// Lock is a bucket's default retention: for Days days no one may delete a version. The zero value locks nothing.
type Lock struct {
	Mode string // GOVERNANCE, which a separate permission overrides, or COMPLIANCE
	Days int
}

// Values of Bucket.Versioning.
const (
	VersioningEnabled     = "Enabled"
	VersioningSuspended   = "Suspended"
	VersioningOff         = "Off"
	VersioningUnsupported = "Unsupported"
)

// ErrUnsupported says that the server lacks what was asked for.
var ErrUnsupported = errors.New("the server does not support it")

// Rule is one enabled lifecycle rule, as far as it matters to the record. A number of days is 0 if the rule lacks it.
type Rule struct {
	ID     string
	Prefix string // of the keys that the rule is about; "" means all
	// Expires says that the rule deletes objects that are current.
	Expires        bool
	NoncurrentDays int // deletes versions that were replaced or deleted this long ago
	AbortDays      int // ends uploads that are unfinished after this long
}

// Bucket reads how the bucket is set up.
func (s *Store) Bucket(ctx context.Context) (b Bucket, err error) {
	err = retry(ctx, func() error {
		b.Exists, err = s.client.BucketExists(ctx, s.options.Bucket)
		return err
	})
	if err != nil {
		return b, s.translate("look up bucket", "", err)
	}
	if !b.Exists {
		return b, nil
	}
	if b.Versioning, err = s.versioning(ctx); err != nil {
		return b, s.translate("read versioning of", "", err)
	}
	if b.Lock, err = s.lock(ctx); err == nil {
		b.HasLocks = true
	} else if !unsupported(err) {
		return b, s.translate("read locks of", "", err)
	}
	rules, err := s.rules(ctx)
	switch {
	case unsupported(err):
		return b, nil
	case err != nil:
		return b, s.translate("read lifecycle of", "", err)
	}
	b.HasRules = true
	for _, r := range rules.Rules {
		if r.Status == "Enabled" {
			b.Rules = append(b.Rules, ruleOf(r))
		}
	}
	return b, nil
}

func ruleOf(r lifecycle.Rule) Rule {
	out := Rule{ID: r.ID, Prefix: r.Prefix, Expires: r.Expiration.Days != 0 || !r.Expiration.Date.IsZero(),
		NoncurrentDays: int(r.NoncurrentVersionExpiration.NoncurrentDays),
		AbortDays:      int(r.AbortIncompleteMultipartUpload.DaysAfterInitiation)}
	for _, prefix := range []string{r.RuleFilter.Prefix, r.RuleFilter.And.Prefix} {
		if prefix != "" {
			out.Prefix = prefix
		}
	}
	return out
}

func (s *Store) versioning(ctx context.Context) (state string, err error) {
	var got minio.BucketVersioningConfiguration
	err = retry(ctx, func() error {
		got, err = s.client.GetBucketVersioning(ctx, s.options.Bucket)
		return err
	})
	switch {
	case unsupported(err):
		return VersioningUnsupported, nil
	case err != nil:
		return "", err
	case got.Status == "":
		return VersioningOff, nil
	}
	return got.Status, nil
}

// lock returns the bucket's default retention.
func (s *Store) lock(ctx context.Context) (l Lock, err error) {
	var mode *minio.RetentionMode
	var validity *uint
	var unit *minio.ValidityUnit
	err = retry(ctx, func() error {
		mode, validity, unit, err = s.client.GetBucketObjectLockConfig(ctx, s.options.Bucket)
		return err
	})
	if r, ok := response(err); ok && r.Code == "ObjectLockConfigurationNotFoundError" {
		return Lock{}, nil
	}
	if err != nil || mode == nil || validity == nil || unit == nil {
		return Lock{}, err
	}
	l = Lock{Mode: mode.String(), Days: int(*validity)}
	if *unit == minio.Years {
		l.Days *= 365
	}
	return l, nil
}

// PutLock has every new version be locked for some days, in the mode GOVERNANCE.
func (s *Store) PutLock(ctx context.Context, days int) error {
	mode, validity, unit := minio.Governance, uint(days), minio.Days
	err := retry(ctx, func() error {
		return s.client.SetBucketObjectLockConfig(ctx, s.options.Bucket, &mode, &validity, &unit)
	})
	if unsupported(err) {
		return fmt.Errorf("lock versions of %s: %w", s, ErrUnsupported)
	}
	if err != nil {
		return s.translate("lock versions of", "", err)
	}
	return nil
}

// rules returns the bucket's whole lifecycle configuration; none is an empty one.
func (s *Store) rules(ctx context.Context) (*lifecycle.Configuration, error) {
	got := lifecycle.NewConfiguration()
	err := retry(ctx, func() error {
		c, err := s.client.GetBucketLifecycle(ctx, s.options.Bucket)
		if err == nil {
			got = c
		}
		return err
	})
	if r, ok := response(err); ok && r.Code == "NoSuchLifecycleConfiguration" {
		return got, nil
	}
	return got, err
}

// unsupported reports whether err says that the server lacks what was asked for.
func unsupported(err error) bool {
	r, ok := response(err)
	return ok && (r.StatusCode == http.StatusNotImplemented || r.StatusCode == http.StatusMethodNotAllowed ||
		r.Code == "NotImplemented" || r.Code == "VersioningNotConfigured")
}

// EnableVersioning makes the bucket keep what is deleted or replaced, as versions.
func (s *Store) EnableVersioning(ctx context.Context) error {
	err := retry(ctx, func() error { return s.client.EnableVersioning(ctx, s.options.Bucket) })
	if unsupported(err) {
		return fmt.Errorf("enable versioning of %s: %w", s, ErrUnsupported)
	}
	if err != nil {
		return s.translate("enable versioning of", "", err)
	}
	return nil
}

// PutRules adds lifecycle rules to those that the bucket has. A rule replaces the one of the same ID.
func (s *Store) PutRules(ctx context.Context, rules ...Rule) error {
	all, err := s.rules(ctx)
	if err != nil {
		return s.translate("read lifecycle of", "", err)
	}
	for _, rule := range rules {
		if rule.Expires {
			return fmt.Errorf("put lifecycle rule %s: it would delete current objects", rule.ID)
		}
		r := lifecycle.Rule{ID: rule.ID, Status: "Enabled", RuleFilter: lifecycle.Filter{Prefix: rule.Prefix}}
		r.NoncurrentVersionExpiration.NoncurrentDays = lifecycle.ExpirationDays(rule.NoncurrentDays)
		r.AbortIncompleteMultipartUpload.DaysAfterInitiation = lifecycle.ExpirationDays(rule.AbortDays)
		kept := all.Rules[:0]
		for _, have := range all.Rules {
			if have.ID != rule.ID {
				kept = append(kept, have)
			}
		}
		all.Rules = append(kept, r)
	}
	if err := retry(ctx, func() error { return s.client.SetBucketLifecycle(ctx, s.options.Bucket, all) }); err != nil {
		return s.translate("put lifecycle of", "", err)
	}
	return nil
}

// Policy returns the bucket's policy as the server keeps it, or "" if there is none.
func (s *Store) Policy(ctx context.Context) (policy string, err error) {
	err = retry(ctx, func() error {
		policy, err = s.client.Client.GetBucketPolicy(ctx, s.options.Bucket)
		return err
	})
	if unsupported(err) {
		return "", fmt.Errorf("read the policy of %s: %w", s, ErrUnsupported)
	}
	if err != nil {
		return "", s.translate("read the policy of", "", err)
	}
	return policy, nil
}

// PutPolicy replaces the bucket's policy.
func (s *Store) PutPolicy(ctx context.Context, policy string) error {
	err := retry(ctx, func() error { return s.client.SetBucketPolicy(ctx, s.options.Bucket, policy) })
	if unsupported(err) {
		return fmt.Errorf("put the policy of %s: %w", s, ErrUnsupported)
	}
	if err != nil {
		return s.translate("put the policy of", "", err)
	}
	return nil
}

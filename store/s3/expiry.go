package s3

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/lifecycle"
)

// Expiry returns the shortest time after which the bucket's lifecycle rules delete objects under one of the prefixes;
// false if no rule deletes any, or if the server knows no such rules. A rule that names a date instead of an age counts
// from now.
func (s *Store) Expiry(ctx context.Context, prefixes []string) (shortest time.Duration, limited bool, err error) {
	var rules *lifecycle.Configuration
	err = retry(ctx, func() error {
		rules, err = s.client.GetBucketLifecycle(ctx, s.options.Bucket)
		return err
	})
	if r, ok := response(err); ok && slices.Contains(noRules, r.Code) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, s.translate("read the lifecycle rules of the bucket", "", err)
	}
	for _, rule := range rules.Rules {
		kept, deletes := keeps(rule, time.Now())
		if !deletes || !touches(rule, prefixes) {
			continue
		}
		if !limited || kept < shortest {
			shortest, limited = kept, true
		}
	}
	return shortest, limited, nil
}

// noRules are the answers of servers whose bucket has no lifecycle rules, or that know none.
var noRules = []string{"NoSuchLifecycleConfiguration", "NotImplemented", "MethodNotAllowed"}

// keeps returns how long a rule leaves objects; false if it deletes none that are current.
func keeps(r lifecycle.Rule, now time.Time) (time.Duration, bool) {
	switch {
	case r.Status != "Enabled":
		return 0, false
	case r.Expiration.Days > 0:
		return time.Duration(r.Expiration.Days) * 24 * time.Hour, true
	case !r.Expiration.Date.IsZero():
		return max(0, r.Expiration.Date.Sub(now)), true
	}
	return 0, false
}

// touches reports whether a rule may concern an object under one of the prefixes.
func touches(r lifecycle.Rule, prefixes []string) bool {
	own := r.Prefix
	if r.RuleFilter.Prefix != "" {
		own = r.RuleFilter.Prefix
	} else if r.RuleFilter.And.Prefix != "" {
		own = r.RuleFilter.And.Prefix
	}
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return strings.HasPrefix(p, own) || strings.HasPrefix(own, p)
	})
}

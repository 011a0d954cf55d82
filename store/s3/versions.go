package s3

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/ropewalk/ropewalk/store"
)

// Deleted is an object that was deleted and that the bucket still keeps as a version.
type Deleted struct {
	Key    string
	At     time.Time // when it was deleted, by the store's clock
	marker string    // the version that says so
}

// Deleted lists the objects under a prefix that were deleted at a time or later, sorted by key. A bucket without
// versioning has none.
func (s *Store) Deleted(ctx context.Context, prefix string, since time.Time) (out []Deleted, err error) {
	err = retry(ctx, func() error {
		out, err = s.deleted(ctx, prefix, since)
		return err
	})
	if err != nil {
		return nil, s.translate("list versions of", prefix, err)
	}
	slices.SortFunc(out, func(a, b Deleted) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

func (s *Store) deleted(ctx context.Context, prefix string, since time.Time) ([]Deleted, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the listing if we return early
	defer cancel()
	var out []Deleted
	options := minio.ListObjectsOptions{Prefix: prefix, Recursive: true, WithVersions: true}
	for info := range s.client.Client.ListObjects(ctx, s.options.Bucket, options) {
		if info.Err != nil {
			return nil, info.Err
		}
		if info.IsLatest && info.IsDeleteMarker && !info.LastModified.Before(since) {
			out = append(out, Deleted{Key: info.Key, At: info.LastModified, marker: info.VersionID})
		}
	}
	return out, nil
}

// Restore makes the version from before a deletion the current one. A second call does nothing.
func (s *Store) Restore(ctx context.Context, d Deleted) error {
	if err := store.CheckKey(d.Key); err != nil {
		return err
	}
	err := retry(ctx, func() error {
		return s.client.RemoveObject(ctx, s.options.Bucket, d.Key, minio.RemoveObjectOptions{VersionID: d.marker})
	})
	if r, ok := response(err); ok && (r.Code == minio.NoSuchKey || r.Code == "NoSuchVersion") {
		return nil
	}
	if err != nil {
		return s.translate("restore", d.Key, err)
	}
	return nil
}

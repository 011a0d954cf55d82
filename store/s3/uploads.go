package s3

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/ropewalk/ropewalk/store"
)

var _ store.Uploads = (*Store)(nil)

// Uploads implements store.Uploads.
func (s *Store) Uploads(ctx context.Context) ([]store.Upload, error) {
	listed, err := s.uploads(ctx, "")
	if err != nil {
		return nil, s.translate("list uploads", "", err)
	}
	all := make([]store.Upload, len(listed))
	for i, u := range listed {
		all[i] = store.Upload{Key: u.Key, ID: u.UploadID, Begun: u.Initiated}
	}
	return all, nil
}

// Abort implements store.Uploads.
func (s *Store) Abort(ctx context.Context, u store.Upload) error {
	if err := store.CheckKey(u.Key); err != nil {
		return fmt.Errorf("abort upload: %w", err)
	}
	if err := s.abort(ctx, u.Key, u.ID); err != nil {
		return s.translate("abort upload of", u.Key, err)
	}
	return nil
}

// page is the number of entries in a page of a listing.
const page = 1000

// uploads lists the unfinished uploads of the keys that start with prefix.
func (s *Store) uploads(ctx context.Context, prefix string) ([]minio.ObjectMultipartInfo, error) {
	var all []minio.ObjectMultipartInfo
	key, id := "", ""
	for {
		var result minio.ListMultipartUploadsResult
		err := retry(ctx, func() (err error) {
			result, err = s.client.ListMultipartUploads(ctx, s.options.Bucket, prefix, key, id, "", page)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, result.Uploads...)
		if !result.IsTruncated || result.NextKeyMarker == key && result.NextUploadIDMarker == id {
			return all, nil
		}
		key, id = result.NextKeyMarker, result.NextUploadIDMarker
	}
}

// stored lists the parts that an unfinished upload has, by their numbers.
func (s *Store) stored(ctx context.Context, key, id string) (map[int]minio.ObjectPart, error) {
	parts := map[int]minio.ObjectPart{}
	marker := 0
	for {
		var result minio.ListObjectPartsResult
		err := retry(ctx, func() (err error) {
			result, err = s.client.ListObjectParts(ctx, s.options.Bucket, key, id, marker, page)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range result.ObjectParts {
			parts[p.PartNumber] = p
		}
		if !result.IsTruncated || result.NextPartNumberMarker <= marker {
			return parts, nil
		}
		marker = result.NextPartNumberMarker
	}
}

// abort ends an unfinished upload and removes its parts. It succeeds if the upload no longer exists.
func (s *Store) abort(ctx context.Context, key, id string) error {
	err := retry(ctx, func() error { return s.client.AbortMultipartUpload(ctx, s.options.Bucket, key, id) })
	if uploadGone(err) {
		return nil
	}
	return err
}

// AbortUploads ends the unfinished uploads of keys that start with prefix to which no part was added since before, and
// returns their number. Their parts take space, and no listing of objects shows them. An upload that is still running
// suffers no lasting harm: its writer starts over.
func (s *Store) AbortUploads(ctx context.Context, prefix string, before time.Time) (aborted int, err error) {
	uploads, err := s.uploads(ctx, prefix)
	if err != nil {
		return 0, s.translate("list uploads", prefix, err)
	}
	for _, u := range uploads {
		if !strings.HasPrefix(u.Key, prefix) {
			continue
		}
		last := u.Initiated
		parts, err := s.stored(ctx, u.Key, u.UploadID)
		if err != nil && !uploadGone(err) {
			return aborted, s.translate("list parts", u.Key, err)
		}
		for _, p := range parts {
			if p.LastModified.After(last) {
				last = p.LastModified
			}
		}
		if !last.Before(before) {
			continue
		}
		if err := s.abort(ctx, u.Key, u.UploadID); err != nil {
			return aborted, s.translate("abort upload", u.Key, err)
		}
		aborted++
	}
	return aborted, nil
}

// Package s3 is a store on an S3 server, through minio-go; the only package that knows it.
//
// Four facts about S3 and its clients shape it. A conditional put is silently unconditional when
// the client switches to multipart, so multipart is off: an object is one request of at most
// 5 GiB. The client's own retries hide whether a conflict is our own earlier success, so they are
// off and this package retries; a conflict is then settled by comparing the bytes. A conflict of
// two conditional puts in flight (409) is to be repeated. Trailing checksums fail over plain HTTP
// on some servers; the body's MD5 goes in the header instead, and the server refuses a body that
// does not match it.
package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/ropewalk/ropewalk/store"
)

// maxObject is the largest object of a single put, in bytes.
const maxObject = 5 << 30

// Store is a store.Store on an S3 bucket. Make one with New.
type Store struct {
	options Options
	client  *minio.Core
}

var _ store.Store = (*Store)(nil)

// New returns a store; it sends nothing yet.
func New(o Options) (*Store, error) {
	if err := o.resolve(); err != nil {
		return nil, err
	}
	client, err := minio.NewCore(o.Endpoint, &minio.Options{
		Creds:           credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken),
		Secure:          o.Secure,
		Region:          o.Region,
		Transport:       o.Transport,
		TrailingHeaders: false,
		MaxRetries:      1,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o, err)
	}
	return &Store{options: o, client: client}, nil
}

// String implements store.Store.
func (s *Store) String() string { return s.options.String() }

// EnsureBucket creates the bucket unless it is there.
func (s *Store) EnsureBucket(ctx context.Context) error {
	err := retry(ctx, func() error {
		ok, err := s.client.BucketExists(ctx, s.options.Bucket)
		if err != nil || ok {
			return err
		}
		err = s.client.MakeBucket(ctx, s.options.Bucket, minio.MakeBucketOptions{Region: s.options.Region})
		if r, ok := response(err); ok && r.Code == "BucketAlreadyOwnedByYou" {
			return nil // another worker was faster
		}
		return err
	})
	if err != nil {
		return s.translate("create bucket", "", err)
	}
	return nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) (data []byte, err error) {
	if err := store.CheckKey(key); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	err = retry(ctx, func() error {
		data, err = s.read(ctx, key)
		return err
	})
	if err != nil {
		return nil, s.translate("get", key, err)
	}
	return data, nil
}

func (s *Store) read(ctx context.Context, key string) ([]byte, error) {
	body, info, _, err := s.client.GetObject(ctx, s.options.Bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data := make([]byte, 0, max(info.Size, 0)+bytes.MinRead)
	buffer := bytes.NewBuffer(data)
	if _, err := buffer.ReadFrom(body); err != nil {
		return nil, err
	}
	if int64(buffer.Len()) != info.Size {
		return nil, fmt.Errorf("read %d of %d bytes: %w", buffer.Len(), info.Size, io.ErrUnexpectedEOF)
	}
	return buffer.Bytes(), nil
}

// Put implements store.Store. The server checks the body's MD5; its ETag, or where that is
// something else the object itself, is compared afterwards.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if err := checkPut(key, data); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	err := retry(ctx, func() error { return s.write(ctx, key, data, false) })
	if err != nil {
		return s.translate("put", key, err)
	}
	return nil
}

// PutIfAbsent implements store.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := checkPut(key, data); err != nil {
		return fmt.Errorf("put if absent: %w", err)
	}
	err := retry(ctx, func() error { return s.write(ctx, key, data, true) })
	if err == nil {
		return nil
	}
	translated := s.translate("put if absent", key, err)
	if !exists(err) {
		return translated
	}
	// The key may be taken by this very call, whose first answer was lost.
	taken, err := s.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("%w; reading who took it: %w", translated, err)
	}
	if bytes.Equal(taken, data) {
		return nil
	}
	return translated
}

func checkPut(key string, data []byte) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if int64(len(data)) > maxObject {
		return fmt.Errorf("key %s: %d bytes are more than one put takes (%d); make smaller shards", key, len(data), int64(maxObject))
	}
	return nil
}

// write puts an object in one request and verifies what the server says that it has stored.
func (s *Store) write(ctx context.Context, key string, data []byte, ifAbsent bool) error {
	options := minio.PutObjectOptions{ContentType: contentType(key), DisableMultipart: true, SendContentMd5: true}
	if ifAbsent {
		options.SetMatchETagExcept("*")
	}
	info, err := s.client.Client.PutObject(ctx, s.options.Bucket, key, bytes.NewReader(data), int64(len(data)), options)
	if err != nil {
		return err
	}
	sum := md5.Sum(data)
	if strings.EqualFold(strings.Trim(info.ETag, `"`), hex.EncodeToString(sum[:])) {
		return nil
	}
	got, err := s.read(ctx, key) // encrypting servers have ETags of another kind
	if err != nil {
		return err
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("stored %d bytes, read back %d other ones: %w", len(data), len(got), io.ErrUnexpectedEOF)
	}
	return nil
}

func contentType(key string) string {
	if strings.HasSuffix(key, ".json") {
		return "application/json"
	}
	return "application/octet-stream"
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix string) (objects []store.Object, err error) {
	err = retry(ctx, func() error {
		objects, err = s.list(ctx, prefix)
		return err
	})
	if err != nil {
		return nil, s.translate("list", prefix, err)
	}
	slices.SortFunc(objects, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })
	return objects, nil
}

func (s *Store) list(ctx context.Context, prefix string) ([]store.Object, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the lister when we return early
	defer cancel()
	objects := []store.Object{}
	for info := range s.client.Client.ListObjects(ctx, s.options.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if info.Err != nil {
			return nil, info.Err
		}
		if strings.HasSuffix(info.Key, "/") { // a folder that a gateway shows as an object
			continue
		}
		objects = append(objects, store.Object{Key: info.Key, Size: info.Size})
	}
	return objects, ctx.Err()
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	err := retry(ctx, func() error {
		return s.client.RemoveObject(ctx, s.options.Bucket, key, minio.RemoveObjectOptions{})
	})
	if r, ok := response(err); ok && r.Code == minio.NoSuchKey {
		return nil
	}
	if err != nil {
		return s.translate("delete", key, err)
	}
	return nil
}

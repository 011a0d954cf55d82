// Package s3 is a store on an S3 server. It is the only package that uses minio-go.
//
// Several facts about S3 and its clients shape it:
//
//   - A conditional put silently becomes unconditional if the client switches to multipart. The client's own multipart
//     is therefore off, and a conditional put is one request of at most 5 GiB.
//   - Objects under content-addressed keys that are larger than a part are uploaded in parts. This package does that
//     itself, so that an interrupted upload can continue from the parts that are stored.
//   - A server may answer that an upload is complete while it still assembles the object for another request. The put
//     therefore ends only once the object exists.
//   - The client's own retries would hide whether a conflict is our own earlier success. They are off, this package
//     retries, and it settles a conflict by comparing the bytes. A conflict of two conditional puts in flight (409) is
//     repeated.
//   - Trailing checksums fail over plain HTTP on some servers. The MD5 of the body is sent in the header instead, and
//     the server refuses a body that does not match it.
package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/ropewalk/ropewalk/store"
)

// Store is a store.Store on an S3 bucket. Make one with New.
type Store struct {
	options Options
	client  *minio.Core
	patient *minio.Core // waits while the server assembles an object of many parts
}

// assembleWithin bounds that wait.
const assembleWithin = 15 * time.Minute

var _ store.Store = (*Store)(nil)

// New returns a store. It sends no request yet.
func New(o Options) (*Store, error) {
	if err := o.resolve(); err != nil {
		return nil, err
	}
	if o.PartSize == 0 {
		o.PartSize = DefaultPartSize
	}
	if o.PartSize < minPart || o.PartSize > maxPut {
		return nil, fmt.Errorf("connect to %s: parts have %d bytes: want %d to %d", o, o.PartSize, minPart, maxPut)
	}
	client, err := connect(o, o.Transport)
	if err != nil {
		return nil, err
	}
	transport := o.Transport
	if transport == nil {
		slow, err := minio.DefaultTransport(o.Secure)
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", o, err)
		}
		slow.ResponseHeaderTimeout = assembleWithin
		transport = slow
	}
	patient, err := connect(o, transport)
	if err != nil {
		return nil, err
	}
	return &Store{options: o, client: client, patient: patient}, nil
}

func connect(o Options, transport http.RoundTripper) (*minio.Core, error) {
	transport, err := withoutStrangers(transport, o.Secure)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o, err)
	}
	client, err := minio.NewCore(o.Endpoint, &minio.Options{
		Creds:           credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken),
		Secure:          o.Secure,
		Region:          o.Region,
		BucketLookup:    minio.BucketLookupAuto,
		Transport:       observed(transport, o.Observer),
		TrailingHeaders: false,
		MaxRetries:      1,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o, err)
	}
	return client, nil
}

// MaxObject implements store.Store.
func (s *Store) MaxObject() int64 { return maxObject }

// String implements store.Store.
func (s *Store) String() string { return s.options.String() }

// EnsureBucket creates the bucket unless it exists.
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
		data, err = s.read(ctx, key, minio.GetObjectOptions{})
		return err
	})
	if err != nil {
		return nil, s.translate("get", key, err)
	}
	return data, nil
}

// GetRange implements store.Store.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) (data []byte, err error) {
	if err := errors.Join(store.CheckKey(key), store.CheckRange(key, offset, length)); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	options := minio.GetObjectOptions{}
	if err := options.SetRange(offset, offset+length-1); err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	err = retry(ctx, func() error {
		data, err = s.read(ctx, key, options)
		return err
	})
	if r, ok := response(err); ok && r.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return nil, nil // the object ends before it
	}
	if err != nil {
		return nil, s.translate("get", key, err)
	}
	if int64(len(data)) > length {
		return nil, fmt.Errorf("get %s/%s: asked for %d bytes from offset %d and got %d: the server ignores ranges",
			s.options, key, length, offset, len(data))
	}
	return data, nil
}

// stat returns the server's description of an object.
func (s *Store) stat(ctx context.Context, key string) (info minio.ObjectInfo, err error) {
	err = retry(ctx, func() error {
		info, err = s.client.StatObject(ctx, s.options.Bucket, key, minio.StatObjectOptions{})
		return err
	})
	return info, err
}

func (s *Store) read(ctx context.Context, key string, options minio.GetObjectOptions) ([]byte, error) {
	body, info, _, err := s.client.GetObject(ctx, s.options.Bucket, key, options)
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

// Put implements store.Store. The server checks the body's MD5. Put then compares the ETag, or the object itself if the
// ETag is something other than an MD5.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.PutFrom(ctx, key, bytes.NewReader(data), int64(len(data)))
}

// putOnce stores an object in one request.
func (s *Store) putOnce(ctx context.Context, key string, data []byte) error {
	err := retry(ctx, func() error { return s.write(ctx, key, data, false) })
	if err != nil {
		return s.translate("put", key, err)
	}
	return nil
}

// PutIfAbsent implements store.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := store.CheckKey(key); err != nil {
		return fmt.Errorf("put if absent: %w", err)
	}
	if len(data) > maxPut {
		return fmt.Errorf("put if absent: %s has %d bytes, but one request can have at most %d: %w",
			key, len(data), int64(maxPut), store.ErrTooLarge)
	}
	if err := s.sign(ctx, key, data); err != nil {
		return fmt.Errorf("put if absent: %s: its signature: %w", key, err)
	}
	err := retry(ctx, func() error { return s.write(ctx, key, data, true) })
	if err == nil {
		return nil
	}
	translated := s.translate("put if absent", key, err)
	if !exists(err) {
		return translated
	}
	// The key may have been taken by this very call if the answer to an earlier try was lost.
	taken, err := s.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("%w; read the object that took the key: %w", translated, err)
	}
	if bytes.Equal(taken, data) {
		return nil
	}
	return translated
}

// sign puts the signature of an object before the object, so that no signed object is ever without it.
func (s *Store) sign(ctx context.Context, key string, data []byte) error {
	if s.options.Signer == nil {
		return nil
	}
	at, signature := s.options.Signer.Sign(key, data)
	if at == "" {
		return nil
	}
	return s.Put(ctx, at, signature)
}

// write stores an object in one request and verifies what the server says that it has stored.
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
	got, err := s.read(ctx, key, minio.GetObjectOptions{}) // encrypting servers have other ETags
	if err != nil {
		return err
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("stored %d bytes, read back %d other bytes: %w", len(data), len(got), io.ErrUnexpectedEOF)
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
	ctx, cancel := context.WithCancel(ctx) // ends the listing if we return early
	defer cancel()
	objects := []store.Object{}
	options := minio.ListObjectsOptions{Prefix: prefix, Recursive: true}
	for info := range s.client.Client.ListObjects(ctx, s.options.Bucket, options) {
		if info.Err != nil {
			return nil, info.Err
		}
		if strings.HasSuffix(info.Key, "/") { // a folder that a gateway lists as an object
			continue
		}
		objects = append(objects, store.Object{Key: info.Key, Size: info.Size, Modified: info.LastModified})
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

package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/ropewalk/ropewalk/internal/rescue"

	"github.com/ropewalk/ropewalk/store"
)

const (
	// partsAtOnce is the number of parts of an object that are sent concurrently. They are read from the content while
	// they are sent and take no additional memory.
	partsAtOnce = 4
	// damagedTries is how often a part is sent if it reaches the server with other bytes.
	damagedTries = 3
	// uploadTries is how often an upload is started if other writers of the same object end it.
	uploadTries = 5
	// settleWithin bounds the wait for an object that another request is completing. The server answers such a request
	// before the object exists.
	settleWithin = 5 * time.Minute
)

// PutFrom implements store.Store. An object larger than a part is uploaded in parts. PutFrom reuses the parts that an
// earlier, unfinished upload of the key has stored if their MD5 is that of the content's part. Once the object exists,
// it aborts remaining uploads of the key.
func (s *Store) PutFrom(ctx context.Context, key string, content io.ReaderAt, size int64) error {
	if err := errors.Join(store.CheckKey(key), store.CheckSize(s, key, size)); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	if size <= s.options.PartSize {
		data := make([]byte, size)
		if _, err := io.ReadFull(io.NewSectionReader(content, 0, size), data); err != nil {
			return fmt.Errorf("put %s: read the content of %d bytes: %w", key, size, err)
		}
		return s.putOnce(ctx, key, data)
	}
	u := &upload{s: s, key: key, source: source{content, size, partSize(s.options.PartSize, size)}}
	u.sums = make([][md5.Size]byte, u.parts())
	if err := u.putUntilStored(ctx); err != nil {
		return s.translate("put", key, err)
	}
	return nil
}

// putUntilStored runs the upload, and starts over if another writer of the object ends it.
func (u *upload) putUntilStored(ctx context.Context) error {
	wait := firstWait
	for try := 1; ; try++ {
		err := u.run(ctx)
		if !lostToOther(err) || try == uploadTries {
			return err
		}
		if sleep(ctx, wait) != nil {
			return err // the cause says more than that the time ran out
		}
		wait = min(2*wait, longWait)
	}
}

// lostToOther reports whether another writer of the object has completed or aborted the upload, or has changed its
// parts. A part that arrives while the upload ends may recreate the upload without the other parts: the server then
// accepts further parts, and misses the others at completion.
func lostToOther(err error) bool {
	r, ok := response(err)
	return uploadGone(err) || ok && r.Code == "InvalidPart"
}

// uploadGone reports whether another writer has completed or aborted the upload.
func uploadGone(err error) bool {
	r, ok := response(err)
	return ok && r.Code == minio.NoSuchUpload
}

// upload stores one object in parts.
type upload struct {
	s   *Store
	key string
	source
	sums [][md5.Size]byte // of the content's parts read so far
}

// run does everything that is left to do until the object exists.
func (u *upload) run(ctx context.Context) error {
	there, err := u.stored(ctx)
	if err != nil || there {
		return err
	}
	id, have, err := u.unfinished(ctx)
	if err != nil {
		return err
	}
	if id == "" {
		if id, err = u.begin(ctx); err != nil {
			return err
		}
	}
	parts, err := u.sendAll(ctx, id, have)
	if err != nil {
		return err
	}
	if err := u.complete(ctx, id, parts); err != nil {
		return err
	}
	if err := u.awaitObject(ctx); err != nil {
		return err
	}
	return u.abortOthers(ctx)
}

// young is the age up to which an existing object need not be put again. An older object may be an orphan that garbage
// collection is about to delete; putting it again renews its age.
const young = 30 * time.Minute

// stored reports whether the object exists, is young and has the bytes of the content.
func (u *upload) stored(ctx context.Context) (bool, error) {
	info, err := u.s.stat(ctx, u.key)
	if r, ok := response(err); ok && r.StatusCode == http.StatusNotFound && r.Code != "NoSuchBucket" {
		return false, nil
	}
	if err != nil || info.Size != u.size || time.Since(info.LastModified) > young {
		return false, err
	}
	return u.equal(ctx)
}

// equal reports whether the stored object has the bytes of the content.
func (u *upload) equal(ctx context.Context) (bool, error) {
	c := &comparison{content: io.NewSectionReader(u.content, 0, u.size)}
	n, err := store.Copy(ctx, u.s, u.key, u.size, c)
	if errors.Is(err, errDiffers) {
		return false, nil
	}
	return err == nil && n == u.size, err
}

// unfinished returns the unfinished upload of the key that has the most parts.
func (u *upload) unfinished(ctx context.Context) (id string, have map[int]minio.ObjectPart, err error) {
	uploads, err := u.s.uploads(ctx, u.key)
	if err != nil {
		return "", nil, err
	}
	for _, other := range uploads {
		if other.Key != u.key {
			continue
		}
		parts, err := u.s.stored(ctx, u.key, other.UploadID)
		if uploadGone(err) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if id == "" || len(parts) > len(have) {
			id, have = other.UploadID, parts
		}
	}
	return id, have, nil
}

func (u *upload) begin(ctx context.Context) (id string, err error) {
	err = retry(ctx, func() error {
		options := minio.PutObjectOptions{ContentType: contentType(u.key)}
		id, err = u.s.client.NewMultipartUpload(ctx, u.s.options.Bucket, u.key, options)
		return err
	})
	return id, err
}

// sendAll stores the parts that the upload lacks and returns the list of all parts.
func (u *upload) sendAll(ctx context.Context, id string, have map[int]minio.ObjectPart) ([]minio.CompletePart, error) {
	parts := make([]minio.CompletePart, u.parts())
	group, ctx := rescue.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range parts {
		group.Go(func() error {
			n := i + 1
			sum, err := u.sum(n)
			if err != nil {
				return err
			}
			u.sums[i] = sum
			if stored := have[n]; sameTag(stored.ETag, hex.EncodeToString(sum[:])) &&
				stored.Size == u.section(n).Size() {
				parts[i] = minio.CompletePart{PartNumber: n, ETag: stored.ETag}
				return nil
			}
			sent, err := u.send(ctx, id, n)
			parts[i] = minio.CompletePart{PartNumber: n, ETag: sent.ETag}
			return err
		})
	}
	return parts, group.Wait()
}

// send stores one part. The server refuses it if its bytes do not have its MD5.
func (u *upload) send(ctx context.Context, id string, n int) (part minio.ObjectPart, err error) {
	options := minio.PutObjectPartOptions{
		Md5Base64: base64.StdEncoding.EncodeToString(u.sums[n-1][:]), DisableContentSha256: u.s.options.Secure,
	}
	for try := 1; ; try++ {
		err = retry(ctx, func() error {
			section := u.section(n)
			part, err = u.s.client.PutObjectPart(ctx, u.s.options.Bucket, u.key, id, n, section, section.Size(),
				options)
			return err
		})
		if err == nil || !damagedOnTheWay(err) || try == damagedTries {
			return part, err
		}
	}
}

// damagedOnTheWay reports whether bytes were damaged on their way to the server. The server checks an MD5 and, without
// TLS, signatures of the pieces of the body; a wrong signature means damage, because the credentials were accepted when
// the upload began.
func damagedOnTheWay(err error) bool {
	r, ok := response(err)
	if !ok {
		return false
	}
	switch r.Code {
	case "BadDigest", "XAmzContentSHA256Mismatch", "SignatureDoesNotMatch", "IncompleteBody":
		return true
	}
	return false
}

func (u *upload) complete(ctx context.Context, id string, parts []minio.CompletePart) error {
	return retry(ctx, func() error {
		_, err := u.s.patient.CompleteMultipartUpload(ctx, u.s.options.Bucket, u.key, id, parts,
			minio.PutObjectOptions{})
		return err
	})
}

// awaitObject waits until the object exists and checks that it has the content: by its ETag, or by its bytes if the
// ETag is something else (on encrypting servers).
func (u *upload) awaitObject(ctx context.Context) error {
	until := time.Now().Add(settleWithin)
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		info, err := u.s.stat(ctx, u.key)
		if r, ok := response(err); ok && r.StatusCode == http.StatusNotFound && time.Now().Before(until) {
			if err := sleep(ctx, wait); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if info.Size == u.size && sameTag(info.ETag, entityTag(u.sums)) {
			return nil
		}
		same, err := u.equal(ctx)
		if err == nil && !same {
			err = fmt.Errorf("stored %d bytes in %d parts, but the object has %d other bytes: %w",
				u.size, u.parts(), info.Size, io.ErrUnexpectedEOF)
		}
		return err
	}
}

// abortOthers aborts the remaining uploads of the key: their parts take space and no one needs them.
func (u *upload) abortOthers(ctx context.Context) error {
	uploads, err := u.s.uploads(ctx, u.key)
	if err != nil {
		return err
	}
	for _, other := range uploads {
		if other.Key == u.key {
			if err := u.s.abort(ctx, u.key, other.UploadID); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameTag(a, b string) bool { return a != "" && strings.EqualFold(strings.Trim(a, `"`), b) }

// errDiffers ends a comparison early.
var errDiffers = errors.New("the stored bytes differ")

// comparison is a writer that fails if it receives bytes that differ from the content.
type comparison struct {
	content io.Reader
	buffer  []byte
}

func (c *comparison) Write(p []byte) (int, error) {
	if len(c.buffer) < len(p) {
		c.buffer = make([]byte, len(p))
	}
	own := c.buffer[:len(p)]
	if _, err := io.ReadFull(c.content, own); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, errDiffers
	} else if err != nil {
		return 0, err
	}
	if !bytes.Equal(own, p) {
		return 0, errDiffers
	}
	return len(p), nil
}

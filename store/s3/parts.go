package s3

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
)

// S3's limits on objects and parts, in bytes, and on the number of parts. Every part except the last has at least
// minPart bytes.
const (
	maxPut    = 5 << 30 // one request
	maxObject = 5 << 40
	maxParts  = 10_000
	minPart   = 5 << 20
)

// DefaultPartSize is the size of a large object's parts, in bytes, unless the limit on their number requires larger
// ones.
const DefaultPartSize = 16 << 20

// partSize returns the size of the parts of an object of size bytes. It depends only on the sizes, so that a later
// upload of the same content has the same parts and can continue from those that are stored.
func partSize(wanted, size int64) int64 {
	const step = 1 << 20
	least := (size + maxParts - 1) / maxParts
	return max(wanted, (least+step-1)/step*step)
}

// source is content that is divided into parts, numbered from 1.
type source struct {
	content io.ReaderAt
	size    int64
	part    int64 // bytes of each part but the last
}

func (s source) parts() int { return int((s.size + s.part - 1) / s.part) }

// section returns a reader of the nth part.
func (s source) section(n int) *io.SectionReader {
	offset := int64(n-1) * s.part
	return io.NewSectionReader(s.content, offset, min(s.part, s.size-offset))
}

// sum returns the MD5 of the nth part.
func (s source) sum(n int) ([md5.Size]byte, error) {
	h := md5.New()
	section := s.section(n)
	if read, err := io.Copy(h, section); err != nil || read != section.Size() {
		return [md5.Size]byte{}, fmt.Errorf("read part %d of the content: got %d of %d bytes: %w",
			n, read, section.Size(), shortRead(err))
	}
	return [md5.Size]byte(h.Sum(nil)), nil
}

func shortRead(err error) error {
	if err == nil {
		return errShortContent
	}
	return err
}

// errShortContent is a fault of the caller's content, not of the connection, so it is not retried.
var errShortContent = fmt.Errorf("the content ends early")

// entityTag returns the ETag that S3 gives an object whose parts have these MD5s.
func entityTag(sums [][md5.Size]byte) string {
	h := md5.New()
	for _, sum := range sums {
		h.Write(sum[:])
	}
	return fmt.Sprintf("%s-%d", hex.EncodeToString(h.Sum(nil)), len(sums))
}

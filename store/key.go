package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKey is S3's limit on a key, in bytes.
const maxKey = 1024

// CheckKey returns an error unless key can name an object in every store. S3 accepts nearly any key; a store over a
// folder of files does not.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("key %.64s…: has %d bytes, more than %d", key, len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q: is not UTF-8", key)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\\\x00\n\r") {
			return fmt.Errorf("key %q: part %q cannot name a file", key, part)
		}
	}
	return nil
}

// CheckSize returns ErrTooLarge, with the size and the limit, unless the store holds objects of that size.
func CheckSize(s Store, key string, size int64) error {
	if limit := s.MaxObject(); size > limit {
		return fmt.Errorf("%s has %d bytes, but an object in %s can have at most %d: %w", key, size, s, limit,
			ErrTooLarge)
	}
	return nil
}

// CheckRange returns an error unless offset and length describe a range.
func CheckRange(key string, offset, length int64) error {
	if offset < 0 || length < 1 {
		return fmt.Errorf("%s: range of %d bytes from %d on: want at least 1 byte and no negative offset", key, length,
			offset)
	}
	return nil
}

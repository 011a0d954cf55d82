package store

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKey is S3's limit on a key, in bytes.
const maxKey = 1024

// CheckKey returns an error unless key can name an object in every store: S3 takes nearly
// anything, a store over a folder of files does not.
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

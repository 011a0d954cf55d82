package schema

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// A shard is *sealed*: the entry ropewalk.seal of its metadata holds the CRC-32C (Castagnoli) of the whole file,
// computed with zeros in place of the checksum itself. Decode checks it before it parses a byte, because the parsing
// libraries trust lengths: a flipped bit could make them allocate all of the machine's memory. The seal detects
// accidents; the manifest's digest detects every change.
const (
	metaSeal   = "ropewalk.seal"
	sealMark   = "ropewalk-crc32c:"
	sealDigits = "00000000"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealAt returns the position of the checksum's digits: after the last mark in the file, because both formats keep the
// metadata at the end, after all rows.
func sealAt(data []byte) (start, end int, ok bool) {
	start = bytes.LastIndex(data, []byte(sealMark))
	if start < 0 {
		return 0, 0, false
	}
	start += len(sealMark)
	end = start + len(sealDigits)
	return start, end, end <= len(data)
}

func checksum(data []byte, start, end int) string {
	crc := crc32.Update(0, castagnoli, data[:start])
	crc = crc32.Update(crc, castagnoli, []byte(sealDigits))
	return fmt.Sprintf("%08x", crc32.Update(crc, castagnoli, data[end:]))
}

// seal fills in the checksum of a file that was written with zeros in its place.
func seal(data []byte) error {
	start, end, ok := sealAt(data)
	if !ok || string(data[start:end]) != sealDigits {
		return errors.New("seal: the file's last metadata has no place for a checksum")
	}
	copy(data[start:end], checksum(data, start, end))
	return nil
}

// checkSeal returns an error unless the file's checksum is correct.
func checkSeal(data []byte) error {
	start, end, ok := sealAt(data)
	if !ok {
		return fmt.Errorf("the %d bytes have no checksum; the file is truncated, or is not a file of the record",
			len(data))
	}
	if got, want := checksum(data, start, end), string(data[start:end]); got != want {
		return fmt.Errorf("the checksum of the %d bytes is %s, want %q", len(data), got, want)
	}
	return nil
}

package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// ReadWhole reads one file into memory: at most most bytes, which must have the SHA-256 digest.
func ReadWhole(ctx context.Context, address, digest string, most int64, fetch Fetch) ([]byte, error) {
	s := source{split: train, address: address, bytes: most, fetch: fetch}
	parts, folder, err := s.parts(ctx)
	if err != nil {
		return nil, err
	}
	if folder {
		return nil, faultf(address, Unreadable, "is a folder")
	}
	from, err := parts[0].open()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err != nil {
		return nil, faultf(address, Unreadable, "%v", err)
	}
	if err := s.fits(address, int64(len(data))); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != digest {
		return nil, faultf(address, OtherBytes, "has the digest %s, and the recipe wants %s", got, digest)
	}
	return data, nil
}

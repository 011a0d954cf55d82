package analysis

import (
	"context"
	"crypto/ed25519"

	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/schema"
)

// checkSignatures checks the signatures of the run's own documents. A document without a trusted signature of its bytes
// is a fault, whatever other signatures it has.
func checkSignatures(ctx context.Context, v *evidence, keys signing.Keys) error {
	there := map[string]bool{}
	for _, o := range v.listed {
		if schema.IsSignature(o.Key) {
			there[o.Key] = true
			v.name(o.Key)
		}
	}
	if keys == nil {
		return nil
	}
	return each(ctx, fetches, len(v.listed), func(ctx context.Context, i int) error {
		key := v.listed[i].Key
		if schema.SignaturesPrefix(key) == "" { // no manifest or head
			return nil
		}
		data, err := v.get(ctx, key, "a listing")
		if err != nil || data == nil {
			return err
		}
		digest := schema.Digest(data)
		for at, trusted := range keys.Places(key, digest) {
			if !there[at] {
				continue
			}
			signature, err := v.get(ctx, at, key)
			if err != nil {
				return err
			}
			if signature != nil && ed25519.Verify(trusted, schema.SignedText(key, digest), signature) {
				return nil
			}
			v.fault(FaultSignature, key, "has a signature that is not valid: %s", at)
			return nil
		}
		v.fault(FaultSignature, key, "has no signature of its bytes by a trusted key")
		return nil
	})
}

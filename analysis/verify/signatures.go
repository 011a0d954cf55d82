package verify

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/schema"
)

// checkSignatures checks the signatures of the run's own documents. A document needs one valid signature of its bytes
// by a trusted key; without one it is a fault, and with one its other signatures do not matter.
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
	return rescue.Each(ctx, fetches, len(v.listed), func(ctx context.Context, i int) error {
		key := v.listed[i].Key
		if schema.SignaturesPrefix(key) == "" { // such documents are not signed
			return nil
		}
		data, err := v.get(ctx, key, "a listing")
		if err != nil || data == nil {
			return err
		}
		digest := schema.Digest(data)
		places, invalid := keys.Places(key, digest), ""
		for _, at := range slices.Sorted(maps.Keys(places)) {
			if !there[at] {
				continue
			}
			signature, err := v.get(ctx, at, key)
			if err != nil {
				return err
			}
			if signature != nil && ed25519.Verify(places[at], schema.SignedText(key, digest), signature) {
				return nil
			}
			invalid = cmp.Or(invalid, at)
		}
		if invalid != "" {
			v.fault(FaultSignature, key, "has a signature that is not valid: %s", invalid)
			return nil
		}
		v.fault(FaultSignature, key, "has no signature of its bytes by a trusted key")
		return nil
	})
}

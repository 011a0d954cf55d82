package schema

import "strings"

// signatures follows the prefix of a run, or of a warm start, in the keys of signatures.
const signatures = "signatures/"

// SignaturesPrefix is the prefix of the keys of the signatures of a manifest, a head or a note of pruning; "" if the
// key is that of none. A document may have several: each is of some bytes, by some key.
func SignaturesPrefix(document string) string {
	_, notManifest := ParseManifestKey(document)
	_, _, notHead := ParseHeadKey(document)
	parts := strings.SplitN(document, "/", 3)
	if notManifest != nil && notHead != nil && !prunedForm.MatchString(document) || len(parts) < 3 {
		return ""
	}
	return parts[0] + "/" + parts[1] + "/" + signatures + parts[2] + "/"
}

// SignatureKey is the key of the signature of a document whose bytes have the digest; "" if documents under that key
// are not signed. signer identifies the public key.
func SignatureKey(document, digest, signer string) string {
	prefix := SignaturesPrefix(document)
	if prefix == "" {
		return ""
	}
	return prefix + digest[:digestChars] + "-" + signer + ".sig"
}

// IsSignature reports whether a key is one of SignatureKey.
func IsSignature(key string) bool {
	parts := strings.SplitN(key, "/", 3)
	return len(parts) == 3 && (strings.HasPrefix(key, runsPrefix) || strings.HasPrefix(key, warmPrefix)) &&
		strings.HasPrefix(parts[2], signatures) && strings.HasSuffix(key, ".sig")
}

// SignedText is what a signature signs: the document's key and the digest of its bytes.
func SignedText(document, digest string) []byte {
	return []byte("ropewalk manifest or head\n" + document + "\n" + digest + "\n")
}

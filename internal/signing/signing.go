// Package signing signs the manifests, heads and notes of pruning of the record, and checks their signatures (Ed25519,
// RFC 8032).
//
// A *signature* is an object next to the document, under a key that names the digest of the document's bytes and the
// public key. It is put before the document: one that no document follows says nothing. A head names all manifests of
// its step by their digests, and a manifest all its shards and inputs, so a head's signature holds for everything that
// it leads to.
//
//	openssl genpkey -algorithm ed25519 -out signing.pem
//	openssl pkey -in signing.pem -pubout -out trusted.pem
package signing

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/ropewalk/ropewalk/schema"
)

// Variable names the file with the private key (PKCS #8, PEM) that everything which commits signs with.
const Variable = "ROPEWALK_SIGNING_KEY"

// Signer signs documents. Safe for concurrent use.
type Signer struct {
	key ed25519.PrivateKey
	id  string
}

// FromEnv returns the signer that Variable names; nil if it names none.
func FromEnv() (*Signer, error) {
	path := os.Getenv(Variable)
	if path == "" {
		return nil, nil
	}
	s, err := Load(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Variable, err)
	}
	return s, nil
}

// Load reads a private key.
func Load(path string) (*Signer, error) {
	blocks, err := read(path)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(blocks[0])
	if err != nil { // the error does not repeat the file's bytes
		return nil, fmt.Errorf("%s: is no private key in PKCS #8: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: holds a key of another kind, want Ed25519", path)
	}
	return &Signer{key, identify(key.Public().(ed25519.PublicKey))}, nil
}

// Sign returns the signature of a document and the key to put it under; "" if no document has the key.
func (s *Signer) Sign(document string, data []byte) (key string, signature []byte) {
	digest := schema.Digest(data)
	if key = schema.SignatureKey(document, digest, s.id); key == "" {
		return "", nil
	}
	return key, ed25519.Sign(s.key, schema.SignedText(document, digest))
}

// Keys are trusted public keys, by what identifies them.
type Keys map[string]ed25519.PublicKey

// LoadKeys reads public keys (PEM); a file may hold several.
func LoadKeys(paths []string) (Keys, error) {
	out := Keys{}
	for _, path := range paths {
		blocks, err := read(path)
		if err != nil {
			return nil, err
		}
		for _, block := range blocks {
			parsed, err := x509.ParsePKIXPublicKey(block)
			if err != nil {
				return nil, fmt.Errorf("%s: is no public key: %w", path, err)
			}
			key, ok := parsed.(ed25519.PublicKey)
			if !ok {
				return nil, fmt.Errorf("%s: holds a key of another kind, want Ed25519", path)
			}
			out[identify(key)] = key
		}
	}
	return out, nil
}

// Places returns the keys under which signatures of a document's bytes by trusted keys would lie, with the keys.
func (k Keys) Places(document, digest string) map[string]ed25519.PublicKey {
	out := make(map[string]ed25519.PublicKey, len(k))
	for id, key := range k {
		out[schema.SignatureKey(document, digest, id)] = key
	}
	return out
}

// identify returns what identifies a public key: the first 16 hexadecimal digits of its digest.
func identify(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

// read returns the blocks of a PEM file, at least one.
func read(path string) (blocks [][]byte, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		blocks = append(blocks, block.Bytes)
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%s: holds no PEM block", path)
	}
	return blocks, nil
}

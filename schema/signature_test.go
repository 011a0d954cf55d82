package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// SignedDocument is the inverse of SignatureKey.
func TestSignedDocument(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	for _, document := range []string{
		schema.At("a", 3, schema.StageSandbox).WithTurn(1).WithShard(2).WithGen(0).ManifestKey(),
		schema.HeadKey("a", "3"), schema.AtWarmStart(digest).ManifestKey(),
	} {
		found, ok := schema.SignedDocument(schema.SignatureKey(document, digest, "0011223344556677"))
		require.True(t, ok, document)
		require.Equal(t, document, found)
	}
	for _, other := range []string{"", "runs/run=a/signatures/heads/step=3.json", "runs/run=a/signatures/x.sig",
		"runs/run=a/signatures/table=turns/a/b.sig", "runs/run=a/heads/step=3.json"} {
		_, ok := schema.SignedDocument(other)
		require.False(t, ok, other)
	}
}

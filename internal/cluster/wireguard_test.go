package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file of wg-quick becomes the lines that WireGuard's programs read, with keys as hexadecimal digits.
func TestWireGuardSettings(t *testing.T) {
	key := strings.Repeat("A", 42) + "E=" // 31 zero bytes and a 1
	got, other, err := wireGuardSettings("[Interface]\n# a comment\nAddress = 10.0.0.1/24\nPreUp = true a=b\n" +
		"PrivateKey=" + key + " # mine\n\n[Peer]\nAllowedIPs = 10.0.0.2/32\n")
	require.NoError(t, err)
	require.Equal(t, "set=1\nprivate_key="+strings.Repeat("0", 63)+"1\nallowed_ip=10.0.0.2/32\n\n", got)
	require.Equal(t, map[string]string{"Address": "10.0.0.1/24", "PreUp": "true a=b"}, other)
	for line, want := range map[string]string{
		"PublicKey = c2hvcnQ=": `PublicKey "c2hvcnQ=" is not the base64 of 32 bytes`,
		"MTU = 1400":           `field "MTU" is not known`,
	} {
		_, _, err := wireGuardSettings(line)
		require.ErrorContains(t, err, want)
	}
}

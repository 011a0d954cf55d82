package stack

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnotherPortIsListenedOnWhereOneIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", loopbackIP+":0")
	require.NoError(t, err)
	defer taken.Close()
	said := ""
	p := port{use: "it", want: taken.Addr().(*net.TCPAddr).Port}
	l, err := p.listen(func(text string) { said = text })
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, p.address(), l.Addr().String())
	require.NotEqual(t, taken.Addr(), l.Addr())
	require.Contains(t, said, "is taken")
	p.settled = true // clients know the port, so no other will do
	_, err = p.listen(func(string) {})
	require.ErrorContains(t, err, "address already in use")
}

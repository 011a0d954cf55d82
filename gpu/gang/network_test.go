package gang

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Interfaces are WireGuard's by what the kernel says of its own, or by a TUN device and the socket of its program.
func TestHasWireGuard(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	put("sys/class/net/kernel0/uevent", "DEVTYPE=wireguard\nINTERFACE=kernel0\nIFINDEX=7\n")
	put("sys/class/net/eth0/uevent", "INTERFACE=eth0\nIFINDEX=2\n")
	put("sys/class/net/vlan0/uevent", "DEVTYPE=vlan\nINTERFACE=vlan0\nIFINDEX=3\n")
	for _, tun := range []string{"user0", "tun0", "stale0"} {
		put(filepath.Join("sys/class/net", tun, "uevent"), "INTERFACE="+tun+"\n")
		put(filepath.Join("sys/class/net", tun, "tun_flags"), "0x1001\n")
	}
	put("var/run/wireguard/stale0.sock", "no socket")
	for _, name := range []string{"user0", "eth0"} {
		l, err := net.Listen("unix", filepath.Join(root, "var/run/wireguard", name+".sock"))
		require.NoError(t, err)
		defer l.Close()
	}
	for name, want := range map[string]bool{"kernel0": true, "user0": true, "eth0": false, "vlan0": false,
		"tun0": false, "stale0": false, "absent0": false} {
		require.Equal(t, want, hasWireGuard(root, name), name)
	}
}

func TestLink(t *testing.T) {
	for _, e := range append(Encryptions(), "") {
		l, err := e.Link("127.0.0.1")
		require.NoError(t, err, "nothing leaves the machine")
		require.Equal(t, Link{Name: l.Name, Address: "127.0.0.1"}, l)
		_, err = e.Link("192.0.2.1")
		require.ErrorContains(t, err, "no network interface of this host has the address 192.0.2.1")
	}
	_, err := Encryption("tls").Link("127.0.0.1")
	require.ErrorContains(t, err, `encryption "tls" is none of [wireguard network none]`)

	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLoopback() {
			continue
		}
		name, err := Interface(n.IP.String())
		require.NoError(t, err)
		if hasWireGuard("/", name) {
			continue
		}
		_, err = WireGuard.Link(n.IP.String())
		require.ErrorContains(t, err, "it is neither a WireGuard interface nor loopback")
		for _, e := range []Encryption{Network, Plain} {
			l, err := e.Link(n.IP.String())
			require.NoError(t, err)
			require.False(t, l.Encrypted)
		}
		return
	}
	t.Log("this machine has loopback alone")
}

// Every host checks its way to every other one, and all have the same encryption.
func TestHostsAreReachedOverTheLink(t *testing.T) {
	good := Link{Name: "wg0", Address: "127.0.0.1", Encrypted: true}
	bad := Link{Name: "wg0", Address: "127.0.0.2", Encrypted: true}
	require.NoError(t, good.Toward("127.0.0.1:7"))
	require.NoError(t, Link{Address: "127.0.0.2"}.Toward("127.0.0.1:7"), "not encrypted")
	says := "tensors would not be encrypted: this host reaches 127.0.0.1 from its address 127.0.0.1 and not through wg0"
	require.ErrorContains(t, bad.Toward("127.0.0.1"), says)

	as := on("a")
	as.Link = good
	c, err := Open(as, 2, Work{Ranks: 1, Device: "cpu"})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	refused := func(o Options, says string) {
		t.Helper()
		_, err := Join(t.Context(), o, c.Invitation())
		require.ErrorIs(t, err, ErrElsewhere)
		require.ErrorContains(t, err, says)
	}
	b := on("b")
	b.Link = bad
	refused(b, says)
	b.Link, b.Encryption = Link{}, Plain
	refused(b, "tensors of host a have the encryption wireguard, those of host b none")
	c.o.Link = bad
	b.Encryption = WireGuard
	refused(b, "host a: "+says)

	c.o.Link, b.Link = good, good
	p, err := Join(t.Context(), b, c.Invitation())
	require.NoError(t, err)
	p.o.Link = bad
	orders := ready(t, p)
	_, err = c.Gather(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, (<-orders).error, says)
	p.Leave("its way is not encrypted")
	<-c.Lost()
}

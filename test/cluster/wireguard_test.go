package cluster

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/internal/cluster"
	"github.com/ropewalk/ropewalk/internal/python/pythontest"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/transcript"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// needWireGuard skips a test that cannot run here, or fails it if ROPEWALK_REQUIRE_WIREGUARD is set. It returns the
// program wireguard-go and a Python with torch.
func needWireGuard(t *testing.T) (program, python string) {
	t.Helper()
	if os.Getenv("ROPEWALK_TEST_WIREGUARD") == "" {
		t.Skip("changes the host's mounts, which tests of the sandbox look at: make test-wireguard")
	}
	absent := func(what string) {
		t.Helper()
		if os.Getenv("ROPEWALK_REQUIRE_WIREGUARD") != "" {
			t.Fatalf("ROPEWALK_REQUIRE_WIREGUARD is set, and %s", what)
		}
		t.Skip(what)
	}
	if os.Getuid() != 0 {
		absent("network namespaces and tunnels need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		absent("ip is missing (Debian: apt-get install iproute2)")
	}
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		absent("tunnels cannot be made here: " + err.Error())
	}
	tun.Close()
	if program, err = stack.FindTool("wireguard-go"); err != nil {
		absent("wireguard-go is missing: make test-wireguard builds it")
	}
	trial, err := cluster.NewNetwork()
	if err != nil {
		absent("network namespaces cannot be made here: " + err.Error())
	}
	require.NoError(t, trial.Close())
	python, err = filepath.Abs(pythontest.Need(t, "WIREGUARD", "torch", "transformers", "safetensors"))
	require.NoError(t, err)
	return program, python
}

// pair are two hosts that share a model, each on a machine of its own.
type pair struct {
	network *cluster.Network
	hosts   [2]*cluster.Machine
	names   [2]string // of their WireGuard interfaces
	inside  [2]string // their addresses in the tunnel
	python  string
	model   string // a folder
}

// TestTensorsTakeTheTunnel runs ranks of one model on two hosts. In plain text, what passes the wire between them has
// the model's weights. By default that is refused. Through WireGuard, as the documented files set it up, the wire
// carries the tunnel's port and nothing else, although the hosts' environments name the interface outside it.
func TestTensorsTakeTheTunnel(t *testing.T) {
	program, python := needWireGuard(t)
	p := &pair{python: python, model: filepath.Join(t.TempDir(), "model")}
	require.NoError(t, checkpoint.Init(p.model, checkpoint.Shape{
		Vocab: 512, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 128, Positions: 64, RopeTheta: 10000,
		NormEps: 1e-6, Pad: -1,
	}, 5, map[string][]byte{"tokenizer.json": []byte("{}")}))
	var err error
	p.network, err = cluster.NewNetwork()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.network.Close()) })
	for i, name := range []string{"a", "b"} {
		p.hosts[i], err = p.network.Machine(name)
		require.NoError(t, err)
		p.names[i] = fmt.Sprintf("rw%d%s", os.Getpid(), name)
	}
	outside := [2]string{p.hosts[0].IP, p.hosts[1].IP}

	refused := p.start(t, 0, host{Address: outside[0]})
	require.Contains(t, refused.ends(t), "tensors would leave eth0 ("+outside[0]+") in plain text: it is neither a "+
		"WireGuard interface nor loopback")

	plain := p.run(t, outside, gang.Plain)
	found, all := p.weights(t, plain.frames)
	t.Logf("in plain text, %d of %d samples of the weights are among %d frames", found, all, len(plain.frames))
	require.Greater(t, found, all/2, "the capture misses what is there")
	plain.leader.ends(t)
	// Whether the member hears first that the engine is closed, or that its ranks have ended, is a matter of luck.
	require.Regexp(t, "<nil>\n|"+gang.ErrGone.Error()+": the leader has closed its engine", plain.member.ends(t))

	p.tunnel(t, program)
	away := p.start(t, 1, host{Address: p.inside[1], Invitation: gang.Invitation{Address: outside[0] + ":9"}})
	require.Contains(t, away.ends(t), "tensors would not be encrypted: this host reaches "+outside[0]+
		" from its address "+outside[1]+" and not through "+p.names[1])

	encrypted := p.run(t, p.inside, gang.WireGuard)
	require.Equal(t, plain.result, encrypted.result)
	info, err := os.Stat(filepath.Join(p.model, "model.safetensors"))
	require.NoError(t, err)
	require.Greater(t, int64(p.requireTunnel(t, encrypted.frames)), info.Size()/2, "the tensors took the tunnel")
	p.losesItsTunnel(t, encrypted)
}

// losesItsTunnel takes the member's interface down and has the leader go on. Its engine is lost, and nothing leaves the
// member by a route outside the tunnel that is as good as the default route.
func (p *pair) losesItsTunnel(t *testing.T, s *shared) {
	t.Helper()
	member := p.hosts[1]
	require.NoError(t, member.Command("ip", "route", "add", "10.90.0.0/16", "via", p.hosts[0].IP).Run())
	c, err := p.network.Capture(p.hosts[0])
	require.NoError(t, err)
	require.NoError(t, member.Command("ip", "link", "set", p.names[1], "down").Run())
	_, err = s.leader.input.Write([]byte{'\n'})
	require.NoError(t, err)
	require.Contains(t, s.leader.ends(t), "host b is lost: ")
	require.Contains(t, s.member.ends(t), gang.ErrGone.Error())
	frames, err := c.Stop()
	require.NoError(t, err)
	p.requireTunnel(t, frames)
}

// tunnel connects the hosts by deploy/wireguard/ropewalk.conf.example, with keys and addresses filled in.
func (p *pair) tunnel(t *testing.T, program string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "deploy", "wireguard", "ropewalk.conf.example"))
	require.NoError(t, err)
	shared := make([]byte, 32)
	rand.Read(shared)
	var private, public [2]string
	for i := range p.hosts {
		key, err := ecdh.X25519().GenerateKey(rand.Reader)
		require.NoError(t, err)
		private[i] = base64.StdEncoding.EncodeToString(key.Bytes())
		public[i] = base64.StdEncoding.EncodeToString(key.PublicKey().Bytes())
	}
	p.inside = [2]string{"10.90.0.1", "10.90.0.2"}
	for i, m := range p.hosts {
		other := 1 - i
		fill := []string{"PRIVATE-KEY-OF-THIS-HOST", private[i], "PUBLIC-KEY-OF-THE-OTHER-HOST", public[other],
			"KEY-OF-THIS-PAIR-OF-HOSTS", base64.StdEncoding.EncodeToString(shared), "10.90.0.1/24", p.inside[i] + "/24",
			"10.90.0.2/32", p.inside[other] + "/32", "192.0.2.12", p.hosts[other].IP}
		for k := 0; k < len(fill); k += 2 {
			require.Equal(t, 1, strings.Count(string(text), fill[k]), "the example names %s once", fill[k])
		}
		u, err := cluster.StartWireGuard(program, m, p.names[i], strings.NewReplacer(fill...).Replace(string(text)))
		require.NoError(t, err)
		t.Cleanup(func() {
			require.Equal(t, 1, u.Starts(), "it was started again, without settings: %s", u.Log())
			require.NoError(t, u.Stop(syscall.SIGTERM, 30*time.Second))
		})
	}
}

// shared is a model that two hosts have loaded and computed with.
type shared struct {
	leader, member *running
	result         string   // what they computed
	frames         [][]byte // what passed the wire until then
}

// run has the hosts load the model and compute with it. With WireGuard they stay to compute again.
func (p *pair) run(t *testing.T, addresses [2]string, e gang.Encryption) *shared {
	t.Helper()
	c, err := p.network.Capture(p.hosts[0])
	require.NoError(t, err)
	leader := p.start(t, 0, host{Address: addresses[0], Encryption: e, Again: e == gang.WireGuard})
	var i gang.Invitation
	require.NoError(t, json.Unmarshal([]byte(leader.line(t, invites)), &i))
	s := &shared{leader: leader, member: p.start(t, 1, host{Address: addresses[1], Encryption: e, Invitation: i})}
	s.result = leader.line(t, computes)
	s.frames, err = c.Stop()
	require.NoError(t, err)
	return s
}

// line waits for a line that begins with a prefix, and returns what follows there.
func (r *running) line(t *testing.T, prefix string) (text string) {
	t.Helper()
	eventually(t, func() bool {
		_, text, _ = strings.Cut(r.said.String(), prefix)
		return strings.Contains(text, "\n") || r.ended()
	}, prefix+"…, %s", r.said.String)
	text, _, found := strings.Cut(text, "\n")
	require.True(t, found, "no %s…: %s", prefix, r.said.String())
	return text
}

// sample is how many bytes of the weights are looked for at once, and stride how far apart samples begin.
const sample, stride = 16, 64

// weights looks for samples of the model's weights in what passed the wire.
func (p *pair) weights(t *testing.T, frames [][]byte) (found, all int) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(p.model, "model.safetensors"))
	require.NoError(t, err)
	data := file[8+binary.LittleEndian.Uint64(file):] // after the header
	seen := map[[sample]byte]bool{}
	for at := 0; at+sample <= len(data); at += stride {
		s := [sample]byte(data[at:])
		if !bytes.Equal(s[:4], s[4:8]) { // norms are all 1, which says nothing
			seen[s] = false
		}
	}
	for _, frame := range frames {
		for at := 0; at+sample <= len(frame); at++ {
			s := [sample]byte(frame[at:])
			if was, is := seen[s]; is && !was {
				seen[s] = true
				found++
			}
		}
	}
	require.Greater(t, len(seen), 1000)
	return found, len(seen)
}

// port is the tunnel's in the example.
const port = 51820

// requireTunnel requires that the frames are packets of the tunnel between the hosts, except those with which machines
// of a network find each other. It also requires that none has weights, and returns the bytes in the tunnel.
func (p *pair) requireTunnel(t *testing.T, frames [][]byte) (size int) {
	t.Helper()
	packets := 0
	for _, f := range frames {
		require.GreaterOrEqual(t, len(f), 14)
		switch kind, packet := binary.BigEndian.Uint16(f[12:]), f[14:]; kind {
		case 0x0806: // ARP
		case 0x86dd: // IPv6, of which there is none but its search for neighbours and routers
			next := packet[6]
			if next == 0 { // options, for multicast listeners
				next = packet[40]
			}
			require.Equal(t, byte(58), next, "a packet of IPv6: %x", packet)
		default:
			require.Equal(t, uint16(0x0800), kind, "a frame that is not IP: %x", f)
			require.True(t, p.tunnelled(packet), "a packet outside the tunnel: %x", packet)
			packets, size = packets+1, size+len(packet)
		}
	}
	t.Logf("the tunnel carried %d packets with %d bytes; the other %d frames are ARP and ICMPv6", packets, size,
		len(frames)-packets)
	found, all := p.weights(t, frames)
	require.Zero(t, found, "of %d samples of the weights", all)
	return size
}

// tunnelled reports whether a packet of IPv4 is the tunnel's between the hosts, or says that one was not delivered.
func (p *pair) tunnelled(packet []byte) bool {
	if len(packet) < 20 {
		return false
	}
	from, to := net.IP(packet[12:16]).String(), net.IP(packet[16:20]).String()
	ends := [2]string{p.hosts[0].IP, p.hosts[1].IP}
	if [2]string{from, to} != ends && [2]string{to, from} != ends {
		return false
	}
	header := int(packet[0]&15) * 4
	if len(packet) < header+8 {
		return false
	}
	switch body := packet[header:]; packet[9] {
	case 1: // ICMP, which quotes the packet
		return body[0] == 3 && p.tunnelled(body[8:])
	case 17: // UDP
		return binary.BigEndian.Uint16(body) == port && binary.BigEndian.Uint16(body[2:]) == port
	}
	return false
}

// running is a host's process.
type running struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	said  *transcript.Transcript
	done  chan struct{}
}

// start starts a host's process on its machine, as TestRanksOfAHost. Its environment names the interface outside the
// tunnel.
func (p *pair) start(t *testing.T, i int, h host) *running {
	t.Helper()
	h.Name, h.Python, h.Dir = p.hosts[i].Name, p.python, t.TempDir()
	if h.Invitation.Address == "" {
		h.Model = p.model
	}
	text, err := json.Marshal(h)
	require.NoError(t, err)
	r := &running{said: &transcript.Transcript{}, done: make(chan struct{})}
	r.cmd = p.hosts[i].Command(os.Args[0], "-test.run=^TestRanksOfAHost$", "-test.v", "-test.timeout=10m")
	r.cmd.Env = append(os.Environ(), hostVariable+"="+string(text), "CUDA_VISIBLE_DEVICES=", "GLOO_SOCKET_IFNAME=eth0")
	r.cmd.Stdout, r.cmd.Stderr = r.said, r.said
	r.input, err = r.cmd.StdinPipe() // the process ends with it
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	go func() {
		_ = r.cmd.Wait() // what it said tells more than its status
		close(r.done)
	}()
	t.Cleanup(func() {
		r.input.Close()
		<-r.done
		if t.Failed() {
			t.Logf("host %s said:\n%s", h.Name, r.said.String())
		}
	})
	return r
}

func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// ends waits for the process, and returns what it said.
func (r *running) ends(t *testing.T) string {
	t.Helper()
	eventually(t, r.ended, "a host's process to end: %s", r.said.String)
	return r.said.String()
}

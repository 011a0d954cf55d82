package cluster

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tunnelLimit bounds how long WireGuard may take to start.
const tunnelLimit = time.Minute

// StartWireGuard opens a WireGuard interface on a machine by the program wireguard-go, which needs no kernel module but
// /dev/net/tun. configuration is a file of wg-quick. Its fields may be those of wireGuardKeys, Address and PreUp, the
// last two once each. The name of the interface must be unique on this computer, and the unit must be stopped with
// SIGTERM.
func StartWireGuard(program string, m *Machine, network, configuration string) (*Unit, error) {
	settings, other, err := wireGuardSettings(configuration)
	if err != nil {
		return nil, fmt.Errorf("read WireGuard's configuration of %s: %w", m.Name, err)
	}
	u := StartUnit("wireguard-"+m.Name, func() *exec.Cmd { return m.Command(program, "--foreground", network) })
	if err = configure("/var/run/wireguard/"+network+".sock", settings); err == nil {
		err = m.runs(other["PreUp"], "ip address add "+other["Address"]+" dev "+network, "ip link set "+network+" up")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start WireGuard on %s: %w: %s", m.Name, err, u.Said()),
			u.Stop(syscall.SIGTERM, time.Second))
	}
	return u, nil
}

// runs runs command lines of a shell on the machine until one fails.
func (m *Machine) runs(lines ...string) error {
	for _, line := range lines {
		if out, err := m.Command("sh", "-c", line).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
	}
	return nil
}

// configure sends settings to the socket of WireGuard's cross-platform interface once it is there.
func configure(socket, settings string) error {
	var conn net.Conn
	var err error
	for end := time.Now().Add(tunnelLimit); ; time.Sleep(20 * time.Millisecond) {
		if conn, err = net.Dial("unix", socket); err == nil {
			break
		}
		if time.Now().After(end) {
			return err
		}
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(tunnelLimit))
	if _, err := io.WriteString(conn, settings); err != nil {
		return err
	}
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(answer[:n])); got != "errno=0" {
		return fmt.Errorf("it refuses its settings: %s", got)
	}
	return nil
}

// wireGuardKeys maps fields of wg-quick's files to the keys of WireGuard's cross-platform interface.
var wireGuardKeys = map[string]string{"PrivateKey": "private_key", "ListenPort": "listen_port",
	"PublicKey": "public_key", "PresharedKey": "preshared_key", "AllowedIPs": "allowed_ip", "Endpoint": "endpoint"}

// wireGuardSettings translates a file of wg-quick. Its own fields, Address and PreUp, are not part of the settings.
func wireGuardSettings(configuration string) (settings string, other map[string]string, err error) {
	text, other := &strings.Builder{}, map[string]string{}
	fmt.Fprintln(text, "set=1")
	for line := range strings.Lines(configuration) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if line == "" || strings.HasPrefix(line, "[") {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		key, known := wireGuardKeys[name]
		switch {
		case name == "Address" || name == "PreUp":
			other[name] = value
			continue
		case !known:
			return "", nil, fmt.Errorf("field %q is not known", name)
		case strings.HasSuffix(name, "Key"):
			raw, err := base64.StdEncoding.DecodeString(value)
			if err != nil || len(raw) != 32 {
				return "", nil, fmt.Errorf("%s %q is not the base64 of 32 bytes", name, value)
			}
			value = hex.EncodeToString(raw)
		}
		fmt.Fprintf(text, "%s=%s\n", key, value)
	}
	fmt.Fprintln(text)
	return text.String(), other, nil
}

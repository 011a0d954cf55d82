package gang

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// TLS names the PEM files by which the hosts of a gang know each other: each side of a connection demands a certificate
// of the authority, for servers and for clients. The names in certificates are not checked, so the authority must issue
// certificates to hosts alone. Every gang reads the files again, so certificates can be renewed while workers run. The
// zero value means connections without TLS.
type TLS struct {
	Cert string // this host's certificate, with the intermediate ones
	Key  string // the certificate's key
	CA   string // certificates of the authority
}

// On reports whether connections use TLS.
func (t TLS) On() bool { return t != TLS{} }

// Check reads the files. It returns an error if other hosts would refuse the certificate.
func (t TLS) Check() error {
	_, _, err := t.configs()
	return err
}

// configs returns the settings of a leader and of a member.
func (t TLS) configs() (leader, member *tls.Config, err error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("read this host's certificate: %w", err)
	}
	data, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, nil, fmt.Errorf("read the authority of the hosts: %w", err)
	}
	hosts := x509.NewCertPool()
	if !hosts.AppendCertsFromPEM(data) {
		return nil, nil, fmt.Errorf("read the authority of the hosts: %s holds no PEM certificate", t.CA)
	}
	chain, err := parse(pair)
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err == nil {
			err = verify(chain, hosts, use)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("check %s: %w", t.Cert, err)
	}
	leader = &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientCAs: hosts,
		ClientAuth: tls.RequireAndVerifyClientCert,
	}
	member = &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		InsecureSkipVerify: true, // of the name alone: VerifyConnection verifies the chain, for every connection
		VerifyConnection: func(s tls.ConnectionState) error {
			return verify(s.PeerCertificates, hosts, x509.ExtKeyUsageServerAuth)
		},
	}
	return leader, member, nil
}

func parse(pair tls.Certificate) (chain []*x509.Certificate, err error) {
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, cert)
	}
	return chain, nil
}

// verify checks that an authority has issued the chain's first certificate for a use.
func verify(chain []*x509.Certificate, authorities *x509.CertPool, use x509.ExtKeyUsage) error {
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{use}})
	return err
}

// handshakeByte is the first byte of a TLS connection. No message begins with it.
const handshakeByte = 0x16

// handshake completes the handshake of a member. A member that speaks TLS where this host does not, or the reverse,
// gets an answer that it understands.
func (c *Call) handshake(conn net.Conn) (*line, error) {
	secure, on := conn.(*tls.Conn)
	if !on {
		l := newLine(conn)
		if first, err := l.peek(); err == nil && first == handshakeByte {
			_ = l.write(message{Refused: &refused{Reason: "this gang uses no TLS", Elsewhere: true}})
			return nil, errors.New("it uses TLS, this host does not")
		}
		return l, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), mostSilence)
	defer cancel()
	err := secure.HandshakeContext(ctx)
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil {
		_ = newLine(plain.Conn).write(message{Refused: &refused{
			Reason: fmt.Sprintf("host %s demands TLS and a certificate", c.o.Host), Elsewhere: true,
		}})
		return nil, errors.New("it uses no TLS, this host demands it")
	}
	if err != nil {
		return nil, err
	}
	return newLine(secure), nil
}

// dial connects to a leader.
func (o Options) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, mostSilence)
	defer cancel()
	if !o.TLS.On() {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	_, config, err := o.TLS.configs()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrElsewhere, err)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, config)
	err = secure.HandshakeContext(ctx)
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		err = errors.New("the leader uses no TLS, this host demands it")
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrElsewhere, err)
	}
	return secure, nil
}

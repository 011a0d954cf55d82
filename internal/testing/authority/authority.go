// Package authority issues certificates for tests, benchmarks and clusters in miniature.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is how long certificates are valid.
const lifetime = 24 * time.Hour

// Authority issues certificates that are valid for a day. It keeps them in a folder.
type Authority struct {
	File   string // its own certificate
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// New makes an authority that writes its files to a folder.
func New(folder string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ropewalk tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	a := &Authority{File: filepath.Join(folder, "ca.pem"), folder: folder, cert: cert, key: key, serial: 1}
	return a, writePEM(a.File, "CERTIFICATE", der)
}

// Pair is a certificate and its key, as files.
type Pair struct{ Cert, Key string }

// Issue issues a certificate for a server and client with these names and addresses.
func (a *Authority) Issue(name string, addresses ...string) (p Pair, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, fmt.Errorf("make the key of %s: %w", name, err)
	}
	a.serial++
	template := &x509.Certificate{SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return p, fmt.Errorf("issue the certificate of %s: %w", name, err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return p, fmt.Errorf("write the key of %s: %w", name, err)
	}
	p = Pair{Cert: filepath.Join(a.folder, name+".pem"), Key: filepath.Join(a.folder, name+".key")}
	if err := writePEM(p.Cert, "CERTIFICATE", der); err != nil {
		return p, err
	}
	return p, writePEM(p.Key, "EC PRIVATE KEY", secret)
}

// Client returns the settings of a client that shows the certificate and trusts the authority.
func (a *Authority) Client(p Pair) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, fmt.Errorf("load a client certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write a certificate or key: %w", err)
	}
	return nil
}

package main

import (
	"crypto/tls"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// listening is where a command listens, and what protects it there.
type listening struct{ address, tokenFile, cert, key string }

// add adds the flags. address is the usual one.
func (l *listening) add(f *pflag.FlagSet, address string) {
	f.StringVar(&l.address, "listen", address, "address to listen on; port 0 takes a free one")
	f.StringVar(&l.tokenFile, "token-file", "", "file with the token that requests must bear (Authorization: Bearer "+
		"TOKEN)")
	f.StringVar(&l.cert, "tls-cert", "", "certificate chain (PEM); enables TLS")
	f.StringVar(&l.key, "tls-key", "", "the certificate's key (PEM)")
}

// open reports whether other machines can reach the address.
func (l listening) open() (bool, error) {
	address, err := net.ResolveTCPAddr("tcp", l.address)
	if err != nil {
		return false, badInput("--listen: %w", err)
	}
	return !address.IP.IsLoopback(), nil
}

// token reads the token's file; "" if there is none.
func (l listening) token() (string, error) {
	if l.tokenFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(l.tokenFile)
	if err != nil {
		return "", badInput("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", badInput("--token-file: %s is empty", l.tokenFile)
	}
	return token, nil
}

// tls reads the certificate; nil if there is none.
func (l listening) tls() (*tls.Config, error) {
	if (l.cert == "") != (l.key == "") {
		return nil, badInput("--tls-cert and --tls-key belong together")
	}
	if l.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(l.cert, l.key)
	if err != nil {
		return nil, badInput("--tls-cert, --tls-key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Options name the services. An option of zero means its default.
type Options struct {
	Addresses []string       // host:port of each service
	Token     string         // the token that the services expect
	TLS       *tls.Config    // nil means plain text
	Preset    sandbox.Preset // queue life, retries and batches; the caller applies its limits
	// Window bounds the calls outstanding on one node. The others wait here for the first node with room. Default
	// 4,096.
	Window int
	// Patience is how long calls wait while no node can be reached. Default half a minute.
	Patience time.Duration
	// Silence is how long a node may send nothing before it counts as lost. Default eight seconds, which is four of its
	// heartbeats.
	Silence time.Duration
	// Hedges is the share of calls that may be sent a second time, to another node, when their answer takes longer than
	// nearly all others. Default 0.05; a value below 0 means none.
	Hedges float64
}

func (o Options) orDefault() (Options, error) {
	if len(o.Addresses) == 0 {
		return o, errors.New("name the address of a sandbox service")
	}
	for _, address := range o.Addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return o, fmt.Errorf("address of a sandbox service: %w", err)
		}
	}
	if o.Preset.Name == "" {
		o.Preset = sandbox.DefaultPreset
	}
	if o.Window <= 0 {
		o.Window = 4096
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	if o.Silence <= 0 {
		o.Silence = 8 * time.Second
	}
	if o.Hedges == 0 {
		o.Hedges = 0.05
	}
	return o, nil
}

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/leased"
	"github.com/ropewalk/ropewalk/gpu/versions"
	"github.com/ropewalk/ropewalk/policy"
)

// hostVariable holds a host, as JSON, in the environment of its process.
const hostVariable = "ROPEWALK_TEST_RANKS_OF_A_HOST"

// What precedes the leader's invitation and the digest of its results in its output.
const invites, computes = "invitation: ", "computed: "

// host is one of two hosts that share a model.
type host struct {
	Name       string
	Address    string
	Encryption gang.Encryption
	Python     string
	Dir        string          // for the engine
	Model      string          // the leader's: a folder
	Invitation gang.Invitation // a member's
	Again      bool            // the leader computes again after a line of its standard input, and must fail
}

// TestRanksOfAHost is the process of a host in another test. It opens an engine, or takes a place in one, as a worker
// does.
func TestRanksOfAHost(t *testing.T) {
	text := os.Getenv(hostVariable)
	if text == "" {
		t.Skip("TestTensorsTakeTheTunnel starts it")
	}
	goOn := make(chan struct{})
	go func() { // it does not outlive the test that started it
		if _, err := os.Stdin.Read(make([]byte, 1)); err == nil {
			close(goOn)
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		os.Exit(1)
	}()
	var h host
	require.NoError(t, json.Unmarshal([]byte(text), &h))
	m, err := leased.Open(leased.Options{
		Python: func(context.Context, ...versions.Package) (string, error) { return h.Python, nil },
		Dir:    h.Dir, Threads: 1, Leases: h.Dir,
		Gangs: leased.Gangs{Host: h.Name, Address: h.Address, Encryption: h.Encryption, Summon: invite},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	if h.Model == "" {
		fmt.Println(m.Serve(t.Context(), h.Invitation, func(context.Context, int) (func(), error) {
			return func() {}, nil
		}))
		return
	}
	e, err := m.Open(t.Context(), leased.Settings{Devices: 1, Hosts: 2, Deterministic: true})
	require.NoError(t, err)
	require.NoError(t, e.Load(t.Context(), policy.RolePolicy, h.Model, false))
	request := policy.ForwardRequest{Role: policy.RolePolicy, Temperature: 1,
		Sequences: [][]int32{{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11}}, Outputs: policy.OutLogProb}
	out, err := e.Forward(t.Context(), request)
	require.NoError(t, err)
	numbers, err := json.Marshal(out.LogProbs)
	require.NoError(t, err)
	fmt.Printf("%s%x\n", computes, sha256.Sum256(numbers))
	if h.Again {
		<-goOn
		_, err := e.Forward(t.Context(), request)
		require.ErrorIs(t, err, policy.ErrLost)
		fmt.Println(err)
	}
	require.NoError(t, e.Close())
}

// invite prints the invitation for the test, which hands it to the other host.
func invite(_ context.Context, i gang.Invitation, _ int) (func(), error) {
	text, err := json.Marshal(i)
	fmt.Println(invites + string(text))
	return func() {}, err
}

package fleet

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/serve"
	"github.com/ropewalk/ropewalk/internal/testing/serverstest"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/scheduler"
	"github.com/ropewalk/ropewalk/policy/servers"
)

// serveFolder is the variable that makes this program a server of the model in a folder.
const serveFolder = "ROPEWALK_FLEET_TEST_FOLDER"

func TestMain(m *testing.M) {
	folder := os.Getenv(serveFolder)
	if folder == "" {
		os.Exit(m.Run())
	}
	if err := serveModel(folder, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveModel is `ropewalk serve` without the rest of the program.
func serveModel(folder, address string) error {
	engine, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		return err
	}
	if err := engine.Load(context.Background(), policy.RolePolicy, folder, false); err != nil {
		return err
	}
	m, err := serve.ReadModel(folder)
	if err != nil {
		return err
	}
	s, err := serve.New(serve.Options{Engine: engine.(policy.Batcher), Model: m, Name: "policy", Rows: atOnce})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return s.Serve(context.Background(), l, nil, time.Minute)
}

// themselves are servers that are this program.
func themselves(t *testing.T) program {
	self, err := os.Executable()
	require.NoError(t, err)
	return program{kind: servers.KindRopewalk, command: func(m model, port string) []string {
		return []string{"env", serveFolder + "=" + m.folder, self, "127.0.0.1:" + port}
	}}
}

func smallModel(t *testing.T) (model, []episode) {
	shape := benchShape
	shape.Hidden, shape.Layers, shape.Heads, shape.KVHeads, shape.HeadDim, shape.FFN = 64, 2, 2, 1, 32, 128
	m, err := writeModel(t.TempDir(), shape)
	require.NoError(t, err)
	return m, workload(60, shape.Vocab)
}

// oneEndEach checks that the scheduler has counted the end of each turn once. It counts none for a response that came
// whole when its server had been given up: the response is taken, and its repetition is withdrawn.
func oneEndEach(t *testing.T, turns int, stats scheduler.Stats) {
	require.Positive(t, stats.Repeated, "turns of the server that was killed")
	require.LessOrEqual(t, stats.Ended, turns)
	require.GreaterOrEqual(t, stats.Ended, turns-stats.Repeated)
}

// Of three server processes one is killed and one slowed to a tenth in mid-rollout. Nothing is lost, no finished turn
// is asked for again, and every token is that of the undisturbed rollout, whichever server generated it.
func TestOneKilledOneSlowed(t *testing.T) {
	m, work := smallModel(t)
	p := themselves(t)
	want, err := rollOut(t.Context(), p, m, work, false, false)
	require.NoError(t, err)
	require.True(t, want.Seeds)
	got, err := rollOut(t.Context(), p, m, work, false, true)
	require.NoError(t, err)
	require.Equal(t, want.Digest, got.Digest)
	require.Equal(t, want.Turns, got.Turns)
	oneEndEach(t, want.Turns, got.Stats)
	split, err := rollOut(t.Context(), p, m, work, true, true)
	require.NoError(t, err)
	require.Equal(t, want.Digest, split.Digest)
	t.Logf("%.2f s undisturbed, %.2f s by the scheduler, %.2f s by a static split; %+v", want.Seconds, got.Seconds,
		split.Seconds, got.Stats)
}

// The same with real llama-servers, whose draws are their own: every turn has its tokens, and none is taken twice.
func TestRealLlamaServersOneKilledOneSlowed(t *testing.T) {
	p := llamaServer(serverstest.Find(t))
	m, work := smallModel(t)
	turns := 0
	for _, e := range work {
		turns += len(e.turns)
	}
	got, err := rollOut(t.Context(), p, m, work, false, true)
	require.NoError(t, err)
	require.Equal(t, turns, got.Turns)
	oneEndEach(t, turns, got.Stats)
	split, err := rollOut(t.Context(), p, m, work, true, true)
	require.NoError(t, err)
	require.Equal(t, turns, split.Turns)
	t.Logf("%.2f s by the scheduler, %.2f s by a static split; %+v", got.Seconds, split.Seconds, got.Stats)
}

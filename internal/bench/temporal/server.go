package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/internal/testing/cluster"
)

const namespace = "ropewalk"

// server is a Temporal server with the settings of temporal.yaml.
type server struct {
	name     string
	dial     dialer
	server   *bench.Meter // processor time of the server
	database *bench.Meter // of PostgreSQL; nil: the database is part of the server
	stop     func()
}

var starts = map[string]func(context.Context, string, options) (*server, error){"postgres": onPostgres, "dev": dev}

// meterPeriod is the time between two readings of processor times.
const meterPeriod = 200 * time.Millisecond

// onPostgres starts Temporal's production server on PostgreSQL.
func onPostgres(ctx context.Context, folder string, o options) (*server, error) {
	program, err := stack.FindTool("temporal-server")
	if err != nil {
		return nil, fmt.Errorf("%w (make bench-temporal builds it)", err)
	}
	tool, err := stack.FindTool("temporal-sql-tool")
	if err != nil {
		return nil, err
	}
	conf, err := temporalconf.Default()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(15)
	if err != nil {
		return nil, err
	}
	database, err := cluster.StartPostgres(cluster.Here(), filepath.Join(folder, "postgres"), ports)
	if err != nil {
		return nil, err
	}
	end := func() { _ = database.Stop(syscall.SIGQUIT, time.Second) }
	t, err := cluster.StartTemporal(cluster.Here(), cluster.TemporalOptions{Server: program, SQLTool: tool,
		Folder: folder, Database: database, Shards: o.history, Dynamic: conf.DynamicConfig, Port: ports + 1})
	if err != nil {
		end()
		return nil, err
	}
	programs, err := cluster.FindPostgres()
	if err != nil {
		return nil, err
	}
	s := &server{name: "Temporal on PostgreSQL", dial: t.Dial,
		server: bench.WatchEvery(ctx, meterPeriod, program, "--root", folder),
		database: bench.WatchEvery(ctx, meterPeriod, filepath.Join(programs, "postgres"), "-D",
			filepath.Join(folder, "postgres", "data")),
		stop: func() { _ = t.Stop(syscall.SIGKILL, time.Second); end() }}
	return s, s.prepare(ctx, conf, t.Address)
}

// dev starts the development server, as the local stack does.
func dev(ctx context.Context, folder string, _ options) (*server, error) {
	program, err := stack.FindTool("temporal")
	if err != nil {
		return nil, err
	}
	conf, err := temporalconf.Default()
	if err != nil {
		return nil, err
	}
	port, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	args := []string{"server", "start-dev", "--db-filename", filepath.Join(folder, "temporal.db"), "--ip", "127.0.0.1",
		"--port", strconv.Itoa(port), "--headless", "--log-level", "error", "--disable-config-file",
		"--disable-config-env", "--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL"}
	for _, value := range conf.DynamicConfigFlags() {
		args = append(args, "--dynamic-config-value", value)
	}
	unit := cluster.StartUnit("temporal", func() *exec.Cmd { return exec.Command(program, args...) })
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s := &server{name: "development server on SQLite",
		dial: func(ctx context.Context, namespace string) (client.Client, error) {
			return client.DialContext(ctx, quiet(address, namespace))
		},
		server: bench.WatchEvery(ctx, meterPeriod, program, args[:4]...),
		stop:   func() { _ = unit.Stop(syscall.SIGKILL, time.Second) }}
	return s, s.prepare(ctx, conf, address)
}

func quiet(address, namespace string) client.Options {
	return client.Options{HostPort: address, Namespace: namespace,
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))}
}

// prepare creates the namespace and its search attributes.
func (s *server) prepare(ctx context.Context, conf temporalconf.Config, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		c, err := s.dial(ctx, namespace)
		if err == nil {
			err = stack.PrepareTemporal(ctx, c, quiet(address, namespace), conf)
			c.Close()
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			s.stop()
			return fmt.Errorf("prepare %s: %w", s.name, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// freePorts finds the first of n ports in a row that no one listens at.
func freePorts(n int) (int, error) {
	for first := 17000; first < 30000; first += n {
		free := true
		for port := first; port < first+n && free; port++ {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if free = err == nil; free {
				l.Close()
			}
		}
		if free {
			return first, nil
		}
	}
	return 0, fmt.Errorf("find %d free ports: there are none", n)
}

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
	address  string
	server   *bench.Meter // processor time of the server
	database *bench.Meter // of PostgreSQL; of nothing where the database is part of the server
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
		Folder: folder, Database: database, Shards: o.history, Dynamic: o.conf.DynamicConfig, Port: ports + 1})
	if err != nil {
		end()
		return nil, err
	}
	programs, err := cluster.FindPostgres()
	if err != nil {
		return nil, err
	}
	return &server{name: "Temporal on PostgreSQL", address: t.Address,
		server: bench.Watch(ctx, meterPeriod, program, "--root", folder),
		database: bench.Watch(ctx, meterPeriod, filepath.Join(programs, "postgres"), "-D",
			filepath.Join(folder, "postgres", "data")),
		stop: func() { _ = t.Stop(syscall.SIGKILL, time.Second); end() }}, nil
}

// dev starts the development server, as the local stack does.
func dev(ctx context.Context, folder string, o options) (*server, error) {
	program, err := stack.FindTool("temporal")
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
	for _, value := range o.conf.DynamicConfigFlags() {
		args = append(args, "--dynamic-config-value", value)
	}
	unit := cluster.StartUnit("temporal", func() *exec.Cmd { return exec.Command(program, args...) })
	return &server{name: "development server on SQLite", address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		server: bench.Watch(ctx, meterPeriod, program, args[:4]...), database: &bench.Meter{},
		stop: func() { _ = unit.Stop(syscall.SIGKILL, time.Second) }}, nil
}

func (s *server) options() client.Options {
	return client.Options{HostPort: s.address, Namespace: namespace,
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))}
}

// connect waits for the server, and creates the namespace and its search attributes.
func (s *server) connect(ctx context.Context, conf temporalconf.Config) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		c, err := client.DialContext(ctx, s.options())
		if err == nil {
			if err = stack.PrepareTemporal(ctx, c, s.options(), conf); err == nil {
				return c, nil
			}
			c.Close()
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("prepare %s: %w", s.name, err)
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

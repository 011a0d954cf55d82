package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/ropewalk/ropewalk/internal/testing/authority"
)

// Temporal is Temporal's production server, all of its services in one process, on PostgreSQL.
type Temporal struct {
	*Unit
	Address string
	connect client.ConnectionOptions
}

// TemporalOptions say how the server is set up.
type TemporalOptions struct {
	Server, SQLTool string // programs
	Folder          string // for its configuration; must exist
	Database        *Postgres
	Shards          int                  // of its history; cannot be changed later
	Dynamic         map[string]any       // settings by Temporal's names
	Authority       *authority.Authority // clients need certificates of it; nil: no TLS
	Port            int                  // of the front end; the next numbers are the other services'
}

// databases of Temporal, and the schemas that its own tool holds for them.
var databases = map[string]string{"temporal": "postgresql/v12/temporal",
	"temporal_visibility": "postgresql/v12/visibility"}

// StartTemporal creates the tables and starts the server.
func StartTemporal(m *Machine, o TemporalOptions) (*Temporal, error) {
	if err := o.createTables(m); err != nil {
		return nil, err
	}
	t := &Temporal{Address: net.JoinHostPort(m.IP, strconv.Itoa(o.Port))}
	secured, err := o.secure(m, t)
	if err != nil {
		return nil, err
	}
	if err := o.write("dynamic.yaml", o.dynamic()); err != nil {
		return nil, err
	}
	if err := o.write("cluster.yaml", o.configuration(m, t.Address, secured)); err != nil {
		return nil, err
	}
	t.Unit = StartUnit("temporal", func() *exec.Cmd {
		return m.Command(o.Server, "--root", o.Folder, "--config", ".", "--env", "cluster", "--allow-no-auth", "start")
	})
	return t, t.ready()
}

// createTables has Temporal's own tool create the databases and bring their schemas up to date.
func (o TemporalOptions) createTables(m *Machine) error {
	host, port, err := net.SplitHostPort(o.Database.Address)
	if err != nil {
		return fmt.Errorf("read PostgreSQL's address: %w", err)
	}
	for name, schema := range databases {
		for _, args := range [][]string{
			{"create-database"},
			{"setup-schema", "--version", "0.0"},
			{"update-schema", "--schema-name", schema},
		} {
			line := append([]string{o.SQLTool, "--plugin", "postgres12", "--endpoint", host, "--port", port, "--user",
				"temporal", "--database", name}, args...)
			cmd := m.Command(line...)
			cmd.Env = append(os.Environ(), "SQL_PASSWORD="+o.Database.Password)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("create Temporal's tables: %s: %w: %s", args[0], err, out)
			}
		}
	}
	return nil
}

type settings = map[string]any

// secure issues the server's certificate and the test's own, and returns the server's settings.
func (o TemporalOptions) secure(m *Machine, t *Temporal) (settings, error) {
	if o.Authority == nil {
		return settings{}, nil
	}
	own, err := o.Authority.Issue("temporal", m.IP)
	if err != nil {
		return nil, err
	}
	watcher, err := o.Authority.Issue("watcher")
	if err != nil {
		return nil, err
	}
	if t.connect.TLS, err = o.Authority.Client(watcher); err != nil {
		return nil, err
	}
	trust := settings{"serverName": "temporal", "rootCaFiles": []string{o.Authority.File}}
	group := settings{
		"server": settings{"certFile": own.Cert, "keyFile": own.Key, "requireClientAuth": true,
			"clientCaFiles": []string{o.Authority.File}},
		"client": trust,
	}
	return settings{"internode": group, "frontend": group,
		"systemWorker": settings{"certFile": own.Cert, "keyFile": own.Key, "client": trust}}, nil
}

// dynamic are the dynamic settings in the form of Temporal's file.
func (o TemporalOptions) dynamic() settings {
	out := settings{}
	for name, value := range o.Dynamic {
		out[name] = []settings{{"value": value, "constraints": settings{}}}
	}
	return out
}

func (o TemporalOptions) configuration(m *Machine, address string, secured settings) settings {
	store := func(database string, connections int) settings {
		return settings{"sql": settings{"pluginName": "postgres12", "databaseName": database,
			"connectAddr": o.Database.Address, "connectProtocol": "tcp", "user": "temporal",
			"password": o.Database.Password, "maxConns": connections, "maxIdleConns": connections,
			"maxConnLifetime": "1h"}}
	}
	services := settings{}
	for i, name := range []string{"frontend", "history", "matching", "worker"} {
		services[name] = settings{"rpc": settings{"grpcPort": o.Port + i, "membershipPort": o.Port + 10 + i,
			"bindOnIP": m.IP}}
	}
	return settings{
		"log": settings{"stdout": true, "level": "warn"},
		"persistence": settings{"defaultStore": "default", "visibilityStore": "visibility",
			"numHistoryShards": o.Shards,
			"datastores": settings{"default": store("temporal", 20),
				"visibility": store("temporal_visibility", 10)}},
		"global": settings{"membership": settings{"maxJoinDuration": "30s", "broadcastAddress": m.IP},
			"tls": secured},
		"services": services,
		"clusterMetadata": settings{"enableGlobalNamespace": false, "failoverVersionIncrement": 10,
			"masterClusterName": "active", "currentClusterName": "active",
			"clusterInformation": settings{"active": settings{"enabled": true, "initialFailoverVersion": 1,
				"rpcName": "frontend", "rpcAddress": address}}},
		"publicClient":        settings{"hostPort": address},
		"dynamicConfigClient": settings{"filepath": filepath.Join(o.Folder, "dynamic.yaml"), "pollInterval": "60s"},
	}
}

func (o TemporalOptions) write(name string, content settings) error {
	text, err := json.MarshalIndent(content, "", "  ") // JSON is YAML
	if err != nil {
		return fmt.Errorf("write Temporal's %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(o.Folder, name), text, 0o600); err != nil {
		return fmt.Errorf("write Temporal's configuration: %w", err)
	}
	return nil
}

// ready waits until the server's front end is healthy.
func (t *Temporal) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for {
		c, err := t.Dial(ctx, "temporal-system")
		if err == nil {
			c.Close()
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("Temporal does not answer after %s: %w: %s", startWithin, err, t.Log())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Dial connects to the server.
func (t *Temporal) Dial(ctx context.Context, namespace string) (client.Client, error) {
	return client.DialContext(ctx, client.Options{HostPort: t.Address, Namespace: namespace,
		ConnectionOptions: t.connect, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
}

package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Postgres is a PostgreSQL server with an empty database cluster. Its superuser is temporal.
type Postgres struct {
	*Unit
	Address  string
	Password string
	machine  *Machine
	programs string // the folder of its programs
}

// FindPostgres returns the folder of PostgreSQL's programs: the newest of Debian's, else that of the initdb on PATH.
func FindPostgres() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well formed
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("PostgreSQL's initdb is missing (Debian: apt-get install postgresql)")
	}
	return filepath.Dir(path), nil
}

// StartPostgres makes a database cluster in the folder, which must not exist, and starts a server for it. PostgreSQL
// does not run as root: root starts it as the user postgres.
func StartPostgres(m *Machine, folder string, port int) (*Postgres, error) {
	programs, err := FindPostgres()
	if err != nil {
		return nil, err
	}
	p := &Postgres{Address: fmt.Sprintf("%s:%d", m.IP, port), Password: rand.Text(), machine: m, programs: programs}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make PostgreSQL's folder: %w", err)
	}
	as, err := p.owner(folder)
	if err != nil {
		return nil, err
	}
	secret := filepath.Join(folder, "password")
	if err := os.WriteFile(secret, []byte(p.Password), 0o644); err != nil { // only the folder's owner gets there
		return nil, fmt.Errorf("write PostgreSQL's password: %w", err)
	}
	data := filepath.Join(folder, "data")
	command := func(program string, args ...string) *exec.Cmd {
		cmd := m.Command(slices.Concat(as, []string{filepath.Join(programs, program)}, args)...)
		cmd.Dir = folder
		return cmd
	}
	if out, err := command("initdb", "--pgdata", data, "--username", "temporal", "--pwfile", secret, "--auth",
		"scram-sha-256", "--encoding", "UTF8", "--locale", "C").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make PostgreSQL's files: %w: %s", err, out)
	}
	access := fmt.Sprintf("host all temporal %s/24 scram-sha-256\n", m.IP)
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(access), 0o644); err != nil {
		return nil, fmt.Errorf("let Temporal reach PostgreSQL: %w", err)
	}
	p.Unit = StartUnit("postgres", func() *exec.Cmd {
		return command("postgres", "-D", data, "-c", "listen_addresses="+m.IP, "-c", "port="+strconv.Itoa(port), "-c",
			"unix_socket_directories="+folder)
	})
	return p, p.ready()
}

// owner gives the folder to the user that the server runs as, and returns what precedes its command lines.
func (p *Postgres) owner(folder string) ([]string, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("find a user for PostgreSQL: %w", err)
	}
	uid, _ := strconv.Atoi(account.Uid) // numbers, on Unix
	gid, _ := strconv.Atoi(account.Gid)
	if err := os.Chown(folder, uid, gid); err != nil {
		return nil, fmt.Errorf("give PostgreSQL its folder: %w", err)
	}
	return []string{"setpriv", "--reuid", account.Uid, "--regid", account.Gid, "--clear-groups",
		"--pdeathsig", "KILL"}, nil // a change of the user clears that of the unit
}

// ready waits until the server accepts connections.
func (p *Postgres) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for {
		// A server that recovers from a crash listens and refuses connections.
		host, port := p.machine.IP, p.Address[len(p.machine.IP)+1:]
		if p.machine.Command(filepath.Join(p.programs, "pg_isready"), "-q", "-h", host, "-p", port).Run() == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("PostgreSQL does not answer after %s: %s", startWithin, p.Log())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// startWithin bounds the start of a server.
const startWithin = time.Minute

// Restart ends the server as a power cut does, leaves it down for a while, and starts it again.
func (p *Postgres) Restart(down time.Duration) error {
	if err := p.Stop(syscall.SIGQUIT, 10*time.Second); err != nil { // PostgreSQL's immediate shutdown
		return err
	}
	time.Sleep(down)
	p.Resume(nil)
	return p.ready()
}

package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Setup says what a server has beyond its root account.
type Setup struct {
	Accounts map[string]string // access key to secret; a bucket policy says what they may do
	Versions bool              // buckets can keep versions and lock objects

	AccountsFolder string // holds accounts as the server keeps them (users.json), instead of Accounts
}

// Server is a running S3 server over an empty folder.
type Server struct {
	Endpoint  string // URL
	AccessKey string
	SecretKey string
	Folder    string // holds its objects as plain files, one folder per bucket
}

// startWithin bounds the wait for the server's first answer.
const startWithin = 20 * time.Second

// Versitygw starts a real S3 server that runs until the test ends. If the program is missing, the test is skipped, or
// fails if ROPEWALK_REQUIRE_SERVERS is set.
func Versitygw(t testing.TB) Server {
	t.Helper()
	return VersitygwWith(t, Setup{})
}

// VersitygwWith starts a server like Versitygw, with accounts or versions.
func VersitygwWith(t testing.TB, setup Setup) Server {
	t.Helper()
	program, err := findVersitygw()
	if err != nil {
		if os.Getenv("ROPEWALK_REQUIRE_SERVERS") != "" {
			t.Fatalf("ROPEWALK_REQUIRE_SERVERS is set, but %v", err)
		}
		t.Skip(err)
	}
	s := Server{AccessKey: "test-access", SecretKey: "test-secret-4711", Folder: t.TempDir()}
	address := freeAddress(t)
	s.Endpoint = "http://" + address
	log, err := os.Create(filepath.Join(t.TempDir(), "versitygw.log"))
	require.NoError(t, err)
	args := []string{"--quiet", "--port", address}
	if len(setup.Accounts) > 0 {
		setup.AccountsFolder = accountsFolder(t, setup.Accounts)
	}
	if setup.AccountsFolder != "" {
		args = append(args, "--iam-dir", setup.AccountsFolder)
	}
	args = append(args, "posix")
	if setup.Versions {
		args = append(args, "--versioning-dir", t.TempDir())
	}
	if !xattrs(s.Folder) {
		args = append(args, "--sidecar", t.TempDir())
	}
	command := exec.Command(program, append(args, s.Folder)...)
	command.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill() // its folder is removed with the test, so a clean end gains nothing
		_ = command.Wait()
		_ = log.Close()
	})
	waitFor(t, address, log.Name())
	return s
}

// accountsFolder writes accounts as the server keeps them.
func accountsFolder(t testing.TB, accounts map[string]string) string {
	t.Helper()
	folder, listed := t.TempDir(), map[string]any{}
	for key, secret := range accounts {
		listed[key] = map[string]any{"access": key, "secret": secret, "role": "user"}
	}
	text, err := json.Marshal(map[string]any{"accessAccounts": listed})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "users.json"), text, 0o600))
	return folder
}

// findVersitygw searches the PATH, then .tools in the repository's root.
func findVersitygw() (string, error) {
	if program, err := exec.LookPath("versitygw"); err == nil {
		return program, nil
	}
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find versitygw: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(folder) == folder {
			return "", fmt.Errorf("versitygw is not on the PATH")
		}
		folder = filepath.Dir(folder)
	}
	program := filepath.Join(folder, ".tools", "versitygw")
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("versitygw is neither on the PATH nor in .tools (make tools builds it)")
	}
	return program, nil
}

func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// xattrs reports whether files in the folder can have the extended attributes that hold the server's metadata.
func xattrs(folder string) bool {
	name := filepath.Join(folder, ".xattr-probe")
	if os.WriteFile(name, nil, 0o600) != nil {
		return false
	}
	defer os.Remove(name)
	return syscall.Setxattr(name, "user.probe", []byte("1"), 0) == nil
}

func waitFor(t testing.TB, address, log string) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		if ctx.Err() != nil {
			said, _ := os.ReadFile(log)
			t.Fatalf("versitygw does not answer at %s: %v; it said: %s", address, err, said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

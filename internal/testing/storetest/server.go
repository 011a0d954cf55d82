package storetest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/servertest"
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

// Versitygw starts a real S3 server that runs until the test ends. If the program is missing, the test is skipped, or
// fails if ROPEWALK_REQUIRE_SERVERS is set.
func Versitygw(t testing.TB) Server {
	t.Helper()
	return VersitygwWith(t, Setup{})
}

// VersitygwWith starts a server like Versitygw, with accounts or versions.
func VersitygwWith(t testing.TB, setup Setup) Server {
	t.Helper()
	program, err := exec.LookPath("versitygw")
	if err != nil {
		program = servertest.Find(t, "", "ROPEWALK_REQUIRE_SERVERS", "versitygw", "make tools")
	}
	s := Server{AccessKey: "test-access", SecretKey: "test-secret-4711", Folder: t.TempDir()}
	var accounts, folders []string
	if len(setup.Accounts) > 0 {
		setup.AccountsFolder = accountsFolder(t, setup.Accounts)
	}
	if setup.AccountsFolder != "" {
		accounts = []string{"--iam-dir", setup.AccountsFolder}
	}
	if setup.Versions {
		folders = append(folders, "--versioning-dir", t.TempDir())
	}
	if !xattrs(s.Folder) {
		folders = append(folders, "--sidecar", t.TempDir())
	}
	keys := []string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey}
	p := servertest.Launch(t, "versitygw", "", keys, func(port string) []string {
		return slices.Concat([]string{program, "--quiet", "--port", "127.0.0.1:" + port}, accounts,
			[]string{"posix"}, folders, []string{s.Folder})
	})
	p.Wait(t)
	s.Endpoint = p.URL
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

// xattrs reports whether files in the folder can have the extended attributes that hold the server's metadata.
func xattrs(folder string) bool {
	name := filepath.Join(folder, ".xattr-probe")
	if os.WriteFile(name, nil, 0o600) != nil {
		return false
	}
	defer os.Remove(name)
	return syscall.Setxattr(name, "user.probe", []byte("1"), 0) == nil
}

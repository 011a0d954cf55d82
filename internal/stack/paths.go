package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/cause"
)

// maxSocketPath is the longest path that sockaddr_un holds on Linux: 108 bytes with the final zero.
const maxSocketPath = 107

// layout holds the names of the files under the root folder.
type layout struct{ root string }

func (l layout) in(name string) string  { return filepath.Join(l.root, name) }
func (l layout) logs() string           { return l.in("logs") }
func (l layout) log(part string) string { return filepath.Join(l.logs(), part+".log") }
func (l layout) state() string          { return l.in("stack.json") }    // what runs now; see state
func (l layout) startLock() string      { return l.in("start.lock") }    // held while a command starts a supervisor
func (l layout) aliveLock() string      { return l.in("stack.lock") }    // held by the supervisor all its life
func (l layout) credentials() string    { return l.in("s3.json") }       // keys of the local S3 server, mode 0600
func (l layout) database() string       { return l.in("temporal.db") }   // SQLite
func (l layout) fair() string           { return l.in("temporal.fair") } // its queues were made with fairness
// one folder per bucket, one plain file per object
func (l layout) s3() string { return l.in("s3") }

// s3Sidecar holds the metadata of objects if the file system of s3() has no extended attributes. versitygw refuses a
// name that begins with the name of s3().
func (l layout) s3Sidecar() string { return l.in("objectmeta") }

func (l layout) held() string            { return l.in("held") } // notes of runs that commands follow; see Held
func (l layout) readyFile() string       { return l.in("worker.ready") }
func (l layout) supervisorLog() string   { return l.log("supervisor") }
func (l layout) defaultSocket() string   { return l.in("stack.sock") }
func (l layout) shortSocketName() string { return hexDigest(l.root)[:16] }

func hexDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// newSocket returns the path that a supervisor listens on: inside the root or, if that path is too long for a socket,
// in a private folder under the system's temporary folder.
func (l layout) newSocket() (string, error) {
	if p := l.defaultSocket(); len(p) <= maxSocketPath {
		return p, nil
	}
	for _, base := range []string{os.TempDir(), "/tmp"} {
		dir := filepath.Join(base, fmt.Sprintf("ropewalk-%d-%s", os.Getuid(), l.shortSocketName()))
		path := filepath.Join(dir, "stack.sock")
		if len(path) > maxSocketPath {
			continue
		}
		if err := privateFolder(dir); err != nil {
			return "", err
		}
		return path, nil
	}
	return "", fmt.Errorf("find a folder for the stack's socket: %s is too long, and so is %s", l.defaultSocket(),
		os.TempDir())
}

// privateFolder makes dir for this user only. It refuses a folder that another user made there first.
func privateFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make the folder of the stack's socket: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check the folder of the stack's socket: %w", err)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !fi.IsDir() || fi.Mode().Perm()&0o077 != 0 || !ok ||
		int(st.Uid) != os.Getuid() {
		return fmt.Errorf("use %s for the stack's socket: it must be a folder of mode 0700 that you own", dir)
	}
	return nil
}

// state is the content of stack.json: what runs now. It holds no secrets. Commands take the socket from it; the rest is
// for people.
type state struct {
	PID       int            `json:"pid"` // of the supervisor
	Socket    string         `json:"socket"`
	Addresses Addresses      `json:"addresses"`
	Parts     map[string]int `json:"parts"` // name to process id
}

func (l layout) readState() (state, error) {
	var s state
	text, err := os.ReadFile(l.state())
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("parse %s: %w", l.state(), err)
	}
	return s, nil
}

func (l layout) writeState(s state) error {
	s.Addresses.AccessKey, s.Addresses.SecretKey = "", ""
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode stack state: %w", err)
	}
	return writeFile(l.state(), append(text, '\n'))
}

// writeFile replaces a private file atomically, so that no reader sees half of it.
func writeFile(path string, text []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, cause.Of(err))
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, cause.Of(err))
	}
	return nil
}

// socket returns the path that the running supervisor, if any, listens on.
func (l layout) socket() string {
	if s, err := l.readState(); err == nil && s.Socket != "" {
		return s.Socket
	}
	return l.defaultSocket()
}

// minFree is the minimum of free space, in bytes, that is needed to start.
const minFree = 64 << 20

// checkSpace returns an error if the disk is full: the servers would fail in obscure ways.
func (l layout) checkSpace() error {
	free, err := freeBytes(l.root)
	if err == nil && free < minFree {
		return fmt.Errorf("start the stack in %s: disk full: %d MiB are free, at least %d MiB are needed: make room, "+
			"or set ROPEWALK_HOME to another disk",
			l.root, free>>20, minFree>>20)
	}
	return err
}

func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("determine the free space in %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}

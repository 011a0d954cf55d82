package stack

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// layout holds the names of the files under the root folder.
type layout struct{ root string }

func (l layout) in(name string) string      { return filepath.Join(l.root, name) }
func (l layout) logs() string               { return l.in("logs") }
func (l layout) log(server string) string   { return filepath.Join(l.logs(), server+".log") }
func (l layout) supervisorLog() string      { return l.log("supervisor") } // all supervisors append to it
func (l layout) credentials() string        { return l.in("s3.json") }     // keys of the local S3 server, mode 0600
func (l layout) database() string           { return l.in("temporal.db") } // SQLite
func (l layout) fair() string               { return l.in("temporal.fair") }
func (l layout) followed() string           { return l.in("held") } // notes of runs that commands follow; see Held
func (l layout) readyFile() string          { return l.in("worker.ready") }
func (l layout) servers() string            { return l.in("servers") }
func (l layout) state(server string) string { return filepath.Join(l.servers(), server+".json") }

// s3 holds one folder per bucket, and one plain file per object.
func (l layout) s3() string { return l.in("s3") }

// s3Sidecar holds the metadata of objects if the file system of s3() has no extended attributes. versitygw refuses a
// name that begins with the name of s3().
func (l layout) s3Sidecar() string { return l.in("objectmeta") }

// alive is owned by a server's supervisor all its life, users is shared by the commands that use the server, and
// starting is owned by a command that starts a supervisor.
func (l layout) alive(server string) string    { return filepath.Join(l.servers(), server+".lock") }
func (l layout) users(server string) string    { return filepath.Join(l.servers(), server+".users") }
func (l layout) starting(server string) string { return filepath.Join(l.servers(), server+".starting") }

// minFree is the minimum of free space, in bytes, that is needed to start.
var minFree uint64 = 64 << 20

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

package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// DamagedError says that the database of the local Temporal cannot be used. It holds no part of the record:
// ResetTemporal moves it aside, and `ropewalk resume` continues runs from their last committed stage.
type DamagedError struct{ text string }

// Error names the file, the damage and the remedy.
func (e *DamagedError) Error() string { return e.text }

func (l layout) damaged(why string) error {
	return &permanentError{&DamagedError{fmt.Sprintf("Temporal's database %s is damaged (%s). "+
		"It holds no part of the record, only Temporal's own state of runs: "+
		"`ropewalk up --reset-temporal` moves it aside and starts with an empty one, and `ropewalk resume RUN` "+
		"continues from the run's last committed stage",
		l.database(), why)}}
}

// signsOfDamage are SQLite's messages about a database that it cannot read, as Temporal logs them.
var signsOfDamage = []string{
	"file is not a database", "database disk image is malformed", "SQL logic error: no such table",
}

// signOfStall is what Temporal logs for every query once its only connection to SQLite stays interrupted: a query that
// exceeded its deadline was interrupted while another statement was still open, and SQLite then interrupts every later
// statement too. A restart opens a new connection and loses nothing.
const signOfStall = "Failed to start transaction. Error: interrupted (9)"

// diagnose finds SQLite's messages about a damaged database in Temporal's log.
func (t *temporalServer) diagnose(text string) error {
	for _, sign := range signsOfDamage {
		if strings.Contains(text, sign) {
			return t.files.damaged(sign)
		}
	}
	return nil
}

// checkDatabase returns an error if the file does not begin like a database. A full disk or a loss of power can leave
// an empty file: Temporal would take it for a complete database and not make its tables.
func (l layout) checkDatabase() error {
	f, err := os.Open(l.database())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check Temporal's database: %w", err)
	}
	defer f.Close()
	header := make([]byte, 16)
	switch n, err := io.ReadFull(f, header); {
	case n == 0 && errors.Is(err, io.EOF):
		return l.damaged("the file is empty")
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return l.damaged(err.Error())
	case !bytes.Equal(header, []byte("SQLite format 3\x00")):
		return l.damaged("file is not a database")
	}
	return nil
}

// ResetTemporal moves the database of the local Temporal aside, in the same folder, and returns its new name, or "" if
// there is none. It deletes nothing. It fails while the stack runs.
func ResetTemporal(ctx context.Context, opts Options) (moved string, err error) {
	opts, err = opts.withDefaults()
	if err != nil {
		return "", err
	}
	l := layout{opts.Root}
	if _, err := os.Lstat(l.database()); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err := l.makeFolders(opts.Progress); err != nil {
		return "", fmt.Errorf("make the state folder: %w", err)
	}
	// A supervisor that is stopping gets some time to finish.
	wait, cancel := context.WithTimeout(ctx, times.stopTimeout)
	defer cancel()
	alive, err := takeLock(wait, l.alive(temporalName), owned)
	if errors.Is(err, errLocked) {
		return "", fmt.Errorf("move %s aside: the stack in %s runs: end the commands that use it first", l.database(),
			l.root)
	}
	if err != nil {
		return "", fmt.Errorf("move %s aside: %w", l.database(), err)
	}
	defer alive.close()
	return l.setAsideDatabase(time.Now())
}

// setAsideDatabase renames the database and its journals, the journals first: a journal that stayed behind would be
// taken for the next database's.
func (l layout) setAsideDatabase(now time.Time) (string, error) {
	to := l.database() + ".aside-" + now.UTC().Format("20060102-150405.000")
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		if err := os.Rename(l.database()+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move Temporal's database aside: %w", err)
		}
	}
	return to, nil
}

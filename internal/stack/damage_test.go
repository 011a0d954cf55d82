package stack

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A damaged database is reported immediately, with the remedy. After it is moved aside, its bytes are unchanged and the
// stack starts.
func TestDamagedDatabase(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	o := freePorts(t, testOptions(root))
	o.Need = Need{Temporal: true}
	first, _ := join(t, root, func(o *Options) { o.Need = Need{Temporal: true} })
	require.NoError(t, first.Close())
	db := layout{root}.database()
	whole, err := os.ReadFile(db)
	require.NoError(t, err)
	require.Greater(t, len(whole), 100) // most of it is still in the write-ahead log
	for name, damage := range map[string]func() []byte{
		"empty":           func() []byte { return nil },
		"short":           func() []byte { return whole[:10] },
		"no header":       func() []byte { return append(make([]byte, 100), whole[100:]...) },
		"without its log": func() []byte { return whole },
		"page overwritten": func() []byte {
			return append(append([]byte(nil), whole[:16]...),
				bytes.Repeat([]byte{0xa5}, 4080)...)
		},
	} {
		damaged := damage()
		require.NoError(t, os.WriteFile(db, damaged, 0o600))
		for _, suffix := range []string{"-wal", "-shm"} { // it would repair the pages that it covers
			require.NoError(t, os.RemoveAll(db+suffix))
		}
		_, err := Join(context.Background(), o)
		var e *DamagedError
		require.ErrorAs(t, err, &e, name)
		require.ErrorContains(t, err, "Temporal's database "+db+" is damaged", name)
		require.ErrorContains(t, err, "`ropewalk up --reset-temporal` moves it aside", name)
		moved, err := ResetTemporal(context.Background(), o)
		require.NoError(t, err, name)
		require.NoFileExists(t, db)
		require.FileExists(t, moved, "%s: nothing is deleted", name)
	}
	moved, err := ResetTemporal(context.Background(), o)
	require.NoError(t, err)
	require.Empty(t, moved, "there is none")
	again, _ := join(t, root, func(o *Options) { o.Need = Need{Temporal: true} })
	checkNamespace(t, again.Addresses())
	defer func(was time.Duration) { times.stopTimeout = was }(times.stopTimeout)
	times.stopTimeout = 50 * time.Millisecond
	_, err = ResetTemporal(context.Background(), Options{Root: root})
	require.ErrorContains(t, err, "runs: end the commands that use it first")
	require.FileExists(t, db)
}

// The journals are moved with the database: one that stayed would be taken for the next database's.
func TestJournalsAreSetAside(t *testing.T) {
	l := layout{t.TempDir()}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		require.NoError(t, os.WriteFile(l.database()+suffix, []byte(suffix+"."), 0o600))
	}
	to, err := l.setAsideDatabase(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	require.NoError(t, err)
	require.Equal(t, l.database()+".aside-20260102-030405.000", to)
	left, err := filepath.Glob(l.database() + "*")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{to, to + "-wal", to + "-shm"}, left)
}

// A server whose connection to its database stays interrupted is restarted; one that recovers is not.
func TestStallIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(path)
	require.NoError(t, err)
	defer log.Close()
	looks := func(w *logWatch, lines ...string) (err error) {
		for _, line := range lines {
			_, err := log.WriteString(line)
			require.NoError(t, err)
			if err := w.look(); err != nil {
				return err
			}
		}
		return nil
	}
	const fine, bad = "level=WARN msg=\"all is well\"\n", "error=\"UpdateTaskQueue failed. " + signOfStall + "\"\n"
	w := &logWatch{path: path, stall: stall{sign: signOfStall}}
	for range 3 { // interrupted for a while, then at work again
		require.NoError(t, looks(w, slices.Repeat([]string{bad}, stallLooks-1)...))
		require.NoError(t, looks(w, slices.Repeat([]string{fine, ""}, stallPause)...))
	}
	err = looks(w, slices.Repeat([]string{bad, fine}, stallLooks)...)
	require.EqualError(t, err, "has not worked for 20s: its log repeats \""+signOfStall+"\"")
}

// Messages of a running server about its database are found, also across two reads of the log.
func TestSignsOfDamage(t *testing.T) {
	l := layout{t.TempDir()}
	server := &temporalServer{supervisor: &supervisor{files: l}}
	require.NoError(t, server.diagnose("level=WARN msg=\"slow\""))
	path := filepath.Join(l.root, "temporal.log")
	w := &logWatch{path: path, diagnose: server.diagnose}
	require.NoError(t, w.look(), "no log yet")
	require.NoError(t, os.WriteFile(path, []byte("error: database disk im"), 0o600))
	require.NoError(t, w.look())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString("age is malformed (11)\n")
	require.NoError(t, err)
	var damaged *DamagedError
	require.True(t, errors.As(w.look(), &damaged))
}

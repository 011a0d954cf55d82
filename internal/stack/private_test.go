package stack

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Everything that the stack makes is accessible to this user only, whatever the umask. Files that an earlier version
// made accessible to all are restricted, with a notice.
func TestStateIsPrivate(t *testing.T) {
	needServers(t)
	defer syscall.Umask(syscall.Umask(0))
	root := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "s3", "ropewalk"), 0o755))
	require.NoError(t, os.Chmod(root, 0o777))
	l, progress := join(t, root, func(o *Options) { o.Need = Need{Temporal: true, S3: true} })
	require.NoError(t, openStore(t, l.Addresses()).PutIfAbsent(t.Context(), "runs/a", []byte("x")))
	require.Contains(t, progress.text(), "note: other users could reach ., s3 in "+root)
	for _, path := range []string{".", "logs", "logs/temporal.log", "logs/s3.log", "s3", "s3.json", "servers/s3.json",
		"temporal.db", "temporal.db-wal"} {
		fi, err := os.Stat(filepath.Join(root, path))
		require.NoError(t, err)
		require.Zero(t, fi.Mode().Perm()&0o077, "%s has mode %s", path, fi.Mode())
	}
	fi, err := os.Stat(filepath.Join(root, "s3", "ropewalk", "runs"))
	require.NoError(t, err)
	require.Zero(t, fi.Mode().Perm()&0o077)
}

// A folder that also holds other files keeps its permissions; the stack's own files in it do not.
func TestStrangersFolderKeepsItsRights(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(root, "homework"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(root, "logs"), 0o755))
	var said []string
	require.NoError(t, layout{root}.makeFolders(func(line string) { said = append(said, line) }))
	require.Equal(t, []string{"note: other users could reach logs in " + root + "; now only you can"}, said)
	for name, want := range map[string]os.FileMode{".": 0o755, "homework": 0o755, "logs": 0o700} {
		fi, err := os.Stat(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, want, fi.Mode().Perm(), name)
	}
	said = nil
	require.NoError(t, layout{root}.makeFolders(func(line string) { said = append(said, line) }))
	require.Empty(t, said, "it is told once")
}

// A program in .tools runs only if no other user could have put it there.
func TestToolsOfOthersAreRefused(t *testing.T) {
	base := t.TempDir()
	if err := replaceable(base); err != nil {
		t.Skip(err) // every case would be refused
	}
	t.Setenv("PATH", t.TempDir())
	tools := filepath.Join(base, "above", ".tools")
	deep := filepath.Join(base, "above", "project", "deep")
	tool := filepath.Join(tools, "temporal")
	require.NoError(t, os.MkdirAll(tools, 0o755))
	require.NoError(t, os.MkdirAll(deep, 0o755))
	require.NoError(t, os.WriteFile(tool, []byte("#!/bin/sh\n"), 0o755))
	t.Chdir(deep)
	found, err := FindTool("temporal")
	require.NoError(t, err)
	require.Equal(t, tool, found)
	found, err = InTools("sandbox-python/bin/python")
	require.NoError(t, err)
	require.Empty(t, found, "it is not made yet")
	made := filepath.Join(tools, "sandbox-python", "bin", "python")
	require.NoError(t, os.MkdirAll(filepath.Dir(made), 0o755))
	require.NoError(t, os.WriteFile(made, []byte("#!/bin/sh\n"), 0o755))
	found, err = InTools("sandbox-python/bin/python")
	require.NoError(t, err)
	require.Equal(t, made, found)

	for _, path := range []string{tool, tools, filepath.Dir(tools)} {
		require.NoError(t, os.Chmod(path, 0o757))
		_, err = FindTool("temporal")
		require.ErrorContains(t, err,
			path+" is writable by every user: take the rights of others away, or put temporal on PATH")
		require.NoError(t, os.Chmod(path, 0o755))
	}
	require.NoError(t, os.Chmod(filepath.Dir(tools), 0o777|os.ModeSticky))
	_, err = FindTool("temporal")
	require.NoError(t, err, "in a sticky folder others can replace nothing")

	real := filepath.Join(base, "real")
	require.NoError(t, os.Rename(tools, real))
	require.NoError(t, os.Symlink(real, tools))
	_, err = FindTool("temporal")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(real, 0o757))
	_, err = FindTool("temporal")
	require.ErrorContains(t, err, real+" is writable by every user", "behind a link")
	require.NoError(t, os.Chmod(real, 0o755))

	if os.Getuid() != 0 {
		return // only root can give files away
	}
	require.NoError(t, os.Chown(filepath.Join(real, "temporal"), 1234, 1234))
	_, err = FindTool("temporal")
	require.ErrorContains(t, err, "belongs to another user (id 1234)")
}

func TestWriters(t *testing.T) {
	own, other := &syscall.Stat_t{Uid: 1000, Gid: 1000}, &syscall.Stat_t{Uid: 1000, Gid: 50}
	require.Empty(t, writers(0o775, own), "the user's own group")
	require.Equal(t, "group 50", writers(0o775, other))
	require.Equal(t, "every user", writers(0o777, own))
	require.Empty(t, writers(os.ModeDir|os.ModeSticky|0o777, other))
	require.Equal(t, "every user", writers(os.ModeSticky|0o777, other), "sticky means nothing for files")
}

func TestPeopleOfAMachine(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give folders away")
	}
	homes, sessions := t.TempDir(), t.TempDir()
	require.Equal(t, 0, countPeople(0, homes, sessions))
	require.Equal(t, 1, countPeople(1000, homes, sessions))
	for name, id := range map[string]int{"ann": 1000, "ben": 1001, "lost+found": 0} {
		require.NoError(t, os.Mkdir(filepath.Join(homes, name), 0o755))
		require.NoError(t, os.Chown(filepath.Join(homes, name), id, id))
	}
	require.Equal(t, 2, countPeople(1000, homes, sessions))
	require.NoError(t, os.Mkdir(filepath.Join(sessions, "1002"), 0o755))
	require.Equal(t, 3, countPeople(0, homes, sessions))
	require.Equal(t, 1, countPeople(1000, "/none", "/none"))
}

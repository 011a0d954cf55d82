package zygote

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

func TestGroupFolders(t *testing.T) {
	const hybrid = "30 20 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"31 20 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n" +
		"32 20 0:28 /docker/ab /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n" +
		"33 20 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
		"34 20 0:30 / /dev/shm rw - tmpfs tmpfs rw\n"
	const unified = "33 20 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct {
		name, mounts, memberships, offered string
		want                               map[string]string
	}{
		{"version 1", hybrid, "4:memory:/a/b\n3:cpu:/\n2:pids:/docker/ab/c\n0::/\n", "",
			map[string]string{"memory": "/sys/fs/cgroup/memory/a/b", "cpu": "/sys/fs/cgroup/cpu",
				"pids": "/sys/fs/cgroup/pids/c"}},
		{"version 2, delegated", unified, "0::/user.slice/x\n", "cpu memory pids\n",
			map[string]string{"memory": "/sys/fs/cgroup/user.slice/x", "cpu": "/sys/fs/cgroup/user.slice/x",
				"pids": "/sys/fs/cgroup/user.slice/x"}},
		{"version 2, not delegated", unified, "0::/user.slice/x\n", "", map[string]string{}},
		{"none", "34 20 0:30 / /dev/shm rw - tmpfs tmpfs rw\n", "", "", map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := groupFolders(c.mounts, c.memberships, func(file string) string {
				require.True(t, strings.HasSuffix(file, "/cgroup.subtree_control"), file)
				return c.offered
			})
			for _, name := range []string{"memory", "pids"} {
				require.Equal(t, c.want[name], got[name], name)
			}
		})
	}
}

// groupPlaces returns where groups can be created. If there is no such place, it skips the test.
func groupPlaces(t *testing.T) (places []GroupPlace) {
	t.Helper()
	for _, p := range GroupPlaces() {
		if p.Folder != "" {
			places = append(places, p)
		}
	}
	if len(places) == 0 {
		t.Skipf("no control groups can be made: %+v", GroupPlaces())
	}
	return places
}

// The groups of a fork server hold it and all its sessions, bound them, and are removed with them.
func TestSessionsHaveGroups(t *testing.T) {
	places := groupPlaces(t)
	everySession(t, func(t *testing.T, s *Sessions) {
		one, other := newSessionOf(t, s, quick), newSessionOf(t, s, quick)
		name := fmt.Sprintf("ropewalk-%d-%d", os.Getpid(), one.server.command.Process.Pid)
		for _, p := range places {
			if p.Controller == "freezer" {
				continue // sessions are not set aside
			}
			for _, s := range []*session{one, other} {
				folder := filepath.Join(p.Folder, name)
				if p.Controller == "memory" { // there each session has a group of its own below the fork server's
					folder = s.memory
					require.Equal(t, filepath.Join(p.Folder, name), filepath.Dir(folder))
				}
				text, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
				require.NoError(t, err, p.Controller)
				require.Contains(t, strings.Fields(string(text)), fmt.Sprint(interpreterOf(s)), p.Controller)
			}
		}
		own := one.memory
		require.NoError(t, one.Close())
		if own != "" {
			require.NoDirExists(t, own)
		}
		require.NoError(t, other.Close())
		require.NoError(t, s.Close())
		for _, p := range places {
			require.NoDirExists(t, filepath.Join(p.Folder, name))
		}
	})
}

func TestBoundsOfSessions(t *testing.T) {
	for i, want := range []string{"pids", "memory"} {
		require.Equal(t, want, sessionBounds()[i].name)
	}
	memory, err := strconv.ParseInt(sessionBounds()[1].limits["memory.max"], 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, memory, int64(groupMemory))
	require.Equal(t, "40", callBounds()[0].limits["pids.max"])
	require.Equal(t, "8192", sessionBounds()[0].limits["pids.max"])
}

// A zygote's groups hold it and are removed with it.
func TestZygotesHaveGroupsOfTheirOwn(t *testing.T) {
	places := groupPlaces(t)
	e := open(t, Options{Workers: 1, MinTier: sandbox.TierRlimits})
	mine := fmt.Sprintf("ropewalk-%d-*", os.Getpid())
	for _, p := range places {
		found, err := filepath.Glob(filepath.Join(p.Folder, mine))
		require.NoError(t, err)
		require.NotEmpty(t, found, p.Controller)
		members, err := os.ReadFile(filepath.Join(found[0], "cgroup.procs"))
		require.NoError(t, err)
		require.NotEmpty(t, strings.TrimSpace(string(members)), p.Controller)
	}
	require.NoError(t, e.Close())
	for _, p := range places {
		found, err := filepath.Glob(filepath.Join(p.Folder, mine))
		require.NoError(t, err)
		require.Empty(t, found, p.Controller)
	}
}

// Groups whose owner has ended are removed. Groups of running owners, young groups and other groups stay.
func TestLeftGroups(t *testing.T) {
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	dead := gone.Process.Pid
	make := func(name string) string {
		t.Helper()
		folder := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(folder, name), 0o755))
		return folder
	}
	for _, c := range []struct {
		name  string
		young time.Duration
		stays bool
	}{
		{fmt.Sprintf("ropewalk-%d-7", dead), 0, false},
		{fmt.Sprintf("ropewalk-probe-%d", dead), 0, false},
		{fmt.Sprintf("ropewalk-%d-7", dead), time.Minute, true},
		{fmt.Sprintf("ropewalk-%d-7", os.Getpid()), 0, true},
		{fmt.Sprintf("other-%d-7", dead), 0, true},
	} {
		folder := make(c.name)
		removeLeftIn(folder, c.young)
		_, err := os.Stat(filepath.Join(folder, c.name))
		require.Equal(t, c.stays, err == nil, "%s, %s: %v", c.name, c.young, err)
	}
	for _, p := range groupPlaces(t) { // the kernel does not remove a group that holds a process
		group, err := makeGroup(p.Folder, callBounds()[0], fmt.Sprintf("ropewalk-%d-8", dead))
		require.NoError(t, err)
		held := exec.Command("sleep", "60")
		require.NoError(t, held.Start())
		defer func() { _ = held.Process.Kill(); _ = held.Wait(); _ = os.Remove(group) }()
		require.NoError(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(held.Process.Pid)),
			0))
		removeLeftIn(p.Folder, 0)
		require.DirExists(t, group)
	}
}

package probe

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// unprivileged is the user that calls run as if the sandbox runs as root.
const unprivileged = 65534

func lines(landlockVersion func() (int, error)) []Line {
	out := []Line{
		tried("user namespace", namespace(0), "no tier full: the other namespaces need it"),
		tried("mount namespace", namespace(unix.CLONE_NEWNS), "no tier full: calls see the host's files by name"),
		tried("process namespace", namespace(unix.CLONE_NEWPID),
			"no tier full: calls cannot start processes, since killing could not reach them all"),
		tried("network namespace", namespace(unix.CLONE_NEWNET),
			"no tier full; the filter alone keeps calls off the network"),
		tried("IPC namespace", namespace(unix.CLONE_NEWIPC), "no tier full; the filter alone refuses shared memory"),
		tried("host name namespace", namespace(unix.CLONE_NEWUTS), "no tier full: calls see the host's name"),
		landlock(landlockVersion),
		tried("seccomp filter", filter(), "no tier above rlimits: calls can make any system call"),
		tried("no_new_privs", noNewPrivileges(), "no tier without root: set-user-id programs would work"),
		tried("tmpfs", fileSystem("tmpfs"), "no tier full: only single files bound what a call can write"),
		user(),
		tried("pidfd", pidfd(), "no tier: calls cannot be watched"),
		tried("ns_last_pid", present("/proc/sys/kernel/ns_last_pid"), "process ids differ from call to call"),
		tried("address randomisation off", personality(), "id() and what depends on it differ from call to call"),
		hugePages(),
	}
	for _, place := range zygote.GroupPlaces() {
		l := Line{What: "control group: " + place.Controller, Obtained: place.Folder != "", Reason: place.Reason,
			Without: groupLoss[place.Controller]}
		if l.Obtained {
			l.Reason = "groups can be created in " + place.Folder
		}
		out = append(out, l)
	}
	return out
}

var groupLoss = map[string]string{
	"pids": "processes are counted for the user, not for the call with its interpreter",
	"memory": "a call that forks has its memory limit once for each process, and may use up the machine's memory, " +
		"which counts as breakage",
	"freezer": "a call of several processes that is set aside keeps running, and so does its wall limit",
}

// tried returns the line of a feature that works if err is nil.
func tried(what string, err error, without string) Line {
	l := Line{What: what, Obtained: err == nil, Reason: "tried; it works", Without: without}
	if err != nil {
		l.Reason = err.Error()
	}
	return l
}

// namespace starts a program in a new user namespace and in others.
func namespace(others uintptr) error {
	id := os.Geteuid()
	if id == 0 {
		id = unprivileged
	}
	group := os.Getegid()
	if group == 0 {
		group = unprivileged
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | others,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: id, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: group, Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w%s", err, namespaceAdvice())
	}
	return nil
}

// namespaceAdvice names the setting that is known to forbid namespaces.
func namespaceAdvice() string {
	for file, off := range map[string]string{
		"/proc/sys/user/max_user_namespaces":                     "0",
		"/proc/sys/kernel/unprivileged_userns_clone":             "0",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
	} {
		if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == off {
			return fmt.Sprintf(" (%s is %s)", file, off)
		}
	}
	return ""
}

func landlock(ask func() (int, error)) Line {
	l := Line{What: "Landlock",
		Without: "no tier landlock: without a mount namespace, calls can read the user's files"}
	version, err := ask()
	if err != nil {
		l.Reason = err.Error()
		return l
	}
	l.Obtained, l.Reason = version >= zygote.LeastLandlock, fmt.Sprintf("version %d", version)
	switch {
	case !l.Obtained:
		l.Reason += fmt.Sprintf("; version %d is needed, the first that refuses truncate(2)", zygote.LeastLandlock)
	case version < 6:
		l.Reason += "; only from version 6 on does it restrict abstract sockets and signals; before, only the filter " +
			"does"
	}
	return l
}

func filter() error {
	const actionAvailable = 2
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, actionAvailable, 0, uintptr(unsafe.Pointer(&action)))
	return errorOf(errno)
}

func noNewPrivileges() error {
	_, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err
}

func fileSystem(name string) error {
	text, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(strings.TrimSpace(line), name) {
			return nil
		}
	}
	return fmt.Errorf("the kernel has no file system %s", name)
}

// user reports under which user calls run.
func user() Line {
	l := Line{What: "non-root user", Without: "no tier: calls never run as root"}
	if os.Geteuid() != 0 {
		l.Obtained, l.Reason = true,
			fmt.Sprintf("calls run as this user, %d: in tiers without namespaces Landlock alone keeps them off its "+
				"files", os.Geteuid())
		return l
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	if err := cmd.Run(); err != nil {
		l.Reason = err.Error()
		return l
	}
	l.Obtained, l.Reason = true, fmt.Sprintf("calls of root run as user %d", unprivileged)
	return l
}

func pidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func present(path string) error {
	_, err := os.Stat(path)
	return err
}

// personality makes its attempt on a thread that ends with its goroutine.
func personality() error {
	const addrNoRandomize, ask = 0x0040000, 0xffffffff
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		now, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, ask, 0, 0)
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_PERSONALITY, now|addrNoRandomize, 0, 0)
		}
		result <- errorOf(errno)
	}()
	return <-result
}

func hugePages() Line {
	const path = "/sys/kernel/mm/transparent_hugepage/enabled"
	l := Line{What: "huge pages", Without: "forking takes a quarter to a half longer"}
	text, err := os.ReadFile(path)
	if err != nil {
		l.Reason = err.Error()
		return l
	}
	setting := strings.TrimSpace(string(text))
	l.Obtained, l.Reason = !strings.Contains(setting, "[never]"), setting
	return l
}

func errorOf(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

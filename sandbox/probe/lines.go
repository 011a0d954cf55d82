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

// nobody is the user that calls of root run as.
const nobody = 65534

func lines() []Line {
	out := []Line{
		tried("user namespace", namespace(0), "no tier full: the other namespaces need it"),
		tried("mount namespace", namespace(unix.CLONE_NEWNS), "no tier full: calls see the host's files by name"),
		tried("process namespace", namespace(unix.CLONE_NEWPID), "no tier full: no new processes, since killing would not be complete"),
		tried("network namespace", namespace(unix.CLONE_NEWNET), "no tier full; the filter alone keeps calls off the network"),
		tried("IPC namespace", namespace(unix.CLONE_NEWIPC), "no tier full; the filter alone refuses shared memory"),
		tried("host name namespace", namespace(unix.CLONE_NEWUTS), "no tier full: calls see the host's name"),
		landlock(),
		tried("seccomp filter", filter(), "no tier above rlimits: system calls are open to calls"),
		tried("no_new_privs", noNewPrivileges(), "no tier at all without root: set-user-id programs would work"),
		tried("tmpfs", fileSystem("tmpfs"), "no tier full: what a call may fill has no bound but a file's"),
		user(),
		tried("pidfd", pidfd(), "no tier: calls cannot be watched"),
		tried("ns_last_pid", present("/proc/sys/kernel/ns_last_pid"), "process ids differ from call to call"),
		tried("address randomisation off", personality(), "id() and what follows from it differ from call to call"),
		hugePages(),
	}
	for _, place := range zygote.GroupPlaces() {
		l := Line{What: "control group: " + place.Controller, Obtained: place.Folder != "", Reason: place.Reason, Without: groupLoss[place.Controller]}
		if l.Obtained {
			l.Reason = "groups can be made in " + place.Folder
		}
		out = append(out, l)
	}
	return out
}

var groupLoss = map[string]string{
	"pids":   "processes are counted for the user, not for the call with its interpreter",
	"memory": "a call that forks has its memory limit once for each process",
}

// tried is a line of something that works unless there is an error.
func tried(what string, err error, without string) Line {
	l := Line{What: what, Obtained: err == nil, Reason: "tried, and it works", Without: without}
	if err != nil {
		l.Reason = err.Error()
	}
	return l
}

// namespace starts a program in a new user namespace and others.
func namespace(others uintptr) error {
	id := os.Geteuid()
	if id == 0 {
		id = nobody
	}
	group := os.Getegid()
	if group == 0 {
		group = nobody
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

// namespaceAdvice names the switch that is known to be in the way.
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

func landlock() Line {
	const createRuleset, askVersion = 444, 1
	l := Line{What: "Landlock", Without: "no tier landlock: without a mount namespace, the user's files are open to calls"}
	version, _, errno := unix.Syscall(createRuleset, 0, 0, askVersion)
	if errno != 0 {
		l.Reason = errno.Error()
		return l
	}
	l.Obtained, l.Reason = true, fmt.Sprintf("version %d", version)
	if version < 6 {
		l.Reason += "; abstract sockets and signals are scoped from version 6 on, till then by the filter alone"
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
	return fmt.Errorf("the kernel knows no file system %s", name)
}

// user says who calls are to the host.
func user() Line {
	l := Line{What: "non-root user", Without: "no tier: calls never run as root"}
	if os.Geteuid() != 0 {
		l.Obtained, l.Reason = true, fmt.Sprintf("calls run as this user, %d: in tiers without namespaces Landlock alone keeps them off its files", os.Geteuid())
		return l
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := cmd.Run(); err != nil {
		l.Reason = err.Error()
		return l
	}
	l.Obtained, l.Reason = true, fmt.Sprintf("calls of root run as user %d", nobody)
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

// personality tries on a thread that ends with its goroutine.
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

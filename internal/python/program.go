package python

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Attach gives a command a program as its next inherited file, so that the program is not on the command line, which
// everyone who lists processes sees. It returns the argument of -c that runs the program, with the name in tracebacks,
// and a file that the caller closes once the command has started.
func Attach(cmd *exec.Cmd, name, program string) (argument string, file io.Closer, err error) {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return "", nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "program")
	if _, err := f.WriteAt([]byte(program), 0); err != nil {
		return "", nil, fmt.Errorf("write a file in memory: %w", errors.Join(err, f.Close()))
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	at := 2 + len(cmd.ExtraFiles)
	return fmt.Sprintf(`exec(compile(open(%d, "rb").read(), %q, "exec"))`, at, name), f, nil
}

package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// Mark says that a device has failed, to every process of the host.
type Mark struct {
	Kind   device.Kind `json:"kind"`
	Detail string      `json:"detail"`
	At     time.Time   `json:"at"`
	// Boot names the machine's start. A mark of an earlier one is void: the device has been reset since.
	Boot string `json:"boot"`
}

func (m Mark) String() string {
	return fmt.Sprintf("%s: %s, at %s", m.Kind, m.Detail, m.At.Format(time.RFC3339))
}

// bootID names this start of the machine; "" where the kernel does not tell, which is then the name.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// lasting reports whether a failure stays until the device is reset. A driver that was slow to answer may be quick again.
func lasting(kind device.Kind) bool { return kind != device.KindHung && kind != device.KindUnreadable }

// writeMark keeps the first mark of a device; later failures follow from the same one, or add nothing.
func writeMark(dir, uuid string, m Mark) error {
	if known, err := readMark(dir, uuid); err != nil || known != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("mark device %s: %w", uuid, err)
	}
	f, err := os.CreateTemp(dir, "mark-")
	if err != nil {
		return fmt.Errorf("mark device %s: %w", uuid, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("mark device %s: %w", uuid, err)
	}
	if err := os.Rename(f.Name(), markPath(dir, uuid)); err != nil {
		return fmt.Errorf("mark device %s: %w", uuid, err)
	}
	return nil
}

// markLimit bounds what is read of a mark: any user could have put any file there.
const markLimit = 1 << 16

// readMark is nil where there is none, or a void one.
func readMark(dir, uuid string) (*Mark, error) {
	f, err := os.OpenFile(markPath(dir, uuid), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the mark of device %s: %w", uuid, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > markLimit {
		return nil, fmt.Errorf("read the mark of device %s: %s is no mark", uuid, f.Name())
	}
	var m Mark
	if err := json.NewDecoder(f).Decode(&m); err != nil {
		return nil, fmt.Errorf("read the mark of device %s: %s: %w", uuid, f.Name(), err)
	}
	if m.Boot != bootID() {
		return nil, nil
	}
	return &m, nil
}

// ErrNotMarked says that a device has no mark.
var ErrNotMarked = errors.New("device is not marked as failed")

// Readmit takes a device's mark away, after somebody has reset or seen to the device.
func Readmit(dir, uuid string) error {
	err := os.Remove(markPath(dir, uuid))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNotMarked, uuid)
	}
	if err != nil {
		return fmt.Errorf("readmit device %s: %w", uuid, err)
	}
	return nil
}

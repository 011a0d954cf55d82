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

// Mark tells every process of the host that a device has failed.
type Mark struct {
	Kind   device.Kind `json:"kind"`
	Detail string      `json:"detail"`
	At     time.Time   `json:"at"`
	// Boot identifies the boot of the machine. A mark from an earlier boot is void, because the device was reset.
	Boot string `json:"boot"`
}

// String returns the kind, the detail and the time of the mark.
func (m Mark) String() string {
	return fmt.Sprintf("%s: %s, at %s", m.Kind, m.Detail, m.At.Format(time.RFC3339))
}

// bootID identifies this boot of the machine. It is "" if the kernel does not report it.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// outlastsPoll reports whether a failure lasts until the device is reset. A driver that answered slowly may recover.
func outlastsPoll(kind device.Kind) bool {
	return kind != device.KindHung && kind != device.KindUnreadable
}

// writeMark keeps the first mark of a device, because later failures usually follow from the first.
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

// markLimit bounds how much of a mark is read, because any user could have placed a file there.
const markLimit = 1 << 16

// readMark returns nil if there is no mark or the mark is void.
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
		return nil, fmt.Errorf("read the mark of device %s: %s is not a mark", uuid, f.Name())
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

// Readmit removes a device's mark. Call it after the device was reset or repaired.
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

package lease

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// Holding describes which process holds a device.
type Holding struct {
	Leased bool `json:"leased"`
	// PID is the holder's, or 0 where it cannot be seen.
	PID int `json:"pid,omitempty"`
	// Mark says that the device has failed and is not given out.
	Mark *Mark `json:"marked,omitempty"`
}

// Peek returns which process holds which device, without a pool. It creates no files. It waits while another process is
// choosing devices.
func Peek(ctx context.Context, dir string, uuids []string) (map[string]Holding, error) {
	out := map[string]Holding{}
	err := checkFolder(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	choosing, err := waitLock(ctx, device.SystemClock{}, placementPath(dir))
	if err != nil {
		return nil, err
	}
	defer choosing.Close()
	for _, uuid := range uuids {
		var h Holding
		if h.Mark, err = readMark(dir, uuid); err != nil {
			return nil, err
		}
		path := lockPath(dir, uuid)
		if _, err := os.Lstat(path); err == nil {
			f, err := tryLock(path)
			switch {
			case errors.Is(err, errHeld):
				h.Leased, h.PID = true, holder(path)
			case err != nil:
				return nil, err
			default:
				f.Close()
			}
		}
		out[uuid] = h
	}
	return out, nil
}

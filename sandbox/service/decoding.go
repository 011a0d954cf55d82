package service

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that decoding wraps
	"google.golang.org/grpc/mem"
)

// decoding is gRPC's codec for protocol buffers, which reserves room for a request before decoding it: a request on a
// stream may have 64 MiB, and many streams may send one at once. The receiver of a request releases the room once its
// tasks have room in the queue. Safe for concurrent use.
type decoding struct {
	encoding.CodecV2
	life     context.Context // waiting for room stops when it ends
	owners   sync.Map        // request that is about to be decoded → context of its stream
	capacity int64
	room     *semaphore.Weighted
	held     sync.Map // request → decoded
}

// decoded is the room that a request has.
type decoded struct {
	quota *quota // of the client whose it is
	size  int64
}

func newDecoding(capacity int64, life context.Context) *decoding {
	return &decoding{CodecV2: encoding.GetCodecV2("proto"), life: life, capacity: capacity,
		room: semaphore.NewWeighted(capacity)}
}

// Unmarshal implements encoding.CodecV2.
func (d *decoding) Unmarshal(data mem.BufferSlice, into any) error {
	held := decoded{size: min(int64(data.Len()), d.capacity)}
	owner, _ := d.owners.LoadAndDelete(into)
	if ctx, known := owner.(context.Context); known {
		c := asking(ctx)
		held.quota = c.quota.Load()
		if err := c.wait(ctx, held.quota.decoded, held.size, limitBytes); err != nil {
			return fmt.Errorf("wait for room to decode a request: %w", err)
		}
	}
	if err := d.room.Acquire(d.life, held.size); err != nil {
		held.giveBack()
		return fmt.Errorf("wait for room to decode a request: %w", err)
	}
	if err := d.CodecV2.Unmarshal(data, into); err != nil {
		d.room.Release(held.size)
		held.giveBack()
		return err
	}
	d.held.Store(into, held)
	return nil
}

func (h decoded) giveBack() {
	if h.quota != nil {
		giveBack(h.quota.decoded, h.size)
	}
}

// release releases the room of a request. A second call does nothing.
func (d *decoding) release(request any) {
	if held, known := d.held.LoadAndDelete(request); known {
		d.room.Release(held.(decoded).size)
		held.(decoded).giveBack()
	}
}

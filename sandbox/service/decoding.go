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
	capacity int64
	room     *semaphore.Weighted
	held     sync.Map // request → reserved bytes
}

func newDecoding(capacity int64, life context.Context) *decoding {
	return &decoding{CodecV2: encoding.GetCodecV2("proto"), life: life, capacity: capacity,
		room: semaphore.NewWeighted(capacity)}
}

// Unmarshal implements encoding.CodecV2.
func (d *decoding) Unmarshal(data mem.BufferSlice, into any) error {
	size := min(int64(data.Len()), d.capacity)
	if err := d.room.Acquire(d.life, size); err != nil {
		return fmt.Errorf("wait for room to decode a request: %w", err)
	}
	if err := d.CodecV2.Unmarshal(data, into); err != nil {
		d.room.Release(size)
		return err
	}
	d.held.Store(into, size)
	return nil
}

// release releases the room of a request. A second call does nothing.
func (d *decoding) release(request any) {
	if size, held := d.held.LoadAndDelete(request); held {
		d.room.Release(size.(int64))
	}
}

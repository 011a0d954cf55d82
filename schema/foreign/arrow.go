package foreign

import (
	"bytes"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// How Arrow's files and streams begin. Hugging Face's datasets are saved as streams.
const (
	arrowMagic  = "ARROW1"
	arrowStream = "\xff\xff\xff\xff"
)

// batches are the batches of a file or a stream of Arrow's IPC format.
type batches interface {
	Schema() *arrow.Schema
	Read() (arrow.Record, error)
}

func arrowBatches(data []byte, within memory.Allocator) (batches, error) {
	if bytes.HasPrefix(data, []byte(arrowMagic)) {
		return ipc.NewFileReader(bytes.NewReader(data), ipc.WithAllocator(within))
	}
	return ipc.NewReader(bytes.NewReader(data), ipc.WithAllocator(within))
}

func openArrow(data []byte, most int64) (*Table, error) {
	t := &Table{most: most}
	t.batches = func(_ []string, each func(arrow.Record) error) (err error) {
		within := newBounded(most)
		defer within.refuse(&err)
		from, err := arrowBatches(data, within)
		if err != nil {
			return err
		}
		t.names = nil
		for _, f := range from.Schema().Fields() {
			t.names = append(t.names, f.Name)
		}
		return readAll(from.Read, each)
	}
	return t, t.batches(nil, func(arrow.Record) error { return io.EOF })
}

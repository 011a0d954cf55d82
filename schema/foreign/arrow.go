package foreign

import (
	"bytes"
	"errors"
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

func openArrow(data []byte, most int64) (_ *Table, err error) {
	within := newBounded(most)
	defer within.refuse(&err)
	from, err := arrowBatches(data, within)
	if err != nil {
		return nil, err
	}
	t := &Table{most: most}
	for _, f := range from.Schema().Fields() {
		t.names = append(t.names, f.Name)
	}
	t.batches = func(_ []string, each func(arrow.Record) error) (err error) {
		within := newBounded(most)
		defer within.refuse(&err)
		from, err := arrowBatches(data, within)
		if err != nil {
			return err
		}
		return readAll(from.Read, each)
	}
	if _, err = from.Read(); errors.Is(err, io.EOF) {
		err = nil
	}
	return t, err
}

package metrics

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// An event file is a TFRecord file of messages tensorflow.Event (tensorflow/core/util/event.proto): each record is the
// length of its data (uint64, little-endian), the length's checksum, the data, and the data's checksum. A checksum is
// CRC-32C, rotated and shifted. The first event names the version of the format.

// The fields of the messages that are written.
const (
	eventTime    = 1 // double: seconds
	eventStep    = 2 // int64
	eventVersion = 3 // string
	eventSummary = 5 // Summary
	summaryValue = 1 // repeated Value
	valueTag     = 1 // string
	valueNumber  = 2 // float
)

// EventsFile is the name of a run's event file: the viewer reads every file with tfevents in its name. The same run
// has the same name, so that a later export replaces an earlier one.
func EventsFile(steps []Step) string {
	return fmt.Sprintf("events.out.tfevents.%010d.ropewalk", steps[0].Time.Unix())
}

// WriteEvents writes the steps as an event file. TensorBoard's scalars are float32.
func WriteEvents(w io.Writer, steps []Step) error {
	version := protowire.AppendTag(eventAt(steps[0].Time), eventVersion, protowire.BytesType)
	if err := writeRecord(w, protowire.AppendString(version, "brain.Event:2")); err != nil {
		return err
	}
	for _, s := range steps {
		event := protowire.AppendTag(eventAt(s.Time), eventStep, protowire.VarintType)
		event = protowire.AppendVarint(event, uint64(s.Step))
		event = protowire.AppendTag(event, eventSummary, protowire.BytesType)
		event = protowire.AppendBytes(event, summary(s.Values))
		if err := writeRecord(w, event); err != nil {
			return err
		}
	}
	return nil
}

func eventAt(t time.Time) []byte {
	seconds := float64(t.UnixMicro()) / 1e6
	tag := protowire.AppendTag(nil, eventTime, protowire.Fixed64Type)
	return protowire.AppendFixed64(tag, math.Float64bits(seconds))
}

func summary(values []Value) (out []byte) {
	for _, v := range values {
		one := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), v.Name)
		one = protowire.AppendTag(one, valueNumber, protowire.Fixed32Type)
		one = protowire.AppendFixed32(one, math.Float32bits(float32(v.Value)))
		out = protowire.AppendBytes(protowire.AppendTag(out, summaryValue, protowire.BytesType), one)
	}
	return out
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the masked CRC-32C of TFRecord.
func checksum(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

func writeRecord(w io.Writer, data []byte) error {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	record := binary.LittleEndian.AppendUint32(length, checksum(length))
	record = append(record, data...)
	record = binary.LittleEndian.AppendUint32(record, checksum(data))
	if _, err := w.Write(record); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return nil
}

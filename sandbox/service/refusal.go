package service

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
)

// The few frames of HTTP/2 (RFC 9113) that are needed to refuse a stream without a gRPC server.
const (
	frameHeaders  = 1
	frameSettings = 4
	frameGoAway   = 7

	endOfStream   = 0x1 | 0x4 // END_STREAM, END_HEADERS
	enhanceCalm   = 0xb       // ENHANCE_YOUR_CALM
	prefaceBytes  = 24
	headBytes     = 9
	mostFrameRead = 1 << 20 // bytes that a client may send before its first request
)

// refuseStream waits for the first request of an HTTP/2 connection and returns the bytes that answer it: gRPC's
// UNAVAILABLE with a message, and the notice that the connection accepts no more requests.
func refuseStream(conn io.ReadWriter, words string) ([]byte, error) {
	// clients wait for it before they send a request
	if _, err := conn.Write(frame(frameSettings, 0, 0, nil)); err != nil {
		return nil, err
	}
	in := io.LimitReader(conn, mostFrameRead)
	if _, err := io.CopyN(io.Discard, in, prefaceBytes); err != nil {
		return nil, err
	}
	for {
		head := make([]byte, headBytes)
		if _, err := io.ReadFull(in, head); err != nil {
			return nil, err
		}
		size := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, in, size); err != nil {
			return nil, err
		}
		if head[3] != frameHeaders {
			continue
		}
		stream := binary.BigEndian.Uint32(head[5:]) & (1<<31 - 1)
		fields := field(":status", "200") + field("content-type", "application/grpc") +
			field("grpc-status", fmt.Sprint(int(codes.Unavailable))) + field("grpc-message", words)
		away := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, stream), enhanceCalm)
		return append(frame(frameHeaders, endOfStream, stream, []byte(fields)),
			frame(frameGoAway, 0, 0, append(away, words...))...), nil
	}
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	head := binary.BigEndian.AppendUint32([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, stream)
	return append(head, payload...)
}

// field is a header as a literal of HPACK without indexing (RFC 7541, 6.2.2). Name and value have fewer than 127 bytes.
func field(name, value string) string {
	return "\x00" + string(rune(len(name))) + name + string(rune(len(value))) + value
}

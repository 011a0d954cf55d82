package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzFrame: a reader gives a frame, the end of the stream or a breach; what it gives is within its bounds, and
// written again is the same frame.
func FuzzFrame(f *testing.F) {
	message, arrays := sample()
	whole := framed(f, message, arrays...)
	for _, b := range [][]byte{whole, whole[:30], raw("{}", ""), raw(
		`{"type":"cancel","id":1}`, "12345678",
	), []byte("RWEP"), nil} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const bound = 1 << 16
		got, err := NewReader(bytes.NewReader(b), bound).Next()
		if err != nil {
			require.True(
				t, errors.Is(err, ErrProtocol) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), err,
			)
			return
		}
		require.LessOrEqual(t, len(got.Body), bound)
		require.True(t, bytes.HasPrefix(b, raw(string(got.Header), string(got.Body))))
	})
}

// messages are one of each type, as decoders of it.
func messages() []func(header []byte) (any, error) {
	return []func([]byte) (any, error){
		decoder[Hello], decoder[Welcome], decoder[Refused], decoder[Cancel], decoder[Beat], decoder[Error],
		decoder[Load], decoder[Save], decoder[Saved], decoder[Generate], decoder[Forward], decoder[Backward],
		decoder[Step], decoder[OfRole], decoder[Shutdown],
		decoder[Answer], decoder[LoadAnswer], decoder[SaveAnswer], decoder[ForwardAnswer], decoder[StepAnswer],
		decoder[StateAnswer],
	}
}

func decoder[T any](header []byte) (any, error) {
	var m T
	err := Decode(header, &m)
	return m, err
}

// FuzzHeader: what decodes as a message encodes to a header that decodes to the same one, and peeks alike.
func FuzzHeader(f *testing.F) {
	for _, m := range []any{
		Hello{
			Type: TypeHello, Protocol: 1, Versions: map[string]string{"torch": "2.15.0"},
		}, Welcome{TypeWelcome, 1}, Refused{TypeRefused, "why"}, Cancel{TypeCancel, 9},
		Beat{
			Type: TypeBeat, At: 7, Phase: "forward", Ticks: 812, Done: 3, Total: 16, Memory: Memory{1, 2, 3},
		}, Error{Type: TypeError, ID: 1, Kind: KindCorrupt, Message: "m", Name: "n"},
		Load{
			Head: Begin(1, CallLoad), Role: "policy", Dir: "/d", Digest: "x",
		}, Forward{Head: Begin(2, CallForward), Outputs: []string{OutLogProb}},
		Step{Head: Begin(3, CallStep), LR: 1e-3}, LoadAnswer{
			Answer: Answer{Type: TypeAnswer, ID: 1}, Reused: []string{"weights"},
		}, StateAnswer{Loaded: true},
	} {
		b, err := encodeHeader(m)
		require.NoError(f, err)
		f.Add(b)
	}
	for _, s := range []string{`{"type":"cancel","id":1,"id":2}`, `{"type":null}`, `[]`, `{"type":"x","id":1e3}`,
		`{"a":{"b":{"c":{}}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, peekErr := Peek(b)
		for _, decode := range messages() {
			m, err := decode(b)
			if err != nil {
				require.ErrorIs(t, err, ErrProtocol)
				continue
			}
			again, err := encodeHeader(m)
			require.NoError(t, err)
			same, err := decode(again)
			require.NoError(t, err)
			require.Equal(t, m, same)
		}
		if peekErr != nil {
			require.ErrorIs(t, peekErr, ErrProtocol)
		}
	})
}

// FuzzBody: the arrays of a body lie within it and cover its data; written again they are the same arrays.
func FuzzBody(f *testing.F) {
	_, arrays := sample()
	table, _, err := layout(arrays)
	require.NoError(f, err)
	whole := table
	for _, a := range arrays {
		whole = append(whole, a.Raw...)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(
		bodyOf(
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"I32","shape":[1],"data_offsets":[1,5]}}`,
			"12345",
		),
	)
	f.Add(bodyOf(`{"a":{"dtype":"U64","shape":[2305843009213693952],"data_offsets":[0,0]}}`, ""))
	f.Add(bodyOf(`{}`, ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		arrays, err := arraysOf(b)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		sum := 0
		for _, a := range arrays {
			require.Equal(t, a.Len*int(a.Dtype.size()), len(a.Raw))
			sum += len(a.Raw)
			if a.Dtype == I32 {
				v, err := Values[int32](a)
				require.NoError(t, err)
				require.Len(t, v, a.Len)
			}
		}
		require.LessOrEqual(t, sum, len(b))
		var out bytes.Buffer
		require.NoError(t, WriteFrame(&out, Cancel{TypeCancel, 1}, arrays...))
		frame, err := NewReader(&out, MaxBody).Next()
		require.NoError(t, err)
		again, err := arraysOf(frame.Body)
		require.NoError(t, err)
		require.Len(t, again, len(arrays))
		for i := range arrays {
			require.Equal(t, arrays[i].Name, again[i].Name)
			require.True(t, bytes.Equal(arrays[i].Raw, again[i].Raw))
		}
	})
}

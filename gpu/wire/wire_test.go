package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func framed(t testing.TB, message any, arrays ...Array) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, WriteFrame(&b, message, arrays...))
	return b.Bytes()
}

// raw is a frame with a header and a body as they are.
func raw(header, body string) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(header)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	return append(append(b, header...), body...)
}

func sample() (Generate, []Array) {
	tokens, lengths := Flatten([][]int32{{1, 2, 3}, {4}})
	return Generate{Head: Begin(7, CallGenerate), Role: "policy", Temperature: 0.7, Stop: []int32{3}},
		[]Array{
			Of(NameStreams, []uint64{1, 1 << 63}), Of(NameTokens, tokens), Of(NameLengths, lengths),
			Of(NameMaxTokens, []int32{5, 6}),
		}
}

func TestRoundTrip(t *testing.T) {
	want, arrays := sample()
	b := framed(t, want, arrays...)
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(b),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(b))} {
		t.Run(name, func(t *testing.T) {
			f, err := NewReader(r, MaxBody).Next()
			require.NoError(t, err)
			e, err := Peek(f.Header)
			require.NoError(t, err)
			require.Equal(t, Envelope{Type: TypeCall, ID: 7, Call: CallGenerate}, e)
			var got Generate
			require.NoError(t, Decode(f.Header, &got))
			require.Equal(t, want, got)
			taken, err := Take(
				f.Body, Want{NameTokens, I32, -1}, Want{NameLengths, I32, -1}, Want{NameStreams, U64, 2},
				Want{NameMaxTokens, I32, 2},
			)
			require.NoError(t, err)
			tokens, err := Values[int32](taken[0])
			require.NoError(t, err)
			lengths, err := Values[int32](taken[1])
			require.NoError(t, err)
			rows, err := Cut(tokens, lengths)
			require.NoError(t, err)
			require.Equal(t, [][]int32{{1, 2, 3}, {4}}, rows)
			streams, err := Values[uint64](taken[2])
			require.NoError(t, err)
			require.Equal(t, []uint64{1, 1 << 63}, streams)
			_, err = NewReader(r, MaxBody).Next()
			require.Equal(t, io.EOF, err)
		})
	}
}

// TestGoldenFrame pins the bytes, by which another engine can be written.
func TestGoldenFrame(t *testing.T) {
	got := framed(
		t, Backward{Begin(3, CallBackward), "policy", 2}, Of(NameLengths, []int32{2}), Of(NameFinish, []uint8{1, 0}),
	)
	header := `{"type":"call","id":3,"call":"backward","role":"policy","kept":2}`
	table := `{"lengths":{"dtype":"I32","shape":[1],"data_offsets":[0,4]},` +
		`"finish":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}`
	table += strings.Repeat(" ", -len(table)&7)
	body := string(binary.LittleEndian.AppendUint64(nil, uint64(len(table)))) + table + "\x02\x00\x00\x00\x01\x00"
	require.Equal(t, string(raw(header, body)), string(got))
}

func TestEveryCutIsAnError(t *testing.T) {
	message, arrays := sample()
	b := framed(t, message, arrays...)
	for n := range b {
		_, err := NewReader(bytes.NewReader(b[:n]), MaxBody).Next()
		if n == 0 {
			require.Equal(t, io.EOF, err)
			continue
		}
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes of %d", n, len(b))
	}
}

func TestFramesOutOfBounds(t *testing.T) {
	long := raw("{}", "")
	binary.LittleEndian.PutUint32(long[4:], maxHeader+1)
	huge := raw("{}", "")
	binary.LittleEndian.PutUint64(huge[8:], 1<<63)
	for name, c := range map[string]struct {
		bytes []byte
		max   uint64
		want  string
	}{
		"magic":        {[]byte("RIFF............"), MaxBody, `begins with "RIFF"`},
		"no header":    {raw("", ""), MaxBody, "header of 0 bytes"},
		"long header":  {long, MaxBody, "header of 1048577 bytes"},
		"short body":   {raw("{}", "1234567"), MaxBody, "body of 7 bytes"},
		"huge body":    {huge, 1 << 63, "body of 9223372036854775808 bytes"},
		"own bound":    {raw("{}", strings.Repeat(" ", 9)), 8, "body of 9 bytes, allowed are 0 or 8 to 8"},
		"not expected": {raw("{}", strings.Repeat(" ", 8)), 0, "body of 8 bytes"},
	} {
		_, err := NewReader(bytes.NewReader(c.bytes), c.max).Next()
		require.ErrorIs(t, err, ErrProtocol, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

// A length alone makes no memory: 8 GiB are announced, none come.
func TestAnnouncedBodyMakesNoMemory(t *testing.T) {
	b := raw("{}", "")
	binary.LittleEndian.PutUint64(b[8:], 8<<30)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NewReader(bytes.NewReader(b), MaxBody).Next()
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}

func TestLargeBody(t *testing.T) {
	big := make([]float32, 3*step/4+5)
	for i := range big {
		big[i] = float32(i)
	}
	f, err := NewReader(bytes.NewReader(framed(t, Cancel{TypeCancel, 1}, Of(NameValues, big))), MaxBody).Next()
	require.NoError(t, err)
	arrays, err := Take(f.Body, Want{NameValues, F32, len(big)})
	require.NoError(t, err)
	got, err := Values[float32](arrays[0])
	require.NoError(t, err)
	require.Equal(t, big, got)
}

func TestHeadersRefused(t *testing.T) {
	for header, want := range map[string]string{
		`{"type":"cancel","id":1,"more":2}`:          "unknown field",
		`{"type":"cancel"}`:                          `cancel: field "id" is missing`,
		`{"type":"cancel","id":1,"id":1}`:            `"id" is there twice`,
		`{"type":"cancel","Id":1}`:                   `unknown field "Id"`,
		`{"type":"cancel","id":null}`:                "null",
		`{"type":"cancel","id":"1"}`:                 "read JSON",
		`{"type":"cancel","id":-1}`:                  "read JSON",
		`{"type":"cancel","id":1.5}`:                 "read JSON",
		`{"type":"cancel","id":1} {}`:                "goes on",
		`["cancel"]`:                                 "no JSON object",
		`"cancel"`:                                   "no JSON object",
		"{\"type\":\"can\xffcel\",\"id\":1}":         "UTF-8",
		`{"type":"cancel","id":[[[[[[[[[1]]]]]]]]]}`: "deeper",
		`{"type":"cancel","id":NaN}`:                 "read JSON",
		`{`:                                          "read JSON",
		strings.Repeat(" ", 4):                       "no JSON object",
		`{"type":"beat","at":1,"phase":"","ticks":1,"done":1,"total":1,"id":1}`: "unknown field",
	} {
		var c Cancel
		err := Decode([]byte(header), &c)
		require.ErrorIs(t, err, ErrProtocol, header)
		require.ErrorContains(t, err, want, header)
	}
	_, err := Peek([]byte(`{"id":1}`))
	require.ErrorIs(t, err, ErrProtocol)
	var e Error
	require.NoError(
		t, Decode([]byte(`{"type":"error","id":1,"kind":"internal","message":"m"}`), &e), "name is optional",
	)
	var load LoadAnswer
	require.ErrorContains(
		t,
		Decode([]byte(`{"type":"answer","id":1,"seconds":1,"torch_seconds":1,"digest":"","step":0,"params":1}`), &load),
		`"reused" is missing`,
	)
}

// bodyOf is a body with a table as it is.
func bodyOf(table string, data string) []byte {
	return []byte(string(binary.LittleEndian.AppendUint64(nil, uint64(len(table)))) + table + data)
}

func TestBodiesRefused(t *testing.T) {
	one := `{"tokens":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}`
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"short":          {[]byte("1234"), "too short"},
		"table too long": {bodyOf(one, "")[:20], "table of"},
		"no JSON":        {bodyOf("{]", ""), "read JSON"},
		"gap":            {bodyOf(one, "12345"), "cover 4 of 5"},
		"missing data":   {bodyOf(one, "123"), "lies at [0 4] in 3 bytes"},
		"dtype":          {bodyOf(strings.Replace(one, "I32", "F64", 1), "1234"), "F64"},
		"other dtype": {
			bodyOf(strings.Replace(one, "I32", "F32", 1), "1234"), "holds 1 × F32, want any number of I32",
		},
		"two dimensions": {bodyOf(strings.Replace(one, "[1]", "[1,1]", 1), "1234"), "one dimension"},
		"shape":          {bodyOf(strings.Replace(one, "[1]", "[2]", 1), "1234"), "2 elements"},
		"huge shape":     {bodyOf(strings.Replace(one, "[1]", "[4611686018427387905]", 1), "1234"), "elements"},
		"backwards":      {bodyOf(strings.Replace(one, "[0,4]", "[4,0]", 1), "1234"), "lies at"},
		"offsets":        {bodyOf(strings.Replace(one, "[0,4]", "[0,4,4]", 1), "1234"), "one dimension"},
		"metadata":       {bodyOf(`{"__metadata__":{"a":"b"},`+one[1:], "1234"), "unknown field"},
		"twice":          {bodyOf(one[:len(one)-1]+","+one[1:], "1234"), "there twice"},
		"overlap": {
			bodyOf(
				`{"tokens":{"dtype":"I32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"I32","shape":[1],"data_offsets":[2,6]}}`,
				"123456",
			),
			"begins at 2",
		},
		"missing array": {bodyOf(`{}`, ""), `array "tokens" is missing`},
		"surplus array": {
			bodyOf(one[:len(one)-1]+`,"extra":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}}`, "1234"),
			`array "extra" is surplus`,
		},
		"no body": {nil, `array "tokens" is missing`},
	} {
		_, err := Take(c.body, Want{NameTokens, I32, -1})
		require.ErrorIs(t, err, ErrProtocol, name)
		require.ErrorContains(t, err, c.want, name)
	}
	_, err := Take(bodyOf(one, "1234"), Want{NameTokens, I32, 2})
	require.ErrorContains(t, err, "want 2 × I32")
	_, err = Take(bodyOf(one, "1234"))
	require.ErrorContains(t, err, "surplus", "a message without arrays")
}

// Arrays at odd offsets are copied, not misread.
func TestUnalignedArrays(t *testing.T) {
	body := bodyOf(
		`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"I32","shape":[1],"data_offsets":[1,5]}}`,
		"\x07\x01\x02\x00\x00",
	)
	arrays, err := Take(body, Want{"b", I32, 1}, Want{"a", U8, 1})
	require.NoError(t, err)
	got, err := Values[int32](arrays[0])
	require.NoError(t, err)
	require.Equal(t, []int32{513}, got)
	_, err = Values[float32](arrays[0])
	require.ErrorIs(t, err, ErrProtocol)
}

func TestCutRefuses(t *testing.T) {
	for name, lengths := range map[string][]int32{"too few": {1}, "too many": {3}, "negative": {-1, 3},
		"sum back in range": {3, -1}} {
		_, err := Cut([]int32{1, 2}, lengths)
		require.ErrorIs(t, err, ErrProtocol, name)
	}
	rows, err := Cut([]int32{1, 2}, []int32{0, 2, 0})
	require.NoError(t, err)
	require.Equal(t, [][]int32{{}, {1, 2}, {}}, rows)
	// A row's capacity ends with it: an append must not run into the next one.
	require.Equal(t, 2, cap(rows[1]))
}

func TestWriteFrameRefuses(t *testing.T) {
	require.Error(t, WriteFrame(io.Discard, Step{Head: Begin(1, CallStep), LR: inf()}), "JSON has no infinity")
	require.ErrorIs(t, WriteFrame(io.Discard, Refused{TypeRefused, strings.Repeat("x", maxHeader)}), ErrProtocol)
	require.ErrorIs(
		t, WriteFrame(io.Discard, Cancel{}, Array{Name: "a", Dtype: I32, Len: 2, Raw: []byte{1}}), ErrProtocol,
	)
	fail := errors.New("no more")
	require.ErrorIs(t, WriteFrame(failing{fail}, Cancel{}), fail)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func inf() float64 { zero := 0.0; return 1 / zero }

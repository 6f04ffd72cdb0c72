package wire

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

type got struct{ Name, Data string }

func decode(t testing.TB, r io.Reader) []got {
	t.Helper()
	d := decoder{r: bufio.NewReader(r)}
	var events []got
	for {
		name, data, err := d.next()
		if err == io.EOF {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, got{name, string(data)})
	}
}

// TestDecoder checks the examples of the HTML standard's section "Interpreting an event stream",
// and corner cases.
func TestDecoder(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []got
	}{
		{"standard, lines", "data: YHOO\ndata: +2\ndata: 10\n\n", []got{{"", "YHOO\n+2\n10"}}},
		{"standard, comments and ids", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", []got{{"", "first event"}, {"", "second event"}, {"", " third event"}}},
		{"standard, empty data", "data\n\ndata\ndata\n\ndata:", []got{{"", ""}, {"", "\n"}}},
		{"standard, a space or none", "data:test\n\ndata: test\n\n", []got{{"", "test"}, {"", "test"}}},
		{"names", "event: add\ndata: 1\n\nevent: remove\ndata: 2\n\ndata: 3\n\n", []got{{"add", "1"}, {"remove", "2"}, {"", "3"}}},
		{"a name without data is of nothing", "event: ping\n\ndata: 1\n\n", []got{{"", "1"}}},
		{"carriage returns", "event: a\rdata: 1\r\rdata: 2\r\r", []got{{"a", "1"}, {"", "2"}}},
		{"both", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []got{{"a", "1"}, {"", "2"}}},
		{"mixed", "data: 1\r\ndata: 2\rdata: 3\n\r\ndata: 4\n\n", []got{{"", "1\n2\n3"}, {"", "4"}}},
		{"a byte order mark", "\uFEFFdata: 1\n\n", []got{{"", "1"}}},
		{"no second one", "\uFEFF\uFEFFdata: 1\n\ndata: 2\n\n", []got{{"", "2"}}},
		{"other fields", "retry: 10\nfoo: bar\nDATA: x\n data: y\ndata: 1\n\n", []got{{"", "1"}}},
		{"colons", "data: {\"a\":1}\nevent: a:b\n\n", []got{{"a:b", `{"a":1}`}}},
		{"cut before its end", "data: 1\n\ndata: 2\n", []got{{"", "1"}}},
		{"cut in a line", "data: 1\n\ndata: 2", []got{{"", "1"}}},
		{"nothing", "", nil},
		{"blank lines", "\n\n\r\n\r\r", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"at once": strings.NewReader(test.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(test.stream)), "with its end": iotest.DataErrReader(strings.NewReader(test.stream)),
			} {
				if diff := cmp.Diff(test.want, decode(t, r)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
	d := decoder{r: bufio.NewReader(iotest.ErrReader(io.ErrUnexpectedEOF))}
	if _, _, err := d.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a stream that breaks: %v", err)
	}
}

// FuzzDecoder checks that the events do not depend on how a stream arrives, and that no event is
// larger than the stream.
func FuzzDecoder(f *testing.F) {
	f.Add("event: a\r\ndata: 1\r\n\r\n: x\n\ndata\n\n")
	f.Add("\uFEFFdata: {\"a\":1}\rdata:2\r\r")
	f.Add("data: [DONE]\n\n\xff")
	f.Fuzz(func(t *testing.T, stream string) {
		all := decode(t, strings.NewReader(stream))
		if diff := cmp.Diff(all, decode(t, iotest.OneByteReader(strings.NewReader(stream)))); diff != "" {
			t.Errorf("byte by byte (-at once +so):\n%s", diff)
		}
		n := 0
		for _, e := range all {
			n += len(e.Data)
			if strings.ContainsAny(e.Name, "\r\n") || strings.Contains(e.Data, "\r") {
				t.Errorf("an event holds the end of a line: %q", e)
			}
		}
		if n > len(stream) {
			t.Errorf("%d bytes of data in a stream of %d", n, len(stream))
		}
	})
}

func FuzzScrubber(f *testing.F) {
	const scrubbed = "[secret]"
	f.Add("the key sk-0123456789abcdef is here", "sk-0123456789abcdef", 5)
	f.Add("aaaaaaaaaaaaaaaaaaaaaaaaaab", "aaaaaaaaaaaab", 1)
	f.Fuzz(func(t *testing.T, text, key string, size int) {
		c := Client{Secrets: []Secret{NewSecret(key), NewSecret(key + "-and-more")}}
		size = min(max(1, size), 100)
		s, pieces := c.Scrubber(), ""
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			pieces += s.Next(rest[:n])
			rest = rest[n:]
		}
		pieces += s.Rest()
		if len(key) >= minScrubbed && !strings.Contains(scrubbed, key) && strings.Contains(strings.ReplaceAll(pieces, scrubbed, "\x00"), key) {
			t.Errorf("%q in pieces of %d is %q", text, size, pieces)
		}
		if !strings.Contains(text, key) && pieces != text {
			t.Errorf("%q without the key %q is changed to %q", text, key, pieces)
		}
	})
}

package awswire

import "testing"

// FuzzFrames checks that the framing of a stream does not depend on how it is read.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5, 1, 0, 0, 0, 4, 0, 0}, 3)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 2}, 1)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 2}, 2)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		whole, parts := new(frames), new(frames)
		whole.pass(data)
		if at < 0 || at > len(data) {
			return
		}
		parts.pass(data[:at])
		parts.pass(data[at:])
		if *whole != *parts {
			t.Errorf("%+v at once, %+v cut at %d", whole, parts, at)
		}
	})
}

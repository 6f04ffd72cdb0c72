// Package secret keeps credentials out of all output. A Secret is revealed only by an explicit
// call. Redact removes credentials from foreign text, such as the error of a server that echoes its
// request.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// mask replaces a credential.
const mask = "[secret]"

// A Secret is a credential. Its text is not shown however it is printed, logged or encoded, even as
// a field of another value. The zero Secret is empty.
type Secret struct {
	text *string // a pointer, since fmt does not call the methods of unexported fields
}

// New returns text as a Secret. For the empty text it is the zero Secret.
func New(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the credential itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether s holds no credential.
func (s Secret) Empty() bool { return s.text == nil }

// String returns a mask, or "" for an empty Secret.
func (s Secret) String() string {
	if s.Empty() {
		return ""
	}
	return mask
}

// Format implements fmt.Formatter: every verb prints String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// GoString implements fmt.GoStringer like String.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler like String, and so applies to JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue implements slog.LogValuer like String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

package parse

import (
	"bytes"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/richardlehane/mscfb"
)

// isCFB reports whether data is a compound file ([MS-CFB]), the container of Office documents before
// 2007, of encrypted ones and of Outlook messages.
func isCFB(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
}

// eachCFB calls f for each stream of a compound file, with its path, until f returns false.
func eachCFB(data []byte, f func(name string, size int64, r io.Reader) bool) (err error) {
	// The library parses untrusted bytes. A panic in it must affect only this file.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("compound file: %v: %w", p, ErrDamaged)
		}
	}()
	doc, err := mscfb.New(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("compound file: %v: %w", err, ErrDamaged)
	}
	const most = 100_000
	for n := 0; n < most; n++ {
		entry, err := doc.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("compound file: %v: %w", err, ErrDamaged)
		}
		if !f(path.Join(append(entry.Path, entry.Name)...), entry.Size, entry) {
			return nil
		}
	}
	return fmt.Errorf("a compound file has more than %d streams: %w", most, ErrLimit)
}

// kindEncrypted is the kind of a compound file that contains an encrypted package.
const kindEncrypted = "encrypted"

// cfbKind returns the format of a compound file by its streams: doc, xls, ppt, msg, kindEncrypted or
// "". locked reports whether the document of old is encrypted.
func cfbKind(data []byte) (kind string, locked bool) {
	_ = eachCFB(data, func(name string, _ int64, r io.Reader) bool {
		switch name {
		case "EncryptedPackage":
			kind = kindEncrypted
			return false
		case "WordDocument":
			kind, locked = "doc", isLockedWord(r)
		case "Workbook", "Book":
			kind, locked = "xls", isLockedExcel(r)
		case "PowerPoint Document":
			kind = "ppt"
		case "EncryptedSummary":
			locked = true
		case "__properties_version1.0":
			if kind == "" {
				kind = "msg"
			}
		}
		return true
	})
	return kind, locked
}

// isLockedWord reads the flag fEncrypted of a Word document ([MS-DOC], 2.5.2).
func isLockedWord(r io.Reader) bool {
	head := make([]byte, 12)
	if _, err := io.ReadFull(r, head); err != nil {
		return false
	}
	const encrypted = 0x0100
	return endian.LittleEndian.Uint16(head[10:])&encrypted != 0
}

// isLockedExcel reports whether a workbook has a FilePass record near its start ([MS-XLS], 2.4.117).
func isLockedExcel(r io.Reader) bool {
	const filePass, most = 0x002f, 20
	head := make([]byte, 4)
	for range most {
		if _, err := io.ReadFull(r, head); err != nil {
			return false
		}
		if endian.LittleEndian.Uint16(head) == filePass {
			return true
		}
		if _, err := io.CopyN(io.Discard, r, int64(endian.LittleEndian.Uint16(head[2:]))); err != nil {
			return false
		}
	}
	return false
}

// oleFile returns the file inside an embedded object ([MS-OLEDS], 2.3.6), or nil.
func oleFile(data []byte) (name string, file []byte) {
	if !isCFB(data) {
		return "", nil
	}
	_ = eachCFB(data, func(stream string, size int64, r io.Reader) bool {
		if size < 0 || size > int64(len(data)) {
			return true
		}
		switch strings.TrimLeft(stream, "\x01") {
		case "Ole10Native":
			native, err := io.ReadAll(r)
			if err != nil {
				return true
			}
			name, file = nativeFile(native)
		case "CONTENTS", "Package":
			contents, err := io.ReadAll(r)
			if err == nil && len(contents) > 0 {
				name, file = "contents", contents
			}
		}
		return file == nil
	})
	return name, file
}

// nativeFile reads the stream of an embedded file: its size, a flag, its label and path, and its
// bytes.
func nativeFile(b []byte) (name string, file []byte) {
	const head = 6
	if len(b) < head {
		return "", nil
	}
	rest := b[head:]
	label, rest, ok := cutZero(rest)
	if !ok {
		return "", nil
	}
	if _, rest, ok = cutZero(rest); !ok || len(rest) < 8 {
		return "", nil
	}
	n := endian.LittleEndian.Uint32(rest[4:])
	rest = rest[8:]
	if int64(n) > int64(len(rest)) {
		return "", nil
	}
	rest = rest[n:]
	if len(rest) < 4 {
		return "", nil
	}
	n = endian.LittleEndian.Uint32(rest)
	if rest = rest[4:]; int64(n) > int64(len(rest)) {
		return "", nil
	}
	return string(label), rest[:n]
}

func cutZero(b []byte) (before, after []byte, ok bool) { return bytes.Cut(b, []byte{0}) }

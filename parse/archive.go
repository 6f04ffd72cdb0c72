package parse

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/bodgit/sevenzip"
	"golang.org/x/text/encoding/charmap"
)

// Archives are folders of documents: each file in one is a part. Hidden files and those that macOS
// adds are left out, as in folders on disk. Links and devices are parts that cannot be read.

// maxUnpacked bounds the data of a single compressed file (gzip, bzip2). Files in archives have the
// limits of Walk.
const maxUnpacked = 128 << 20

// isZIP reports whether src is a ZIP archive and not a document in a format based on ZIP. If its
// directory cannot be read, the names at its start decide.
func isZIP(src *source) bool {
	if bytes.HasPrefix(src.data, []byte("PK\x05\x06")) {
		return true // without files
	}
	if !bytes.HasPrefix(src.data, []byte("PK\x03\x04")) {
		return false
	}
	z, err := zip.NewReader(bytes.NewReader(src.data), int64(len(src.data)))
	if err != nil {
		return signature(src.data) == zipSignature
	}
	for _, f := range z.File {
		if f.Name == "[Content_Types].xml" || f.Name == "mimetype" {
			return false
		}
	}
	return true
}

// parseZIP lists the files of a ZIP archive.
//
// Source: PKWARE, "APPNOTE.TXT - .ZIP File Format Specification", 6.3.10.
func parseZIP(src *source, b *builder) bool {
	z, err := zip.NewReader(bytes.NewReader(src.data), int64(len(src.data)))
	if err != nil {
		b.err = fmt.Errorf("the ZIP archive cannot be read: %w: %w", err, ErrDamaged)
		return true
	}
	const methodBzip2 = 12
	z.RegisterDecompressor(methodBzip2, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	packed := uint64(0)
	for _, f := range z.File {
		packed += min(f.CompressedSize64, uint64(len(src.data))+1)
		if packed > uint64(len(src.data)) {
			b.err = fmt.Errorf("the files of the ZIP archive overlap: %w", ErrLimit)
			return true
		}
	}
	for _, f := range z.File {
		if b.canceled() {
			return true
		}
		name := zipName(f)
		if strings.HasSuffix(name, "/") || isHiddenMember(name) {
			continue
		}
		b.addPart(Part{Name: name, Read: func(ctx context.Context, limit int64) ([]byte, error) { return readZIP(ctx, f, limit) }})
	}
	return emptyArchive(b)
}

// zipName returns the path of a file. Names that are not in UTF-8 are in code page 437.
func zipName(f *zip.File) string {
	if !f.NonUTF8 {
		return strings.ReplaceAll(f.Name, "\\", "/")
	}
	name, err := charmap.CodePage437.NewDecoder().String(f.Name)
	if err != nil {
		name = f.Name
	}
	return strings.ReplaceAll(name, "\\", "/")
}

func readZIP(ctx context.Context, f *zip.File, limit int64) ([]byte, error) {
	const encrypted = 1
	if err := regular(f.Mode()); err != nil {
		return nil, err
	}
	if f.Flags&encrypted != 0 {
		return nil, fmt.Errorf("it is encrypted, and encrypted files of ZIP archives are not supported: %w", ErrPassword)
	}
	if f.UncompressedSize64 > uint64(limit) {
		return nil, errTooLarge(limit)
	}
	r, err := f.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("its compression method %d is not supported: %w", f.Method, ErrBinary)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrDamaged)
	}
	defer r.Close()
	return readMember(ctx, r, limit)
}

// regular returns an error for a file that is not a regular one.
func regular(mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		return fmt.Errorf("it is a symbolic link: %w", ErrBinary)
	}
	return fmt.Errorf("it is not a regular file: %w", ErrBinary)
}

func errTooLarge(limit int64) error {
	return fmt.Errorf("it has more than %d MiB: %w", limit>>20, ErrLimit)
}

// readMember reads a file of an archive. Errors of r mean that it is damaged.
func readMember(ctx context.Context, r io.Reader, limit int64) ([]byte, error) {
	var out bytes.Buffer
	for {
		const step = 1 << 20
		n, err := io.CopyN(&out, r, step)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case int64(out.Len()) > limit:
			return nil, errTooLarge(limit)
		case errors.Is(err, io.EOF) && n < step:
			return out.Bytes(), nil
		case err != nil:
			return nil, fmt.Errorf("it cannot be unpacked: %w: %w", err, ErrDamaged)
		}
	}
}

// isHiddenMember reports whether a file of an archive is left out: its name or that of a folder
// around it starts with a dot, or macOS added it.
func isHiddenMember(name string) bool {
	for element := range strings.SplitSeq(name, "/") {
		if element == "__MACOSX" || strings.HasPrefix(element, ".") && element != "." && element != ".." {
			return true
		}
	}
	return false
}

// emptyArchive ends the parsing of an archive, which is an error if it has no files.
func emptyArchive(b *builder) bool {
	if len(b.parts) == 0 && b.err == nil && !b.canceled() {
		b.err = fmt.Errorf("the archive has no files: %w", ErrEmpty)
	}
	return true
}

// isTar reports whether src starts with a header of a POSIX or GNU tar archive.
func isTar(src *source) bool { return isTarData(src.data) }

func isTarData(data []byte) bool {
	const magicAt = 257
	return len(data) >= 512 && bytes.HasPrefix(data[magicAt:], []byte("ustar"))
}

func parseTar(src *source, b *builder) bool {
	listTar(src.data, b)
	return emptyArchive(b)
}

// listTar adds the files of a tar archive as parts. If the archive is damaged, the files before are
// kept and the rest is a part that cannot be read.
//
// Source: IEEE Std 1003.1-2017, pax, "ustar Interchange Format".
func listTar(data []byte, b *builder) {
	at := bytes.NewReader(data)
	r := tar.NewReader(at)
	for !b.canceled() {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			damaged := fmt.Errorf("the rest of the tar archive cannot be read: %w: %w", err, ErrDamaged)
			b.addPart(Part{Name: "rest of the archive", Read: func(context.Context, int64) ([]byte, error) { return nil, damaged }})
			return
		}
		if h.Typeflag == tar.TypeDir || h.Typeflag == tar.TypeXGlobalHeader || isHiddenMember(h.Name) {
			continue
		}
		start := int64(len(data)) - int64(at.Len())
		b.addPart(Part{Name: h.Name, Read: func(_ context.Context, limit int64) ([]byte, error) { return readTar(data, start, h, limit) }})
	}
}

// readTar returns the data of the file with header h, which starts at the offset start.
func readTar(data []byte, start int64, h *tar.Header, limit int64) ([]byte, error) {
	if err := regular(h.FileInfo().Mode()); err != nil || h.Typeflag == tar.TypeLink {
		return nil, cmp.Or(err, fmt.Errorf("it is a link to another file: %w", ErrBinary))
	}
	_, sparse := h.PAXRecords["GNU.sparse.major"]
	switch {
	case sparse || h.Typeflag == tar.TypeGNUSparse || h.PAXRecords["GNU.sparse.map"] != "":
		return nil, fmt.Errorf("it is stored with gaps, which is not supported: %w", ErrBinary)
	case h.Size > limit:
		return nil, errTooLarge(limit)
	case h.Size > int64(len(data))-start:
		return nil, fmt.Errorf("the archive ends inside it: %w", ErrDamaged)
	}
	return data[start : start+h.Size], nil
}

func isGzip(src *source) bool { return bytes.HasPrefix(src.data, []byte("\x1f\x8b\x08")) }

// parseGzip parses a compressed file: a tar archive, or one part.
//
// Source: RFC 1952.
func parseGzip(src *source, b *builder) bool {
	r, err := gzip.NewReader(bytes.NewReader(src.data))
	if err != nil {
		b.err = fmt.Errorf("the gzip file cannot be read: %w: %w", err, ErrDamaged)
		return true
	}
	return unpack(src, b, r, r.Name)
}

func isBzip2(src *source) bool { return bytes.HasPrefix(src.data, []byte("BZh")) }

func parseBzip2(src *source, b *builder) bool {
	return unpack(src, b, bzip2.NewReader(bytes.NewReader(src.data)), "")
}

// unpack reads the only file in src from r. name is its name, if that is known.
func unpack(src *source, b *builder, r io.Reader, name string) bool {
	data, err := readMember(b.ctx, r, maxUnpacked)
	switch {
	case err != nil:
		b.err = err
		return true
	case isTarData(data):
		listTar(data, b)
		return emptyArchive(b)
	}
	if name == "" {
		name = unpackedName(src.name)
	}
	b.addPart(Part{Name: path.Base(name), Read: func(_ context.Context, limit int64) ([]byte, error) {
		if int64(len(data)) > limit {
			return nil, errTooLarge(limit)
		}
		return data, nil
	}})
	return true
}

// unpackedName returns the name of the file in a compressed file.
func unpackedName(name string) string {
	for _, ext := range []string{".gz", ".gzip", ".bz2", ".bz"} {
		if len(name) > len(ext) && strings.EqualFold(name[len(name)-len(ext):], ext) {
			return name[:len(name)-len(ext)]
		}
	}
	return name
}

func is7z(src *source) bool { return bytes.HasPrefix(src.data, []byte("7z\xbc\xaf\x27\x1c")) }

// parse7z lists the files of a 7z archive. Encrypted ones are read with the first password that
// opens them.
//
// Source: Igor Pavlov, "7zFormat.txt".
func parse7z(src *source, b *builder) bool {
	var z *sevenzip.Reader
	var err error
	for _, password := range append([]string{""}, src.passwords...) {
		z, err = open7z(src.data, password)
		if err == nil {
			break
		}
	}
	if err != nil {
		b.err = err
		return true
	}
	for _, f := range z.File {
		if b.canceled() {
			return true
		}
		name := strings.ReplaceAll(f.Name, "\\", "/")
		if f.FileInfo().IsDir() || isHiddenMember(name) {
			continue
		}
		b.addPart(Part{Name: name, Read: func(ctx context.Context, limit int64) ([]byte, error) { return read7z(ctx, f, limit) }})
	}
	return emptyArchive(b)
}

// open7z opens an archive and reads the start of its first file, because the password is checked
// only there if the list of files is not encrypted.
func open7z(data []byte, password string) (*sevenzip.Reader, error) {
	z, err := sevenzip.NewReaderWithPassword(bytes.NewReader(data), int64(len(data)), password)
	if err != nil {
		return nil, error7z(err)
	}
	for _, f := range z.File {
		if f.UncompressedSize == 0 {
			continue
		}
		if _, err := read7z(context.Background(), f, maxPartBytes); errors.Is(err, ErrPassword) {
			return nil, err
		}
		// The library cannot read an encrypted file twice.
		z, err = sevenzip.NewReaderWithPassword(bytes.NewReader(data), int64(len(data)), password)
		if err != nil {
			return nil, error7z(err)
		}
		break
	}
	return z, nil
}

func read7z(ctx context.Context, f *sevenzip.File, limit int64) ([]byte, error) {
	if err := regular(f.Mode()); err != nil {
		return nil, err
	}
	if f.UncompressedSize > uint64(limit) {
		return nil, errTooLarge(limit)
	}
	r, err := f.Open()
	if err != nil {
		return nil, error7z(err)
	}
	defer r.Close()
	data, err := readMember(ctx, r, limit)
	if err != nil && !errors.Is(err, ErrLimit) && ctx.Err() == nil {
		return nil, error7z(err)
	}
	return data, err
}

// error7z returns the kind of an error of the library, for which a wrong password is damage.
func error7z(err error) error {
	var read *sevenzip.ReadError
	if errors.As(err, &read) && read.Encrypted {
		return fmt.Errorf("the 7z archive is encrypted: %w", ErrPassword)
	}
	return fmt.Errorf("the 7z archive cannot be read: %w: %w", err, ErrDamaged)
}

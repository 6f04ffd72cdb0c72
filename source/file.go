package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/assay-rag/assay"
)

// Values of a document's "source" metadata.
const (
	FromFile   = "file"
	FromStdin  = "stdin"
	FromUpload = "upload"
)

// A File is a document that Walk found and that is not read yet.
type File struct {
	URI       string    // of a file: its absolute path in the form of URI; else "stdin:NAME" or that of an Upload
	Root      string    // URI of the root below which it was found
	Rel       string    // slash path below the root, escaped as in URI; for a root that is a file, its name
	Source    string    // FromFile, FromStdin or FromUpload
	SizeBytes int64     // when found; 0 for standard input
	Modified  time.Time // when found; zero for standard input and if it is not an assay.ValidTime

	at       place
	sidecars []place // more than one is an error
	limit    int64
	stdin    io.Reader
	upload   *Upload
}

// A place is a path relative to a folder that opening it must not leave.
type place struct {
	folder string
	rel    string
}

// Content is the content of a File or an Item. For a File, the time belongs to exactly these bytes.
type Content struct {
	Data     []byte
	Modified time.Time // zero if it is not known or not an assay.ValidTime
	Read     time.Time // when reading began

	// Type replaces that of the Item; Metadata completes that of the Item, which takes precedence.
	// They are empty for a File, except the Type of an Upload.
	Type     string
	Metadata assay.Metadata
}

// errChanged means that the file's size or time changed while it was read.
var errChanged = errors.New("it kept changing while it was read")

// errSpecial means that the file is not a regular file.
var errSpecial = errors.New("it is not a regular file")

// A sizeError reports a file over its size limit.
type sizeError struct{ size, limit int64 }

func (e sizeError) Error() string {
	if e.size < 0 {
		return fmt.Sprintf("larger than the limit of %d bytes", e.limit)
	}
	return fmt.Sprintf("%d bytes, over the limit of %d", e.size, e.limit)
}

// Read returns the whole content. A file that changes meanwhile is read again, up to three times in
// total. Standard input can be read once.
//
// Every error except ctx's is a *Skip: TooLarge, Unreadable, SpecialFile, Changed, Vanished or
// BadStandardIn. Read never waits for a named pipe.
func (f File) Read(ctx context.Context) (Content, error) {
	switch {
	case f.upload != nil && f.SizeBytes > f.limit:
		return Content{}, f.skip(sizeError{f.SizeBytes, f.limit})
	case f.upload != nil:
		return Content{Data: f.upload.Data, Type: f.upload.Type, Read: time.Now()}, ctx.Err()
	case f.stdin != nil:
		return f.readStdin(ctx)
	}
	const attempts = 3
	var c Content
	var err error
	for range attempts {
		if err := ctx.Err(); err != nil {
			return Content{}, err
		}
		c, err = readAt(f.at, f.limit)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	if err != nil {
		return Content{}, f.skip(err)
	}
	return c, nil
}

// Sidecar reads the file's sidecar; without one it returns the zero Sidecar. If a sidecar cannot be
// read or used, the error is a *Skip with the reason BadSidecar. The document's ACL is then
// unknown, and access to it must be denied.
func (f File) Sidecar() (Sidecar, error) {
	if f.upload != nil {
		return f.upload.Sidecar, nil
	}
	switch len(f.sidecars) {
	case 0:
		return Sidecar{}, nil
	case 1:
	default:
		return Sidecar{}, f.badSidecar(fmt.Errorf("there are %d, differing in case", len(f.sidecars)))
	}
	c, err := readAt(f.sidecars[0], MaxSidecarBytes)
	if err != nil {
		return Sidecar{}, f.badSidecar(plainCause(err))
	}
	s, err := ParseSidecar(c.Data)
	if err != nil {
		return Sidecar{}, f.badSidecar(err)
	}
	return s, nil
}

func (f File) badSidecar(err error) *Skip {
	return &Skip{URI: f.URI, Reason: BadSidecar, Err: err,
		Detail: fmt.Sprintf("its sidecar %s is not usable, so who may see it is not known: %s", f.URI+SidecarSuffix,
			strings.TrimSuffix(err.Error(), ": "+assay.ErrInvalid.Error()))}
}

// skip returns the reason why the file could not be read.
func (f File) skip(err error) *Skip {
	s := &Skip{URI: f.URI, Reason: Unreadable, Err: err, Detail: fmt.Sprintf("cannot be read: %v", plainCause(err))}
	var size sizeError
	switch {
	case errors.As(err, &size):
		s.Reason, s.Detail = TooLarge, err.Error()
	case errors.Is(err, errSpecial):
		s.Reason, s.Detail = SpecialFile, "is not a regular file any more"
	case errors.Is(err, errChanged):
		s.Reason, s.Detail = Changed, err.Error()
	case errors.Is(err, fs.ErrNotExist):
		s.Reason, s.Detail = Vanished, "was removed before it could be read"
	}
	return s
}

// readStdin reads in a goroutine, because reading from a terminal or a pipe cannot be interrupted.
// If ctx is cancelled, the goroutine ends with its read.
func (f File) readStdin(ctx context.Context) (Content, error) {
	type result struct {
		data []byte
		err  error
	}
	began := time.Now()
	done := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(f.stdin, f.limit+1))
		done <- result{data, err}
	}()
	select {
	case <-ctx.Done():
		return Content{}, ctx.Err()
	case r := <-done:
		if r.err != nil {
			return Content{}, &Skip{URI: f.URI, Reason: BadStandardIn, Err: r.err,
				Detail: fmt.Sprintf("standard input cannot be read: %v", r.err)}
		}
		if int64(len(r.data)) > f.limit {
			return Content{}, f.skip(sizeError{-1, f.limit})
		}
		return Content{Data: r.data, Read: began}, nil
	}
}

// readAt reads a regular file of at most limit bytes. It checks by size and time that the file did
// not change while it was read.
func readAt(p place, limit int64) (Content, error) {
	began := time.Now()
	root, err := os.OpenRoot(p.folder)
	if err != nil {
		return Content{}, err
	}
	defer root.Close()
	f, err := root.OpenFile(p.rel, os.O_RDONLY|openFlag, 0)
	if err != nil {
		return Content{}, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return Content{}, err
	}
	if !before.Mode().IsRegular() {
		return Content{}, errSpecial
	}
	if before.Size() > limit {
		return Content{}, sizeError{before.Size(), limit}
	}
	data := make([]byte, before.Size())
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Content{}, errChanged
	}
	if err != nil {
		return Content{}, fmt.Errorf("after %d bytes: %w", n, err)
	}
	after, err := f.Stat()
	if err != nil {
		return Content{}, err
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return Content{}, errChanged
	}
	return Content{Data: data, Modified: modified(before), Read: began}, nil
}

// modified returns a file's modification time. It is zero if the time has no written form; some
// file systems allow years beyond 9999.
func modified(info fs.FileInfo) time.Time {
	if t := info.ModTime(); assay.ValidTime(t) {
		return t
	}
	return time.Time{}
}

// plainCause strips the operation and path that the os package adds.
func plainCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

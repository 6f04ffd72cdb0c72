package source

import (
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
)

// A Reason says why something was passed over, for machines.
type Reason string

// The reasons that this package gives.
const (
	TooLarge      Reason = "too_large"
	Unreadable    Reason = "unreadable"
	SpecialFile   Reason = "special_file"  // a device, socket or named pipe
	LinkOutside   Reason = "link_outside"  // a symbolic link that leaves its root
	LinkBroken    Reason = "link_broken"   // leads nowhere, or in a circle
	LinkExcluded  Reason = "link_excluded" // leads to what a pattern leaves out
	SameFile      Reason = "same_file"     // already read under another name
	Changed       Reason = "changed"       // kept changing while it was read
	Vanished      Reason = "vanished"      // was there, and gone when it was read
	BadSidecar    Reason = "bad_sidecar"   // its sidecar cannot be used, so its ACL is not known
	SidecarOrphan Reason = "sidecar_without_document"
	BadIgnoreFile Reason = "bad_ignore_file" // what the folder leaves out is not known
	BadStandardIn Reason = "unreadable_stdin"
)

// A Skip is a file or folder that was passed over. It is an error so that it can
// travel as one; the walk goes on after it.
type Skip struct {
	URI    string
	Reason Reason
	Detail string // for people: why, without the URI
	Folder bool   // URI is a folder: nothing is known of what lies below it
	Err    error  // the cause, or nil
}

func (s *Skip) Error() string { return fmt.Sprintf("%s: %s", s.URI, s.Detail) }

// Unwrap returns the cause.
func (s *Skip) Unwrap() error { return s.Err }

// ErrEmpty is the cause of a RootError whose folder holds nothing to ingest.
var ErrEmpty = errors.New("nothing to ingest")

// A RootError says that a root as a whole cannot be walked. It is an
// assay.ErrInvalid; its cause is fs.ErrNotExist, fs.ErrPermission, ErrEmpty or
// another error of the operating system.
type RootError struct {
	Root   string // as the caller gave it
	URI    string // of the root; empty when its path cannot be made absolute
	Detail string // for people: why, without the root
	Err    error
}

func (e *RootError) Error() string { return fmt.Sprintf("%s: %s", e.Root, e.Detail) }

// Unwrap returns the kind and the cause.
func (e *RootError) Unwrap() []error { return []error{assay.ErrInvalid, e.Err} }

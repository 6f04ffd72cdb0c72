package source

import (
	"errors"
	"fmt"

	"github.com/assay-rag/assay"
)

// A Reason is a machine-readable reason for a skip.
type Reason string

// The reasons used by this package.
const (
	TooLarge      Reason = "too_large"
	Unreadable    Reason = "unreadable"
	SpecialFile   Reason = "special_file"  // a device, socket or named pipe
	LinkOutside   Reason = "link_outside"  // a symbolic link that leaves its root
	LinkBroken    Reason = "link_broken"   // its target does not exist, or it is circular
	LinkExcluded  Reason = "link_excluded" // its target is excluded by a pattern
	SameFile      Reason = "same_file"     // already read under another name
	Changed       Reason = "changed"       // it kept changing while it was read
	Vanished      Reason = "vanished"      // removed before it was read
	BadSidecar    Reason = "bad_sidecar"   // its sidecar cannot be used, so its ACL is unknown
	SidecarOrphan Reason = "sidecar_without_document"
	BadIgnoreFile Reason = "bad_ignore_file" // the exclusions of the folder are unknown
	BadStandardIn Reason = "unreadable_stdin"
	UnknownACL    Reason = "unknown_acl" // the source did not state who may see it
	Unsupported   Reason = "unsupported" // an item without content that can be read, such as a submodule
	Excluded      Reason = "excluded"    // the source asks not to index it
)

// A Skip is a file or folder that was skipped. It implements error so that Walk can yield it; the
// walk continues after it.
type Skip struct {
	URI    string
	Reason Reason
	Detail string // human-readable reason, without the URI
	Folder bool   // URI is a folder, and nothing is known about what is below it
	Err    error  // the cause, or nil
}

func (s *Skip) Error() string { return fmt.Sprintf("%s: %s", s.URI, s.Detail) }

// Unwrap returns the cause.
func (s *Skip) Unwrap() error { return s.Err }

// ErrEmpty is the cause of a RootError whose folder holds nothing to ingest.
var ErrEmpty = errors.New("nothing to ingest")

// A RootError reports that a whole root cannot be walked. It is an assay.ErrInvalid; its cause is
// fs.ErrNotExist, fs.ErrPermission, ErrEmpty or another error of the operating system.
type RootError struct {
	Root   string // as the caller gave it
	URI    string // of the root; empty when its path cannot be made absolute
	Detail string // human-readable reason, without the root
	Err    error
}

func (e *RootError) Error() string { return fmt.Sprintf("%s: %s", e.Root, e.Detail) }

// Unwrap returns the kind and the cause.
func (e *RootError) Unwrap() []error { return []error{assay.ErrInvalid, e.Err} }

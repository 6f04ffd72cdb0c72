//go:build unix

package pdfium

import "golang.org/x/sys/unix"

// reserve reserves addresses for size bytes, which are not accessible.
func reserve(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// commit makes reserved bytes accessible, which are zero at first.
func commit(b []byte) error { return unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE) }

// release releases all that reserve returned.
func release(b []byte) { _ = unix.Munmap(b) } // fails only for addresses that are not mapped

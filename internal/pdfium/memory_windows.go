package pdfium

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// reserve reserves addresses for size bytes, which are not accessible.
func reserve(size int) ([]byte, error) {
	p, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), p)), size), nil
}

// commit makes reserved bytes accessible, which are zero at first.
func commit(b []byte) error {
	_, err := windows.VirtualAlloc(address(b), uintptr(len(b)), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}

// release releases all that reserve returned.
func release(b []byte) { _ = windows.VirtualFree(address(b), 0, windows.MEM_RELEASE) }

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

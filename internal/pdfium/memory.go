package pdfium

import (
	"context"

	"github.com/tetratelabs/wazero/experimental"
)

// A linearMemory is the memory of an instance. It is outside the heap, so that it grows without
// being copied and is returned to the system when the instance ends. Its address does not change.
type linearMemory struct {
	reserved []byte // of which the first used bytes are accessible
	used     uint64
	onHeap   bool // because the system refused
}

// withMemory returns ctx with an allocator that gives an instance the memory m.
func withMemory(ctx context.Context, m *linearMemory) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, limit uint64) experimental.LinearMemory {
		var err error
		if m.reserved, err = reserve(int(limit)); err != nil {
			m.reserved, m.onHeap = make([]byte, limit), true
		}
		return m
	}))
}

// Reallocate makes the first size bytes accessible and returns them, or nil if that fails.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.reserved)) {
		return nil
	}
	if size > m.used {
		if !m.onHeap && commit(m.reserved[:size]) != nil {
			return nil
		}
		m.used = size
	}
	return m.reserved[:size:size]
}

// Free releases the memory.
func (m *linearMemory) Free() {
	if m.reserved != nil && !m.onHeap {
		release(m.reserved)
	}
	m.reserved, m.used = nil, 0
}

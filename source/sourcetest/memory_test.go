package sourcetest

import "testing"

func TestMemory(t *testing.T) {
	t.Parallel()
	Run(t, func(*testing.T) World { return new(Memory).World() })
}

func TestMemoryWithDeletes(t *testing.T) {
	t.Parallel()
	Run(t, func(*testing.T) World { return (&Memory{Deletes: true}).World() })
}

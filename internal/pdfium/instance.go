package pdfium

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf16"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// A handle is an address in an instance's memory; 0 is none.
type handle = uint32

// An instance is a running module. After an error other than a nil handle it is dead.
//
// Methods that call PDFium record the first error and then return zero values, so that a caller
// checks err once after a series of calls.
type instance struct {
	module    api.Module
	batches   api.Module // its functions use module
	functions map[string]api.Function
	stack     [16]uint64
	scratch   handle // scratchSize bytes for results
	err       error  // why the instance is dead
}

// scratchSize is the size in bytes of the memory for results of calls.
const scratchSize = 4096

// largestString is the largest size in bytes of a string that is read from PDFium.
const largestString = 16 << 20

// newInstance starts a module.
func newInstance(ctx context.Context, e *engine) (*instance, error) {
	if err := enter(ctx); err != nil {
		return nil, err
	}
	in, err := startInstance(ctx, e)
	leave()
	if err != nil {
		return nil, err
	}
	if err := in.initialize(ctx); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// running holds a value while PDFium runs. Instances run one at a time, because those of one runtime
// share the types of wazero's invoke functions, which wazero completes at their first call without
// synchronisation. A worker of assay parses one document at a time anyway.
var running = make(chan struct{}, 1)

// enter waits until no instance runs, or until ctx ends.
func enter(ctx context.Context) error {
	select {
	case running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func leave() { <-running }

// startInstance is newInstance after enter.
func startInstance(ctx context.Context, e *engine) (*instance, error) {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	memory := &linearMemory{}
	m, err := e.runtime.InstantiateModule(withMemory(ctx, memory), e.module, config)
	if err != nil {
		memory.Free()
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("start PDFium: %w", err))
	}
	in := &instance{module: m, functions: map[string]api.Function{}}
	in.batches, err = e.runtime.InstantiateModule(experimental.WithImportResolver(ctx, func(string) api.Module { return m }), e.batch, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		in.close()
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("start PDFium: %w", err))
	}
	m.Memory().WriteUint32Le(countAddress, countStart)
	return in, nil
}

// initialize prepares PDFium for calls.
func (in *instance) initialize(ctx context.Context) error {
	in.call(ctx, "FPDF_InitLibrary")
	in.scratch = in.alloc(ctx, scratchSize)
	return in.err
}

// close frees the instance's memory.
func (in *instance) close() {
	if in.batches != nil {
		_ = in.batches.Close(context.Background())
	}
	_ = in.module.Close(context.Background())
}

// call calls a function of PDFium and returns its result, if it has any.
func (in *instance) call(ctx context.Context, name string, args ...uint64) uint64 {
	if in.err == nil {
		in.err = ctx.Err()
	}
	if in.err != nil {
		return 0
	}
	f := in.functions[name]
	if f == nil {
		f = in.module.ExportedFunction(name)
		if f == nil {
			f = in.batches.ExportedFunction(name)
		}
		if f == nil {
			in.err = fmt.Errorf("%w: it has no function %s", ErrCrashed, name)
			return 0
		}
		in.functions[name] = f
	}
	return in.invoke(ctx, f, args...)
}

func (in *instance) invoke(ctx context.Context, f api.Function, args ...uint64) uint64 {
	if in.err != nil {
		return 0
	}
	if in.err = enter(ctx); in.err != nil {
		return 0
	}
	defer leave()
	in.stack[0] = 0
	copy(in.stack[:], args)
	if err := f.CallWithStack(ctx, in.stack[:]); err != nil {
		in.err = in.cause(ctx, err)
		return 0
	}
	return in.stack[0]
}

// get calls a function that takes a short time.
func (in *instance) get(name string, args ...uint64) uint64 {
	return in.call(context.Background(), name, args...)
}

// cause returns the error of a call in words. A call that was stopped has ctx's error.
func (in *instance) cause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case in.module.Memory().Size() > memoryPages<<16/4*3:
		return ErrMemory // PDFium aborts without a reason when it gets no more memory
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%w (%s)", ErrCrashed, message)
}

// alloc allocates n bytes of the instance's memory.
func (in *instance) alloc(ctx context.Context, n int) handle {
	if n >= math.MaxInt32 {
		in.fail(ErrMemory)
		return 0
	}
	p := handle(in.call(ctx, "malloc", uint64(n)))
	if p == 0 {
		in.fail(ErrMemory)
	}
	return p
}

func (in *instance) free(p handle) { in.get("free", uint64(p)) }

func (in *instance) fail(err error) {
	if in.err == nil {
		in.err = err
	}
}

// read returns n bytes of the instance's memory, which are valid until the next call.
func (in *instance) read(p handle, n int) []byte {
	if in.err != nil {
		return make([]byte, n)
	}
	data, ok := in.module.Memory().Read(p, uint32(n))
	if !ok {
		in.fail(fmt.Errorf("%w: it gave an address outside its memory", ErrCrashed))
		return make([]byte, n)
	}
	return data
}

// write copies data to the instance's memory.
func (in *instance) write(p handle, data []byte) {
	if in.err == nil && !in.module.Memory().Write(p, data) {
		in.fail(fmt.Errorf("%w: it gave an address outside its memory", ErrCrashed))
	}
}

// clear sets the first n bytes of the scratch memory to zero.
func (in *instance) clear(n int) {
	b := in.read(in.scratch, n)
	clear(b)
}

// float, double and integer return results in the scratch memory.
func (in *instance) float(offset int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(in.read(in.scratch+handle(offset), 4)))
}

func (in *instance) integer(offset int) uint32 {
	return binary.LittleEndian.Uint32(in.read(in.scratch+handle(offset), 4))
}

// at returns the address of offset in the scratch memory as an argument.
func (in *instance) at(offset int) uint64 { return uint64(in.scratch) + uint64(offset) }

// utf16 returns the string of a function that takes a buffer and its size in bytes as its last
// arguments and returns the size of the string in UTF-16LE with a final zero.
func (in *instance) utf16(ctx context.Context, name string, args ...uint64) string {
	return decodeUTF16(in.bytes(ctx, false, name, args...))
}

// text is utf16 for functions whose strings have one byte or UTF-8 per character.
func (in *instance) text(ctx context.Context, name string, args ...uint64) string {
	b := in.bytes(ctx, false, name, args...)
	return strings.ToValidUTF8(strings.TrimRight(string(b), "\x00"), "\uFFFD")
}

// bytes returns the result of a function that takes a buffer and its size. If sized is set, the
// function returns whether it succeeded and writes the size to a last argument, which is the
// case for functions about streams.
func (in *instance) bytes(ctx context.Context, sized bool, name string, args ...uint64) []byte {
	const room = scratchSize - 8
	fill := func(p handle, size int) int {
		full := append(append(make([]uint64, 0, 8), args...), uint64(p), uint64(size))
		if !sized {
			return int(int32(in.call(ctx, name, full...)))
		}
		in.clear(4)
		if in.call(ctx, name, append(full, in.at(0))...) == 0 {
			return 0
		}
		return int(int32(in.integer(0)))
	}
	buffer := in.scratch + 8
	n := fill(buffer, room)
	switch {
	case n <= 0 || in.err != nil:
		return nil
	case n <= room:
		return append([]byte(nil), in.read(buffer, n)...)
	case n > largestString:
		in.fail(fmt.Errorf("%w: a string of %d bytes", ErrTooLarge, n))
		return nil
	}
	buffer = in.alloc(ctx, n)
	defer in.free(buffer)
	if got := fill(buffer, n); got != n {
		return nil
	}
	return append([]byte(nil), in.read(buffer, n)...)
}

// decodeUTF16 returns the text of UTF-16LE, up to the final zero.
func decodeUTF16(b []byte) string {
	units := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		u := binary.LittleEndian.Uint16(b)
		if u == 0 && len(b) == 2 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}

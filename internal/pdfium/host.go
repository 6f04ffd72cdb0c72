package pdfium

import (
	"context"
	"errors"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// errAbort is the cause of an end of the module by itself.
var errAbort = errors.New("PDFium aborted")

// Error numbers of WASI and, negated, of system calls.
const (
	wasiBadFile   = 8
	sysNoEntry    = -2
	sysNotPresent = -52
)

// isEmscripten reports whether wazero's package emscripten provides the imported function.
func isEmscripten(name string) bool {
	return strings.HasPrefix(name, "invoke_") || name == "_emscripten_throw_longjmp" || name == "emscripten_notify_memory_growth"
}

// exportStub exports the function that the module imports by a name. There are no files, no
// environment and no time.
func exportStub(b wazero.HostModuleBuilder, name string, f api.FunctionDefinition) {
	stub, ok := stubs[name]
	if !ok {
		stub = result(sysNotPresent)
	}
	b.NewFunctionBuilder().WithGoModuleFunction(stub, f.ParamTypes(), f.ResultTypes()).Export(name)
}

// result returns a host function that does no more than return code, if it returns anything.
func result(code int32) api.GoModuleFunc {
	return func(_ context.Context, _ api.Module, stack []uint64) {
		if len(stack) > 0 {
			stack[0] = api.EncodeI32(code)
		}
	}
}

var stubs = map[string]api.GoModuleFunc{
	"_abort_js":              abortOrCheck,
	"__assert_fail":          abort,
	"_emscripten_memcpy_js":  copyMemory,
	"emscripten_resize_heap": growMemory,
	"emscripten_date_now":    func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = api.EncodeF64(0) },
	"_tzset_js":              setTimeZone,
	"_localtime_js":          brokenDownTime,
	"_gmtime_js":             brokenDownTime,
	"__syscall_openat":       result(sysNoEntry),
	"__syscall_stat64":       result(sysNoEntry),
	"__syscall_lstat64":      result(sysNoEntry),
	"__syscall_newfstatat":   result(sysNoEntry),

	"fd_close":          result(wasiBadFile),
	"fd_read":           result(wasiBadFile),
	"fd_seek":           result(wasiBadFile),
	"fd_sync":           result(wasiBadFile),
	"fd_write":          discard,
	"environ_get":       result(0),
	"environ_sizes_get": noEnvironment,
}

// The module counts its iterations of loops down at countAddress and calls _abort_js at 0; see
// stoppable. The iterations between two such calls take less than a millisecond.
const (
	countAddress = 8
	countStart   = 10_000
)

// abortOrCheck ends the module if the call's context has ended, or if it aborted by itself.
func abortOrCheck(ctx context.Context, m api.Module, _ []uint64) {
	if n, ok := m.Memory().ReadUint32Le(countAddress); !ok || n != 0 {
		panic(errAbort)
	}
	if err := ctx.Err(); err != nil {
		panic(err)
	}
	m.Memory().WriteUint32Le(countAddress, countStart)
}

func abort(context.Context, api.Module, []uint64) { panic(errAbort) }

func copyMemory(_ context.Context, m api.Module, stack []uint64) {
	to, from, n := uint32(stack[0]), uint32(stack[1]), uint32(stack[2])
	data, ok := m.Memory().Read(from, n)
	if !ok || !m.Memory().Write(to, data) {
		panic(errAbort)
	}
}

// growMemory grows the memory to the given number of bytes and by a fifth of its size at least, so
// that it does not grow often. It returns 1, or 0 if the memory cannot grow to the number.
func growMemory(_ context.Context, m api.Module, stack []uint64) {
	const page = 1 << 16
	mem := m.Memory()
	have, want := uint64(mem.Size()), uint64(uint32(stack[0]))
	stack[0] = 1
	if want <= have {
		return
	}
	for _, size := range []uint64{max(want, have+have/5), want} {
		if _, ok := mem.Grow(uint32((size - have + page - 1) / page)); ok {
			return
		}
	}
	stack[0] = 0
}

// setTimeZone sets the offset, the use of summer time and the names of the time zone: UTC.
func setTimeZone(_ context.Context, m api.Module, stack []uint64) {
	mem := m.Memory()
	mem.WriteUint32Le(uint32(stack[0]), 0)
	mem.WriteUint32Le(uint32(stack[1]), 0)
	mem.WriteString(uint32(stack[2]), "UTC\x00")
	mem.WriteString(uint32(stack[3]), "UTC\x00")
}

// brokenDownTime fills a struct tm with zeros.
func brokenDownTime(_ context.Context, m api.Module, stack []uint64) {
	m.Memory().Write(uint32(stack[2]), make([]byte, 36))
}

// discard accepts what is written to a file, which are PDFium's messages.
func discard(_ context.Context, m api.Module, stack []uint64) {
	vectors, count, written := uint32(stack[1]), uint32(stack[2]), uint32(stack[3])
	n := uint32(0)
	for i := uint32(0); i < min(count, 1024); i++ {
		size, _ := m.Memory().ReadUint32Le(vectors + 8*i + 4)
		n += size
	}
	m.Memory().WriteUint32Le(written, n)
	stack[0] = 0
}

func noEnvironment(_ context.Context, m api.Module, stack []uint64) {
	m.Memory().WriteUint32Le(uint32(stack[0]), 0)
	m.Memory().WriteUint32Le(uint32(stack[1]), 0)
	stack[0] = 0
}

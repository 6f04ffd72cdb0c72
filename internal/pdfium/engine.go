// Package pdfium reads PDF files with PDFium, compiled to WebAssembly and run by wazero. A document
// has a sandbox of its own: memory of at most 512 MiB, no files, no clock and no network. Calls end
// within milliseconds after their context ends.
//
// The main type is Document. The package delivers characters with their places, lines, images,
// annotations and the structure tree. Package pdflayout makes paragraphs and tables of them.
//
// The module is pdfium.wasm of the npm package @embedpdf/pdfium 2.15.1, rewritten by stoppable;
// scripts/pdfium does both.
package pdfium

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/emscripten"
)

//go:embed pdfium.wasm.gz
var compressed []byte

// moduleSum is the SHA-256 of pdfium.wasm after stoppable.
const moduleSum = "9840e122d9ded13b04c14fe3724adb8083db48532f338a3a30abaa91de4a00ea"

// memoryPages limits the memory of an instance to 512 MiB, in pages of 64 KiB.
const memoryPages = 8192

// An engine is the compiled module, ready to be instantiated. It is safe for concurrent use.
type engine struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	batch   wazero.CompiledModule // of batch.wat
}

// A compiler compiles the module once, at first use.
type compiler struct {
	started chan struct{} // holds a token until the compilation starts
	done    chan struct{}
	engine  *engine
	err     error
}

func newCompiler() *compiler {
	c := &compiler{started: make(chan struct{}, 1), done: make(chan struct{})}
	c.started <- struct{}{}
	return c
}

// shared is the compiler of the process.
var shared = newCompiler()

// get returns the engine. It returns ctx's error if ctx ends before the compilation does, which
// goes on for later callers.
func (c *compiler) get(ctx context.Context) (*engine, error) {
	select {
	case <-c.started:
		go func() {
			defer close(c.done)
			c.engine, c.err = newEngine(context.Background(), cacheFolder())
		}()
	default:
	}
	select {
	case <-c.done:
		return c.engine, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Prepare compiles PDFium, once in a process, which takes a second or two of CPU time without the cache
// of compiled code. It calls waiting each second meanwhile, so that the time is not taken for that of a
// document. Without Prepare, Open does the same and calls nothing.
func Prepare(ctx context.Context, waiting func()) error {
	return shared.prepare(ctx, time.Second, waiting)
}

func (c *compiler) prepare(ctx context.Context, every time.Duration, waiting func()) error {
	ready := make(chan error, 1)
	go func() {
		_, err := c.get(ctx)
		ready <- err
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case err := <-ready:
			return err
		case <-tick.C:
			waiting()
		}
	}
}

// newEngine compiles the module. Compiled code is kept in the folder cache unless it is empty. If
// the cache cannot be used, newEngine compiles without it.
func newEngine(ctx context.Context, cache string) (*engine, error) {
	wasm, err := module()
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(memoryPages)
	if cache != "" {
		files, err := wazero.NewCompilationCacheWithDir(cache)
		if err == nil {
			e, err := compile(ctx, config.WithCompilationCache(files), wasm)
			if err == nil {
				return e, nil
			}
		}
	}
	return compile(ctx, config, wasm)
}

// module returns the decompressed module.
func module() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("decompress pdfium.wasm: %w", err)
	}
	wasm, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("decompress pdfium.wasm: %w", err)
	}
	if sum := sha256.Sum256(wasm); hex.EncodeToString(sum[:]) != moduleSum {
		return nil, fmt.Errorf("pdfium.wasm has SHA-256 %x, want %s", sum, moduleSum)
	}
	return wasm, nil
}

func compile(ctx context.Context, config wazero.RuntimeConfig, wasm []byte) (*engine, error) {
	e := &engine{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if err := e.load(ctx, wasm); err != nil {
		_ = e.runtime.Close(ctx)
		return nil, fmt.Errorf("compile PDFium: %w", err)
	}
	return e, nil
}

func (e *engine) load(ctx context.Context, wasm []byte) (err error) {
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	if e.module, err = e.runtime.CompileModule(ctx, wasm); err != nil {
		return err
	}
	if e.batch, err = e.runtime.CompileModule(ctx, batchModule); err != nil {
		return err
	}
	invoke, err := emscripten.NewFunctionExporterForModule(e.module)
	if err != nil {
		return err
	}
	env, wasi := e.runtime.NewHostModuleBuilder("env"), e.runtime.NewHostModuleBuilder("wasi_snapshot_preview1")
	invoke.ExportFunctions(env)
	for _, f := range e.module.ImportedFunctions() {
		from, name, _ := f.Import()
		switch {
		case from == "wasi_snapshot_preview1":
			exportStub(wasi, name, f)
		case !isEmscripten(name):
			exportStub(env, name, f)
		}
	}
	if _, err := env.Instantiate(ctx); err != nil {
		return err
	}
	_, err = wasi.Instantiate(ctx)
	return err
}

// cacheFolder returns the folder for compiled code, or "" if there is none that only the user may
// write. Compiled code is run, so that a folder open to others would let them run code here.
func cacheFolder() string {
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return privateFolder(filepath.Join(base, "assay", "wazero"))
}

// privateFolder creates dir if necessary and returns it, or "" if others may write it.
func privateFolder(dir string) string {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || !onlyUserWrites(info) {
		return ""
	}
	return dir
}

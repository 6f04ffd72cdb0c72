// Command stoppable rewrites a WebAssembly module so that it can be stopped from outside:
//
//	stoppable <MODULE >REWRITTEN
//
// Each iteration of each loop decrements the number at address 8 of the memory, and calls the imported
// function _abort_js when it becomes 0. The host sets the number and returns from the call, or ends
// it. wazero's own check, WithCloseOnContextDone, calls the host in each iteration, so that PDFium
// takes three times as long. Without any calls the garbage collector would wait for the module.
// The first KiB of the memory is not used by modules of Emscripten.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// checkOf returns the code at the start of a loop. callee is the number of the function to call.
func checkOf(callee uint64) []byte {
	code := []byte{
		0x41, 0, 0x41, 0, 0x28, 2, 8, // i32.const 0, i32.const 0, i32.load offset=8
		0x41, 1, 0x6b, // i32.const 1, i32.sub
		0x36, 2, 8, // i32.store offset=8
		0x41, 0, 0x28, 2, 8, 0x45, // i32.const 0, i32.load offset=8, i32.eqz
		0x04, 0x40, 0x10, // if, call
	}
	return append(binary.AppendUvarint(code, callee), 0x0b)
}

func main() {
	module, err := io.ReadAll(bufio.NewReader(os.Stdin))
	if err == nil {
		module, err = rewrite(module)
	}
	if err == nil {
		_, err = os.Stdout.Write(module)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stoppable:", err)
		os.Exit(1)
	}
}

// errModule means that a module is damaged or has instructions that this program does not know.
var errModule = errors.New("unknown or damaged code")

// rewrite returns the module with checks in its loops.
func rewrite(module []byte) (out []byte, err error) {
	defer func() {
		if recover() != nil { // an index beyond the end
			err = errModule
		}
	}()
	const header, imports, code = 8, 2, 10
	var check []byte
	module = slices.Clip(module)
	out = append(out, module[:header]...)
	for r := (reader{data: module, at: header}); r.at < len(module); {
		id := r.byte()
		body := r.bytes(int(r.number()))
		switch id {
		case imports:
			callee, err := importOf(body, "_abort_js")
			if err != nil {
				return nil, err
			}
			check = checkOf(callee)
		case code:
			if body, err = rewriteCode(body, check); err != nil {
				return nil, err
			}
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return out, nil
}

// importOf returns the number of the imported function with a name. All imports are functions.
func importOf(section []byte, name string) (uint64, error) {
	r := reader{data: section}
	for i := range r.number() {
		r.bytes(int(r.number())) // module
		found := string(r.bytes(int(r.number())))
		if r.byte() != 0 {
			return 0, fmt.Errorf("%w: the import %s is not a function", errModule, found)
		}
		r.number() // type
		if found == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: it does not import %s", errModule, name)
}

// rewriteCode rewrites the functions of a code section.
func rewriteCode(section, check []byte) ([]byte, error) {
	r := reader{data: section}
	n := r.number()
	out := binary.AppendUvarint(nil, n)
	for range n {
		body, err := rewriteFunction(r.bytes(int(r.number())), check)
		if err != nil {
			return nil, err
		}
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return out, nil
}

func rewriteFunction(body, check []byte) ([]byte, error) {
	const loop = 0x03
	r := reader{data: body}
	for range r.number() { // locals: a count and a type
		r.number()
		r.byte()
	}
	var out []byte
	copied := 0
	for r.at < len(body) {
		op := r.byte()
		if err := r.operands(op); err != nil {
			return nil, err
		}
		if op == loop {
			out = append(append(out, body[copied:r.at]...), check...)
			copied = r.at
		}
	}
	return append(out, body[copied:]...), nil
}

// A reader reads the encoding of WebAssembly.
type reader struct {
	data []byte
	at   int
}

func (r *reader) byte() byte {
	r.at++
	return r.data[r.at-1]
}

func (r *reader) bytes(n int) []byte {
	r.at += n
	return r.data[r.at-n : r.at : r.at]
}

// number reads a number in LEB128 without a sign. One with a sign is skipped by it too.
func (r *reader) number() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

// operands skips the operands of an instruction. Source: WebAssembly Core Specification 2.0,
// section 5.4, without vectors and tables of references.
func (r *reader) operands(op byte) error {
	const prefix = 0xfc
	switch {
	case op == 0x02, op == 0x03, op == 0x04, // block, loop, if: a type
		op == 0x0c, op == 0x0d, op == 0x10, // br, br_if, call
		0x20 <= op && op <= 0x24, // variables
		op == 0x3f, op == 0x40,   // memory.size, memory.grow
		op == 0x41, op == 0x42: // integers
		r.number()
	case op == 0x0e: // br_table
		for range r.number() + 1 {
			r.number()
		}
	case op == 0x11, 0x28 <= op && op <= 0x3e: // call_indirect, loads and stores
		r.number()
		r.number()
	case op == 0x43:
		r.bytes(4)
	case op == 0x44:
		r.bytes(8)
	case op == prefix:
		return r.prefixed()
	case op == 0x00, op == 0x01, op == 0x05, op == 0x0b, op == 0x0f, op == 0x1a, op == 0x1b, 0x45 <= op && op <= 0xc4:
	default:
		return fmt.Errorf("%w: instruction %#x", errModule, op)
	}
	return nil
}

// prefixed skips the operands of an instruction with the prefix 0xfc.
func (r *reader) prefixed() error {
	switch op := r.number(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // conversions
	case 8, 10, 12, 14: // memory.init, memory.copy, table.init, table.copy
		r.number()
		r.number()
	case 9, 11, 13, 15, 16, 17: // data.drop, memory.fill, elem.drop, table.grow, table.size, table.fill
		r.number()
	default:
		return fmt.Errorf("%w: instruction 0xfc %d", errModule, op)
	}
	return nil
}

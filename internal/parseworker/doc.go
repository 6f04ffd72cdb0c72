// Package parseworker parses documents in other processes, so that a parser that hangs, uses too
// much memory or crashes fails its document only. The parent has a Pool. The child process, which
// is the same program with another command line, calls Serve.
//
// Parent and child talk over the child's standard input and output: one hello in each direction,
// then a request for each source, which the child answers with a message for each document in it.
// Documents that arrived before a worker ended are kept. The pool then excludes the document that
// ended it and continues with a new worker.
//
// Every limit is enforced twice: by the worker itself, which ends with an exit status of its own,
// and from outside, by a signal for the time and by the kernel for the memory (Linux only). A worker
// ends when its standard input ends, so none outlives its parent.
package parseworker

package parse

import (
	endian "encoding/binary"
	"fmt"
	"io"
	"strconv"

	"github.com/xuri/excelize/v2"

	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/ooxml"
)

// maxSpins is the most iterations of a password's hash; Office uses 100,000.
const maxSpins = 1_000_000

// stockPassword is the password with which Excel encrypts workbooks that are only protected against
// changes.
const stockPassword = "VelvetSweatshop"

var spinCount = lazyregexp.New(`spinCount\s*=\s*["']\s*(-?\d+)`)

// decryptOffice returns the package in an encrypted document ([MS-OFFCRYPTO], agile or standard
// encryption) that one of the passwords opens.
func decryptOffice(data []byte, passwords []string) ([]byte, error) {
	size, err := checkEncryption(data)
	if err != nil {
		return nil, err
	}
	for _, password := range append([]string{stockPassword}, passwords...) {
		plain, err := decryptWith(data, password)
		if err == nil && ooxml.Is(plain) {
			return plain[:min(size, int64(len(plain)))], nil
		}
	}
	if len(passwords) == 0 {
		return nil, fmt.Errorf("it is encrypted: %w", ErrPassword)
	}
	return nil, fmt.Errorf("it is encrypted and none of the %d passwords opens it: %w", len(passwords), ErrPassword)
}

// checkEncryption checks the sizes of streams and the iterations of the hash, which the library
// trusts, and returns the size of the package.
func checkEncryption(data []byte) (size int64, err error) {
	var info, start []byte
	failed := eachCFB(data, func(name string, length int64, r io.Reader) bool {
		switch name {
		case "EncryptionInfo", "EncryptedPackage":
		default:
			return true
		}
		if length < 0 || length > int64(len(data)) {
			err = fmt.Errorf("stream %s claims %d bytes: %w", name, length, ErrDamaged)
			return false
		}
		if name == "EncryptionInfo" {
			info, err = io.ReadAll(io.LimitReader(r, 1<<20))
		} else {
			start = make([]byte, 8)
			_, err = io.ReadFull(r, start)
		}
		return err == nil
	})
	switch {
	case failed != nil:
		return 0, failed
	case err != nil:
		return 0, fmt.Errorf("it is encrypted: %v: %w", err, ErrDamaged)
	case len(info) < 8 || len(start) < 8:
		return 0, fmt.Errorf("it is encrypted and has no description of the encryption: %w", ErrDamaged)
	}
	for _, m := range spinCount.FindAllStringSubmatch(string(info), -1) {
		if n, err := strconv.Atoi(m[1]); err != nil || n > maxSpins {
			return 0, fmt.Errorf("its password has %s rounds of hashing, more than %d: %w", m[1], maxSpins, ErrLimit)
		}
	}
	return int64(min(endian.LittleEndian.Uint64(start), uint64(len(data)))), nil
}

func decryptWith(data []byte, password string) (plain []byte, err error) {
	// The library parses untrusted bytes. A panic in it must affect only this file.
	defer func() {
		if p := recover(); p != nil {
			plain, err = nil, fmt.Errorf("decrypt: %v: %w", p, ErrDamaged)
		}
	}()
	return excelize.Decrypt(data, &excelize.Options{Password: password})
}
